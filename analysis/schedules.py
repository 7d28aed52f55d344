"""The steady state of each schedule: tokens per step, step time, throughput, in one place."""

from __future__ import annotations

from dataclasses import dataclass, field

from analysis import sd
from analysis._checks import one_count
from analysis.schedule_forms import FORMS, Jitter, NoClosedForm, Phases
from psdsim.acceptance import AcceptanceModel, BetaAcceptance

__all__ = ["Jitter", "NoClosedForm", "SteadyState", "steady_state"]


@dataclass(frozen=True)
class SteadyState:
    """Decoding with full batches, prefill and tail left out.

    Parameters
    ----------
    tokens_per_step_per_request
        Tokens that a verified request gains in a step, on average.
    step_time_s
        Mean time of a step, s.
    output_throughput
        Tokens/s.
    assumptions
        What the formula takes for granted.
    source
        Where it is from.
    symbols
        The values that went in.
    """

    tokens_per_step_per_request: float
    step_time_s: float
    output_throughput: float
    assumptions: tuple[str, ...]
    source: str
    symbols: dict[str, float] = field(default_factory=dict)


def steady_state(
    schedule: str,
    *,
    n_seqs_per_step: float,
    acceptance: AcceptanceModel,
    k: int,
    draft_time_s: float,
    verify_time_s: float,
    overhead_s: float = 0.0,
    sync_s: float = 0.0,
    n_tokens: int | None = None,
    jitter: Jitter | None = None,
) -> SteadyState:
    """Return the closed form of a schedule.

    Parameters
    ----------
    schedule
        ``ar``, ``sd``, ``minedraft``, ``pearl``, ``pearl-draft-ahead``, ``pearl-no-post-verify``
        or ``pearl-no-pre-verify``.
    n_seqs_per_step
        Requests verified per step.
    acceptance
        The acceptance model.
    k
        Drafted tokens per round.
    draft_time_s, verify_time_s
        Mean time of a drafting phase and of a target pass, s.
    overhead_s, sync_s
        Fixed costs of a step, of a barrier between two devices, s.
    n_tokens
        Decoded tokens of each request: the value is then n / E[rounds for n], since the stop
        clips the last block. None: endless requests.
    jitter
        Of the two phases.

    Raises
    ------
    NoClosedForm
        If none covers the case.

    Examples
    --------
    >>> from psdsim.acceptance import IidAcceptance
    >>> s = steady_state("minedraft", n_seqs_per_step=1, acceptance=IidAcceptance(alpha=0.5),
    ...                  k=2, draft_time_s=0.25, verify_time_s=0.5)
    >>> s.tokens_per_step_per_request, s.step_time_s, s.output_throughput
    (1.75, 0.5, 3.5)
    """
    if schedule not in FORMS:
        raise NoClosedForm(f"no closed form is known for schedule '{schedule}'")
    one_count("k", k)
    if n_tokens is not None:
        one_count("n_tokens", n_tokens, 1)
    form = FORMS[schedule]
    tokens = form.tokens(acceptance, k, n_tokens)
    draft_only = form.draft_only(acceptance, k, n_tokens)
    phases = Phases(
        draft_time_s, verify_time_s, overhead_s, sync_s, jitter, n_seqs_per_step, draft_only
    )
    time_s = form.time(phases)
    assumptions = ["full batches", "step times at their means"]
    if n_tokens is None:
        assumptions.append("endless requests: no stop clips a block")
    else:
        assumptions.append(f"every request decodes {n_tokens} tokens")
    if isinstance(acceptance, BetaAcceptance) and tokens > 1.0:
        assumptions.append("requests of one length: hard ones stay for more steps (pooled)")
    return SteadyState(
        tokens_per_step_per_request=tokens,
        step_time_s=time_s,
        output_throughput=float(sd.throughput(n_seqs_per_step, tokens, time_s)),
        assumptions=tuple(assumptions),
        source=form.source,
        symbols={
            "n_seqs": n_seqs_per_step,
            "k": k,
            "D": draft_time_s,
            "V": verify_time_s,
            "overhead": overhead_s,
            "sync": sync_s,
        },
    )
