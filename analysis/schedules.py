"""The steady state of each schedule: tokens per step, step time, throughput, in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from analysis import pearl, psd, sd
from analysis.finite import effective_tokens_per_round
from analysis.stages import expected_max
from psdsim.acceptance import (
    AcceptanceModel,
    BetaAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    MeanLengthAcceptance,
)
from psdsim.errors import InputError


class NoClosedForm(InputError):  # noqa: N818 (it is an answer, not a mistake of the caller)
    """No closed form covers this case; the message says why."""


@dataclass(frozen=True)
class Jitter:
    """Random factors of mean 1 on the two phases of a step.

    Parameters
    ----------
    draft_cv, verify_cv
        Coefficients of variation.
    law
        Of both.
    """

    draft_cv: float
    verify_cv: float
    law: Literal["lognormal", "exponential"] = "lognormal"


@dataclass(frozen=True)
class SteadyState:
    """Decoding with full batches, prefill and tail left out.

    Parameters
    ----------
    tokens_per_step_per_request
        Tokens that a verified request gains in a step.
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


@dataclass(frozen=True)
class _Phases:
    draft_s: float
    verify_s: float
    overhead_s: float
    sync_s: float
    jitter: Jitter | None


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
        ``ar``, ``sd``, ``minedraft``, ``pearl`` or ``pearl-draft-ahead``.
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
        Decoded tokens of a request: the stop inside its last block is then counted. None:
        endless requests.
    jitter
        Of the two phases.

    Raises
    ------
    NoClosedForm
        If none covers the case.

    Examples
    --------
    >>> s = steady_state("minedraft", n_seqs_per_step=1, acceptance=IidAcceptance(alpha=0.5),
    ...                  k=2, draft_time_s=0.25, verify_time_s=0.5)
    >>> s.tokens_per_step_per_request, s.step_time_s, s.output_throughput
    (1.75, 0.5, 3.5)
    """
    if schedule not in _FORMS:
        raise NoClosedForm(f"no closed form is known for schedule '{schedule}'")
    form = _FORMS[schedule]
    phases = _Phases(draft_time_s, verify_time_s, overhead_s, sync_s, jitter)
    tokens = form.tokens(acceptance, k, n_tokens)
    time_s = form.time(phases)
    assumptions = ["full batches", "step times at their means"]
    if n_tokens is None:
        assumptions.append("endless requests: no stop clips a block")
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


def _one_token(acceptance: AcceptanceModel, k: int, n_tokens: int | None) -> float:
    return 1.0


def _chain_tokens(acceptance: AcceptanceModel, k: int, n_tokens: int | None) -> float:
    """Tokens per round of chain drafts: E[L] + 1, or n / E[rounds for n]."""
    if k == 0:
        return 1.0
    if acceptance.judged_by == "replay":
        raise NoClosedForm("a replayed recording has no law to put into a formula")
    if isinstance(acceptance, BetaAcceptance):
        return acceptance.pooled_acceptance_length(k)
    if n_tokens is None:
        return acceptance.acceptance_length(k)
    pmf = np.concatenate([[0.0], acceptance.pmf(k)])
    # Rounds with memory are treated as independent here: an error of the order of one round.
    return effective_tokens_per_round(n_tokens, pmf)


def _pearl_tokens(acceptance: AcceptanceModel, k: int, n_tokens: int | None) -> float:
    if isinstance(acceptance, IidAcceptance | MeanLengthAcceptance):
        alpha, after_reject = acceptance.alpha, None
    elif isinstance(acceptance, MarkovAcceptance):
        alpha, after_reject = acceptance.after_accept, acceptance.after_reject
    else:
        kind = getattr(acceptance, "kind", type(acceptance).__name__)
        raise NoClosedForm(f"PEARL's chain has a closed form for iid and markov, not for {kind}")
    if n_tokens is None:
        return float(pearl.tokens_per_step(alpha, k, after_reject))
    return n_tokens / pearl.expected_steps(n_tokens, alpha, k, after_reject)


def _verify_only(p: _Phases) -> float:
    return p.overhead_s + p.verify_s


def _serial(p: _Phases) -> float:
    return float(sd.step_time(p.draft_s, p.verify_s, p.overhead_s))


def _overlapped(p: _Phases) -> float:
    if p.jitter is None:
        return float(psd.step_time(p.draft_s, p.verify_s, p.overhead_s, p.sync_s))
    j = p.jitter
    longer = expected_max(p.draft_s, j.draft_cv, p.verify_s, j.verify_cv, j.law)
    return p.overhead_s + longer + p.sync_s


@dataclass(frozen=True)
class _Form:
    tokens: Callable[[AcceptanceModel, int, int | None], float]
    time: Callable[[_Phases], float]
    source: str


_PEARL = _Form(
    _pearl_tokens, _overlapped, "R(alpha, k) / max(D, V): chain of PEARL (arXiv 2408.11850)"
)
_FORMS: dict[str, _Form] = {
    "ar": _Form(_one_token, _verify_only, "1 / V"),
    "sd": _Form(_chain_tokens, _serial, "E[N] / (D + V): Leviathan 2023, Eq. 1, Theorem 3.8"),
    "minedraft": _Form(
        _chain_tokens, _overlapped, "E[N] / max(D, V): MineDraft (arXiv 2603.18016)"
    ),
    "pearl": _PEARL,
    "pearl-draft-ahead": _PEARL,
}
