"""The closed form of a schedule at a scenario's batch, lengths and step times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psdsim.acceptance import IidAcceptance, MarkovAcceptance, MeanLengthAcceptance
from psdsim.methods import method
from psdsim.run.basis import Basis, drafts_beside, seqs_per_step
from psdsim.run.prepare import costs
from psdsim.scenario import Scenario
from psdsim.workload import generate


@dataclass(frozen=True)
class Theory:
    """A steady-state prediction, or the reason why there is none.

    Parameters
    ----------
    output_throughput
        Tokens/s of the whole deployment while batches are full; None without closed form.
    step_time_s, tokens_per_step
        Its two factors: seconds a step, tokens a step and request.
    reason
        Why there is none.
    omits
        What the formula leaves out on this scenario.
    source
        Where the formula is from.
    """

    output_throughput: float | None
    step_time_s: float | None
    tokens_per_step: float | None
    reason: str | None
    omits: tuple[str, ...]
    source: str | None


def _none(reason: str) -> Theory:
    return Theory(None, None, None, reason, (), None)


def theory_for(
    scenario: Scenario, schedule: str, k: int, basis: Basis = Basis.STEP_BATCH, seed: int = 0
) -> Theory:
    """Return the closed form of a schedule on a scenario.

    The step times are taken at the full batch and at the mean context of the workload's
    requests; tokens per step count the stop inside the last block (n / E[rounds for n]).

    Parameters
    ----------
    scenario, schedule, k, basis
        What is asked.
    seed
        Seed of the drawn lengths.
    """
    from analysis.schedules import Jitter, NoClosedForm, steady_state

    chosen = method(schedule)
    if chosen.closed_form is None:
        return _none(f"none is known for {chosen.name}")
    schedule, scenario = chosen.closed_form, chosen.adapt(scenario, k)
    reason = _not_covered(scenario, schedule)
    if reason is not None:
        return _none(reason)
    cls = method(schedule).schedule
    requests = generate(scenario.workload, seed, 0, scenario.base_dir)
    m = seqs_per_step(cls, scenario, basis)
    in_flight = len(requests) / scenario.engine.n_replicas
    if requests.concurrency is not None:
        in_flight = min(in_flight, requests.concurrency / scenario.engine.n_replicas)
    m = min(m, in_flight / cls.n_groups)
    if m < 1:
        return _none("there are fewer requests than groups")
    decode = requests.output_tokens - 1
    if not decode.sum():
        return _none("every request has one output token: nothing is decoded")
    # A request of twice the length spends twice the steps in the batch.
    context = float(np.average(requests.prompt_tokens + requests.output_tokens / 2, weights=decode))
    drafting = cls.drafts and k > 0
    times = costs(scenario, drafting)
    draft_s = 0.0
    if times.draft is not None:
        draft_s = sum(times.draft(m, m, m * (context + i)) for i in range(k))
        draft_s += times.draft_start_s if k else 0.0
    rows = (k + 1 if drafting else 1) * m
    if schedule == "pearl-no-pre-verify" and m > 1:
        return _none("requests that only draft are not in the target pass: its size varies")
    if schedule.startswith("pearl"):
        rows = m * _pearl_rows(scenario, schedule, k)
    sync_s = times.sync_s + times.comm_per_token_s * m * k
    overhead_s = times.step_overhead_s + times.step_overhead_per_seq_s * m
    if drafting and not cls.overlaps and drafts_beside(cls, scenario):
        # The formulas of serial schedules know no barrier; here one follows every drafting phase.
        overhead_s += sync_s + times.target_resume_s
    jitter = None
    if times.target_jitter_cv or times.draft_jitter_cv:
        jitter = Jitter(
            draft_cv=times.draft_jitter_cv,
            verify_cv=times.target_jitter_cv,
            law=times.target_jitter_law,
        )
    try:
        steady = steady_state(
            schedule,
            n_seqs_per_step=m,
            acceptance=scenario.acceptance or IidAcceptance(alpha=0.0),
            k=k,
            draft_time_s=draft_s,
            verify_time_s=times.target(m, rows, m * context),
            overhead_s=overhead_s,
            sync_s=sync_s,
            n_tokens=max(1, round(float(np.average(decode, weights=decode)))),
            jitter=jitter,
        )
    except NoClosedForm as error:
        return _none(str(error))
    return Theory(
        steady.output_throughput * scenario.engine.n_replicas,
        steady.step_time_s,
        steady.tokens_per_step_per_request,
        None,
        _omits(scenario),
        steady.source,
    )


def _pearl_rows(scenario: Scenario, schedule: str, k: int) -> float:
    """Return the mean rows a request brings to a pass of PEARL or one of its ablations.

    1 in pre-verify and k in post-verify; without pre-verify k+1 after a step that only drafts.
    """
    from analysis.pearl import pre_verify_share, tokens_per_step_no_post_verify
    from analysis.pearl_ablations import draft_only_share
    from analysis.special import geometric_sum

    model = scenario.acceptance
    if isinstance(model, MarkovAcceptance):
        alpha, after_reject = model.after_accept, model.after_reject
    elif isinstance(model, IidAcceptance | MeanLengthAcceptance):
        alpha = after_reject = model.alpha
    else:
        return float(k)  # no closed form will be asked for
    if schedule == "pearl-no-pre-verify":
        only = draft_only_share(alpha, k, None, after_reject)
        return k + only / (1.0 - only)
    if schedule == "pearl-no-post-verify":
        more = float(geometric_sum(alpha, k)) - 1.0
        gain = float(tokens_per_step_no_post_verify(alpha, k, after_reject)) - 1.0
        return 1.0 + (gain / more * (k - 1) if more else 0.0)
    share = float(pre_verify_share(alpha, k, after_reject))
    return share + (1.0 - share) * k


def _not_covered(scenario: Scenario, schedule: str) -> str | None:
    if scenario.workload.kind in {"poisson", "gamma", "trace"}:
        return "open arrivals: throughput is set by the arrivals, not by the schedule"
    if scenario.engine.chunked_prefill:
        return "chunked prefill mixes prompt pieces into decode passes"
    draft = scenario.draft
    overlaps = method(schedule).schedule.overlaps
    if overlaps and draft is not None and draft.slow_downs != (1.0, 1.0):
        what = "share GPUs" if draft.shared else "share bandwidth"
        return f"both models {what}: overlapping passes slow each other"
    return None


def _omits(scenario: Scenario) -> tuple[str, ...]:
    left_out = ["prefill", "tail"]
    times = scenario.step_time
    affine = all(
        getattr(model, "per_kv_token_s", 0.0) == 0.0 and model.kind in {"affine", "constant"}
        for model in (times.target, times.draft)
        if model is not None
    )
    if not affine:
        left_out.append("KV growth (mean context used)")
    return tuple(left_out)
