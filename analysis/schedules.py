"""The steady state of each schedule: tokens per step, step time, throughput, in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from analysis import finite_memory, pearl, psd, sd
from analysis._checks import nonnegative, one_count
from analysis.finite import effective_tokens_per_round
from analysis.rounds import accepted_pmf_position, tokens_pmf
from analysis.stages import expected_max
from psdsim.acceptance import (
    AcceptanceModel,
    BetaAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    MarkovRoundsAcceptance,
    MeanLengthAcceptance,
)
from psdsim.errors import InputError


class NoClosedForm(InputError):  # noqa: N818 (it is an answer, not a mistake of the caller)
    """No closed form covers this case; the message says why.

    Examples
    --------
    >>> NoClosedForm("arrivals are open").reason
    'arrivals are open'
    """

    @property
    def reason(self) -> str:
        """Why there is none, one sentence."""
        return self.what


@dataclass(frozen=True)
class Jitter:
    """Random factors of mean 1 on the two phases of a step.

    Parameters
    ----------
    draft_cv, verify_cv
        Coefficients of variation.
    law
        Of both; an exponential's coefficient of variation is 1, or 0 for a constant.
    """

    draft_cv: float
    verify_cv: float
    law: Literal["lognormal", "exponential"] = "lognormal"

    def __post_init__(self) -> None:
        nonnegative("draft_cv", self.draft_cv)
        nonnegative("verify_cv", self.verify_cv)


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
    >>> s = steady_state("minedraft", n_seqs_per_step=1, acceptance=IidAcceptance(alpha=0.5),
    ...                  k=2, draft_time_s=0.25, verify_time_s=0.5)
    >>> s.tokens_per_step_per_request, s.step_time_s, s.output_throughput
    (1.75, 0.5, 3.5)
    """
    if schedule not in _FORMS:
        raise NoClosedForm(f"no closed form is known for schedule '{schedule}'")
    one_count("k", k)
    if n_tokens is not None:
        one_count("n_tokens", n_tokens, 1)
    form = _FORMS[schedule]
    phases = _Phases(draft_time_s, verify_time_s, overhead_s, sync_s, jitter)
    tokens = form.tokens(acceptance, k, n_tokens)
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


def _one_token(acceptance: AcceptanceModel, k: int, n_tokens: int | None) -> float:
    return 1.0


def _chain_tokens(acceptance: AcceptanceModel, k: int, n_tokens: int | None) -> float:
    """Tokens per round of chain drafts: E[L] + 1, or n / E[rounds for n]."""
    if k == 0:
        return 1.0
    if acceptance.judged_by == "replay":
        raise NoClosedForm("a replayed recording has no law to put into a formula")
    if n_tokens is None:
        return acceptance.pooled_acceptance_length(k)
    rounds = _rounds_with_memory(acceptance, k, n_tokens)
    if rounds is not None:
        return n_tokens / rounds
    return effective_tokens_per_round(n_tokens, tokens_pmf(acceptance.pmf(k)))


def _rounds_with_memory(acceptance: AcceptanceModel, k: int, n_tokens: int) -> float | None:
    """Return E[rounds for n tokens] where rounds are not independent and alike, else None."""
    if isinstance(acceptance, BetaAcceptance):
        return finite_memory.expected_rounds_beta(n_tokens, *acceptance.shape, k)
    if isinstance(acceptance, MarkovAcceptance):
        return finite_memory.expected_rounds_markov(
            n_tokens, acceptance.after_accept, acceptance.after_reject, k
        )
    if isinstance(acceptance, MarkovRoundsAcceptance):
        full, other = acceptance.conditional_rates_after(k)
        # The first round of an output follows no full one.
        return finite_memory.expected_rounds_markov_rounds(
            n_tokens, accepted_pmf_position(other), accepted_pmf_position(full)
        )
    return None


def _pearl_tokens(acceptance: AcceptanceModel, k: int, n_tokens: int | None) -> float:
    if isinstance(acceptance, IidAcceptance | MeanLengthAcceptance):
        alpha, after_reject, at_start = acceptance.alpha, None, None
    elif isinstance(acceptance, MarkovAcceptance):
        alpha, after_reject = acceptance.after_accept, acceptance.after_reject
        at_start = finite_memory.stationary_rate(alpha, after_reject)
    else:
        kind = getattr(acceptance, "kind", type(acceptance).__name__)
        raise NoClosedForm(
            f"PEARL's chain has a closed form for iid, mean_length and markov, not for {kind}"
        )
    if n_tokens is None:
        return float(pearl.tokens_per_step(alpha, k, after_reject))
    return n_tokens / pearl.expected_steps(n_tokens, alpha, k, after_reject, at_start)


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
