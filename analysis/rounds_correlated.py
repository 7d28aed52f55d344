"""Rounds whose acceptance has memory: from round to round, or over output positions.

Symbols as in `analysis.rounds`. A chain of rounds remembers one bit, whether the round before was
accepted in full: ``after_rejection`` (r) and ``after_full`` (f) are the rates of the first draft,
``later`` those of drafts 2..k given the one before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, count, give, one_count, probability
from analysis._kinds import AssumptionError
from analysis.rounds import accepted_pmf_position, pmf_mean, pmf_variance
from analysis.special import geometric_sum, one_minus_power
from psdsim.errors import InputError


class NotMixingError(AssumptionError):
    """The chain of rounds never leaves the state that it starts in, so it has no one mean."""


def _later(later: ArrayLike) -> FloatArray:
    found = probability("later", later)
    if found.ndim == 0:
        raise InputError("later is a single number", expected="one rate per draft from the second")
    return found


def full_round_share(
    after_rejection: ArrayLike, after_full: ArrayLike, later: ArrayLike
) -> FloatArray:
    """Return the share of rounds accepted in full, r P / (1 - (f - r) P) (theory note 2.2a).

    P is the product of ``later``, the chance that nothing after the first draft is rejected.

    Parameters
    ----------
    after_rejection, after_full
        P(first draft accepted | previous round had a rejection / was fully accepted).
    later
        Shape (..., k - 1): P(draft j accepted | draft j-1 accepted), j = 2..k; empty for k = 1.

    Raises
    ------
    NotMixingError
        If both states of the chain are absorbing.

    Examples
    --------
    >>> round(float(full_round_share(0.55, 0.85, [0.8, 0.8, 0.8])), 8)
    0.33270321
    """
    r, f = probability("after_rejection", after_rejection), probability("after_full", after_full)
    all_later = np.prod(_later(later), axis=-1)
    leaves = 1.0 - (f - r) * all_later
    if np.any(leaves <= 0.0):
        raise NotMixingError(
            "after_rejection is 0 and after a full round everything is accepted",
            expected="a chain that leaves both states",
        )
    return give(r * all_later / leaves)


def accepted_pmf_markov_rounds(
    after_rejection: float, after_full: float, later: ArrayLike
) -> FloatArray:
    """Return P(L = j), j = 0..k, of a stationary round: the two laws mixed by `full_round_share`.

    Parameters
    ----------
    after_rejection, after_full, later
        As in `full_round_share`, for one chain.

    Returns
    -------
    Array of shape (k + 1,); its last entry is `full_round_share` again.

    Examples
    --------
    >>> accepted_pmf_markov_rounds(0.5, 0.5, [0.5]).tolist()
    [0.5, 0.25, 0.25]
    """
    full = float(full_round_share(after_rejection, after_full, later))
    slow, fast = _laws(after_rejection, after_full, later)
    return give((1.0 - full) * slow + full * fast)


def _laws(
    after_rejection: float, after_full: float, later: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the laws of L after a rejection and after a full round, shape (k + 1,) each."""
    rest = _later(later)
    if rest.ndim != 1:
        raise InputError(f"later has shape {rest.shape}", expected="the rates of one chain")
    both = np.stack([np.append(first, rest) for first in (after_rejection, after_full)])
    slow, fast = accepted_pmf_position(both)
    return slow, fast


def acceptance_length_markov_rounds(
    after_rejection: ArrayLike, after_full: ArrayLike, later: ArrayLike
) -> FloatArray:
    """Return E[N] when the first draft's rate depends on the previous round (theory note 2.2a).

    Parameters
    ----------
    after_rejection, after_full
        P(first draft accepted | previous round had a rejection / was fully accepted).
    later
        Shape (..., k - 1): P(draft j accepted | draft j-1 accepted), j = 2..k; empty for k = 1.

    Examples
    --------
    >>> round(float(acceptance_length_markov_rounds(0.55, 0.85, [0.8, 0.8, 0.8])), 6)
    2.918242
    """
    r, f = probability("after_rejection", after_rejection), probability("after_full", after_full)
    full = full_round_share(r, f, later)
    reach = np.cumprod(_later(later), axis=-1).sum(axis=-1)
    return give(1.0 + ((1.0 - full) * r + full * f) * (1.0 + reach))


def accepted_variance_markov_rounds(
    after_rejection: float, after_full: float, later: ArrayLike
) -> float:
    """Return Var[L] of one stationary round; `lag_covariance_markov_rounds` has the memory.

    Examples
    --------
    >>> accepted_variance_markov_rounds(0.5, 0.5, [])
    0.25
    """
    return float(pmf_variance(accepted_pmf_markov_rounds(after_rejection, after_full, later)))


def lag_covariance_markov_rounds(
    after_rejection: float, after_full: float, later: ArrayLike, lag: ArrayLike
) -> FloatArray:
    """Return Cov[L of round t, L of round t + lag] = w^(lag-1) pi (k - E[L]) (m_f - m_r).

    pi is `full_round_share`, m_f and m_r the means of L after a full round and after any other,
    and w = (f - r) P the second eigenvalue of the two-state chain (own derivation: the later
    round depends on the earlier one only through its being full).

    Parameters
    ----------
    after_rejection, after_full, later
        As in `full_round_share`, for one chain.
    lag
        Rounds between, >= 1, any shape.

    Examples
    --------
    >>> round(float(lag_covariance_markov_rounds(0.4, 0.8, [], 1)), 12)   # L is the chain's bit
    0.088888888889
    """
    slow, fast = _laws(after_rejection, after_full, later)
    full = float(full_round_share(after_rejection, after_full, later))
    mean_slow, mean_fast = float(pmf_mean(slow)), float(pmf_mean(fast))
    mean = (1.0 - full) * mean_slow + full * mean_fast
    k = slow.size - 1
    memory = fast[-1] - slow[-1]
    first = full * (k - mean) * (mean_fast - mean_slow)
    return give(first * memory ** (count("lag", lag, 1) - 1))


def long_run_variance_markov_rounds(
    after_rejection: float, after_full: float, later: ArrayLike
) -> float:
    """Return lim Var[L_1 + ... + L_n] / n = Var[L] + 2 Cov_1 / (1 - w), w as for the lags.

    This is what stands in the place of Var[L] in every standard error over successive rounds
    (own derivation: the geometric series of `lag_covariance_markov_rounds`).

    Examples
    --------
    >>> round(long_run_variance_markov_rounds(0.4, 0.8, []), 9)   # p q (1 + w) / (1 - w), w = .4
    0.518518519
    """
    slow, fast = _laws(after_rejection, after_full, later)
    memory = float(fast[-1] - slow[-1])
    if memory <= -1.0:
        raise NotMixingError(
            "full rounds and others alternate for ever", expected="a chain with a limit"
        )
    first = float(lag_covariance_markov_rounds(after_rejection, after_full, later, 1))
    one = accepted_variance_markov_rounds(after_rejection, after_full, later)
    return one + 2.0 * first / (1.0 - memory)


def chain_of_rounds_markov(
    after_accept: float, after_reject: float, k: int
) -> tuple[float, float, FloatArray]:
    """Return (r, f, later) of the chain of rounds that a chain over positions makes.

    A round that follows a rejection starts after a 0; one that follows a full acceptance starts
    after the bonus position, whose own bit was never tested and is 1 with ``after_accept``.
    So r = a0, later = a1 and f = a1 a1 + (1 - a1) a0 (own derivation).

    Parameters
    ----------
    after_accept, after_reject
        a1 = P(bit 1 | previous bit 1) and a0 = P(bit 1 | previous bit 0).
    k
        Drafted tokens, >= 1.

    Returns
    -------
    What `accepted_pmf_markov_rounds` and its neighbours take.

    Examples
    --------
    >>> r, f, later = chain_of_rounds_markov(0.5, 0.25, 3)
    >>> r, f, later.tolist()
    (0.25, 0.375, [0.5, 0.5])
    """
    a1 = float(probability("after_accept", after_accept))
    a0 = float(probability("after_reject", after_reject))
    return a0, a1 * a1 + (1.0 - a1) * a0, np.full(one_count("k", k, 1) - 1, a1)


def acceptance_length_markov(
    after_accept: ArrayLike, after_reject: ArrayLike, k: ArrayLike
) -> FloatArray:
    """Return E[N] of serial rounds when acceptance is a Markov chain over output positions.

    It is `acceptance_length_markov_rounds` of `chain_of_rounds_markov`, broadcast.

    Parameters
    ----------
    after_accept, after_reject
        a1 = P(bit 1 | previous bit 1) and a0 = P(bit 1 | previous bit 0).
    k
        Drafted tokens, >= 1.

    Examples
    --------
    >>> round(float(acceptance_length_markov(0.8, 0.8, 4)), 10)  # no memory: the i.i.d. value
    3.3616
    """
    a1, a0 = probability("after_accept", after_accept), probability("after_reject", after_reject)
    n = count("k", k, 1)
    after_full = a1 * a1 + (1.0 - a1) * a0
    all_later = 1.0 - one_minus_power(a1, n - 1)
    never_ends = 1.0 - (after_full - a0) * all_later
    if np.any(never_ends <= 0.0):
        raise NotMixingError("after_accept is 1 and after_reject is 0", expected="a mixing chain")
    full = a0 * all_later / never_ends
    return give(1.0 + ((1.0 - full) * a0 + full * after_full) * geometric_sum(a1, n))


def accepted_pmf_markov(after_accept: float, after_reject: float, k: int) -> FloatArray:
    """Return P(L = j), j = 0..k, of a stationary serial round under a chain over positions.

    Examples
    --------
    >>> accepted_pmf_markov(0.5, 0.5, 2).tolist()
    [0.5, 0.25, 0.25]
    """
    return accepted_pmf_markov_rounds(*chain_of_rounds_markov(after_accept, after_reject, k))


def accepted_variance_markov(after_accept: float, after_reject: float, k: int) -> float:
    """Return Var[L] of a stationary serial round under a chain over positions.

    Examples
    --------
    >>> round(accepted_variance_markov(0.8, 0.8, 4), 8)   # no memory: the i.i.d. value
    2.57004544
    """
    return float(pmf_variance(accepted_pmf_markov(after_accept, after_reject, k)))
