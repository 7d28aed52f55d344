"""The catalogue of formulas on a scenario."""

from __future__ import annotations

from typing import Any

import numpy as np

from psdsim.errors import InputError
from psdsim.run.basis import drafts_beside
from psdsim.run.prepare import costs
from psdsim.scenario import Scenario
from psdsim.schedules import schedule_class
from psdsim.workload import generate


def theory_inputs(scenario: Scenario, k: int, seed: int = 0) -> Any:
    """Return what a scenario gives to the formulas (`analysis.catalogue.Inputs`).

    Step times are taken at `max_num_seqs` requests and the mean context of the workload.
    """
    from analysis.catalogue import Inputs

    requests = generate(scenario.workload, seed, 0, scenario.base_dir)
    decode = requests.output_tokens - 1
    weights = decode if decode.sum() else np.ones(decode.size)
    context = float(
        np.average(requests.prompt_tokens + requests.output_tokens / 2, weights=weights)
    )
    drafting = scenario.draft is not None and k > 0
    times = costs(scenario, drafting)
    m = float(scenario.engine.max_num_seqs)

    def draft(n_seqs: float) -> float:
        if times.draft is None:
            return 0.0
        forwards = (times.draft(n_seqs, n_seqs, n_seqs * (context + i)) for i in range(k))
        return sum(forwards) + (times.draft_start_s if k else 0.0)

    def target(n_seqs: float, rows: int) -> float:
        return times.target(n_seqs, n_seqs * rows, n_seqs * context)

    sync_s = times.sync_s + times.comm_per_token_s * m * k
    forward_s = times.draft(m, m, m * context) if times.draft is not None else 0.0
    rate = None
    if requests.open_loop and requests.arrival_s[-1] > 0:
        rate = len(requests) / float(requests.arrival_s[-1])
    rows = k + 1 if drafting else 1
    prompt = float(requests.prompt_tokens.mean())
    prefill, own_prefill = times.prefill or times.target, times.draft_prefill or times.draft
    return Inputs(
        acceptance=scenario.acceptance,
        k=k if drafting else 0,
        n_seqs=m,
        draft_forward_s=forward_s,
        draft_phase_s=draft(m),
        decode_s=target(m, 1),
        verify_s=target(m, rows),
        half_draft_s=draft(m / 2),
        half_verify_s=target(m / 2, rows),
        overhead_s=times.step_overhead_s,
        sync_s=sync_s,
        target_prefill_s=prefill(1.0, prompt, 0.0),
        draft_prefill_s=own_prefill(1.0, prompt, 0.0) if own_prefill is not None else 0.0,
        draft_cv=times.draft_jitter_cv,
        verify_cv=times.target_jitter_cv,
        n_target_gpus=scenario.target.n_gpus,
        n_draft_gpus=scenario.draft.n_gpus if scenario.draft and not scenario.draft.shared else 0,
        n_tokens=max(1, round(float(np.average(decode, weights=weights)))),
        n_replicas=scenario.engine.n_replicas,
        arrival_rate=rate,
        overhead_per_seq_s=times.step_overhead_per_seq_s,
        serial_beside=drafts_beside(schedule_class("sd"), scenario),
        resume_s=times.target_resume_s,
        slowed=scenario.draft is not None and scenario.draft.slow_downs != (1.0, 1.0),
    )


def theory_table(
    scenario: Scenario | None = None, k: int = 4, names: list[str] | None = None
) -> list[dict[str, Any]]:
    """Return the formulas of the catalogue with their values on a scenario.

    Parameters
    ----------
    scenario
        Deployment and traffic; None is the built-in one.
    k
        Drafted tokens per round.
    names
        Which formulas; None is all.

    Returns
    -------
    list of dict
        name, symbol, meaning, value (None with a reason where an assumption breaks),
        exactness (exact, a bound, or an approximation and what it neglects), equation,
        assumptions, source.

    Examples
    --------
    >>> (row,) = theory_table(k=4, names=["break_even_alpha"])
    >>> round(row["value"], 4)
    0.1636
    """
    from analysis._kinds import Approximation, Bound
    from analysis.catalogue import all_formulas, formula

    scenario = scenario if scenario is not None else Scenario.builtin()
    inputs = theory_inputs(scenario, k)
    rows = []
    for name in names if names is not None else all_formulas():
        entry = formula(name)
        value, reason, exactness = None, None, "exact"
        try:
            found = entry.evaluate(inputs)
            if isinstance(found, Approximation):
                exactness, found = f"approximation: {found.how}", float(np.asarray(found.value))
            elif isinstance(found, Bound):
                exactness, found = f"{found.kind} bound", float(np.asarray(found.value))
            value = float(found)
        except InputError as error:
            reason = str(error)
        rows.append(
            {
                "name": name,
                "symbol": entry.symbol,
                "meaning": entry.meaning,
                "value": value,
                "reason": reason,
                "exactness": exactness,
                "equation": entry.equation,
                "assumptions": list(entry.assumptions),
                "source": entry.source,
            }
        )
    return rows
