"""What each schedule gains in a step and how long the step lasts: the forms behind `schedules`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from analysis import finite_memory, pearl, pearl_ablations, psd, sd
from analysis._checks import FloatArray, nonnegative
from analysis.finite import effective_tokens_per_round, expected_rounds
from analysis.rounds import accepted_pmf_position, tokens_pmf
from analysis.stages import expected_max
from psdsim.acceptance import (
    AcceptanceModel,
    BetaAcceptance,
    EnsembleAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    MarkovRoundsAcceptance,
    MeanLengthAcceptance,
    RelaxedAcceptance,
)
from psdsim.errors import InputError

_MOST_RATES = 1000
"""Requests' rates that a mean over rounds is taken of, one recursion each."""


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
class Phases:
    """The parts of a step's time.

    Parameters
    ----------
    draft_s, verify_s, overhead_s, sync_s
        Mean drafting phase and target pass, fixed costs of a step and of a barrier, s.
    jitter
        Of the two phases.
    n_seqs
        Requests per step.
    draft_only
        Share of steps in which a request only drafts.
    """

    draft_s: float
    verify_s: float
    overhead_s: float
    sync_s: float
    jitter: Jitter | None
    n_seqs: float = 1.0
    draft_only: float = 0.0


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
    if isinstance(acceptance, RelaxedAcceptance):
        return _rounds_of_rates(n_tokens, *acceptance.request_rates(), k)
    if isinstance(acceptance, EnsembleAcceptance):
        raise NoClosedForm("the state of the text at a round's start hangs on the round before")
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


def _rounds_of_rates(n_tokens: int, rates: FloatArray, weights: FloatArray, k: int) -> float | None:
    """Return E[rounds for n tokens] over requests of several rates; None where all are alike."""
    if rates.size == 1:
        return None
    if rates.size > _MOST_RATES:
        raise NoClosedForm("requests differ in acceptance and in the weight of the verifier")
    laws = [tokens_pmf(accepted_pmf_position([rate] * k)) for rate in rates.tolist()]
    rounds = [expected_rounds(n_tokens, law) for law in laws]
    return float(weights @ rounds)


def _pearl_rates(acceptance: AcceptanceModel) -> tuple[float, float | None, float | None]:
    """Return P(accept) after an accepted token, after a rejected one, and of the first one."""
    if isinstance(acceptance, IidAcceptance | MeanLengthAcceptance):
        return acceptance.alpha, None, None
    if isinstance(acceptance, MarkovAcceptance):
        after_accept, after_reject = acceptance.after_accept, acceptance.after_reject
        start = finite_memory.stationary_rate(after_accept, after_reject)
        return after_accept, after_reject, start
    kind = getattr(acceptance, "kind", type(acceptance).__name__)
    raise NoClosedForm(
        f"PEARL's chain has a closed form for iid, mean_length and markov, not for {kind}"
    )


def _pearl_tokens(
    long_run: Callable[[float, int, float | None], FloatArray], steps: Callable[..., float]
) -> Callable[[AcceptanceModel, int, int | None], float]:
    """Return tokens per step of a chain like PEARL's: its R, or n / E[steps for n]."""

    def tokens(acceptance: AcceptanceModel, k: int, n_tokens: int | None) -> float:
        alpha, after_reject, at_start = _pearl_rates(acceptance)
        if n_tokens is None:
            return float(long_run(alpha, k, after_reject))
        return n_tokens / steps(n_tokens, alpha, k, after_reject, at_start)

    return tokens


def _no_pre_share(acceptance: AcceptanceModel, k: int, n_tokens: int | None) -> float:
    alpha, after_reject, at_start = _pearl_rates(acceptance)
    return pearl_ablations.draft_only_share(alpha, k, n_tokens, after_reject, at_start)


def _verify_only(p: Phases) -> float:
    return p.overhead_s + p.verify_s


def _serial(p: Phases) -> float:
    return float(sd.step_time(p.draft_s, p.verify_s, p.overhead_s))


def _overlapped(p: Phases) -> float:
    if p.jitter is None:
        return float(psd.step_time(p.draft_s, p.verify_s, p.overhead_s, p.sync_s))
    j = p.jitter
    longer = expected_max(p.draft_s, j.draft_cv, p.verify_s, j.verify_cv, j.law)
    return p.overhead_s + longer + p.sync_s


def _no_pre_verify(p: Phases) -> float:
    """Return the mean step: where nobody is verified it lasts as long as drafting."""
    step_s = _overlapped(p)
    if p.jitter is None and p.draft_s >= p.verify_s:
        return step_s
    if p.n_seqs > 1:
        raise NoClosedForm(
            "without pre-verify requests may all draft only, which shortens the step: how often "
            "depends on the batch"
        )
    return p.draft_only * (p.overhead_s + p.draft_s + p.sync_s) + (1 - p.draft_only) * step_s


@dataclass(frozen=True)
class Form:
    """The closed form of one schedule.

    Parameters
    ----------
    tokens
        Tokens per step and request, from the acceptance, k and the tokens of each output.
    time
        Mean time of a step, s.
    source
        Where it is from.
    draft_only
        Share of steps in which a request only drafts, from what `tokens` takes.
    """

    tokens: Callable[[AcceptanceModel, int, int | None], float]
    time: Callable[[Phases], float]
    source: str
    draft_only: Callable[[AcceptanceModel, int, int | None], float] = lambda *_: 0.0


_PEARL = Form(
    _pearl_tokens(pearl.tokens_per_step, pearl.expected_steps),
    _overlapped,
    "R(alpha, k) / max(D, V): chain of PEARL (arXiv 2408.11850)",
)
FORMS: dict[str, Form] = {
    "ar": Form(_one_token, _verify_only, "1 / V"),
    "sd": Form(_chain_tokens, _serial, "E[N] / (D + V): Leviathan 2023, Eq. 1, Theorem 3.8"),
    "minedraft": Form(_chain_tokens, _overlapped, "E[N] / max(D, V): MineDraft (arXiv 2603.18016)"),
    "pearl": _PEARL,
    "pearl-draft-ahead": _PEARL,
    "pearl-no-post-verify": Form(
        _pearl_tokens(
            pearl.tokens_per_step_no_post_verify, pearl_ablations.expected_steps_no_post_verify
        ),
        _overlapped,
        "PEARL's chain without post-verify: theory note 3.5",
    ),
    "pearl-no-pre-verify": Form(
        _pearl_tokens(
            pearl.tokens_per_step_no_pre_verify,
            lambda *a: sum(pearl_ablations.expected_steps_no_pre_verify(*a)),
        ),
        _no_pre_verify,
        "PEARL's chain without pre-verify: theory note 3.5",
        _no_pre_share,
    ),
}
