"""Estimates of acceptance from recorded rounds, with standard errors.

A round of k drafts with L accepted is a censored observation: L < k says where the first
rejection was, L = k only that it wasn't among the first k. Drafts behind a rejection were not
tested. Rounds may have different k, as the last round of a request or an adaptive drafter has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, IntArray, count, positive
from analysis._kinds import AssumptionError
from analysis.rounds import accepted_variance_iid
from analysis.rounds_rates import alpha_from_acceptance_length
from psdsim.errors import InputError


class NothingTestedError(AssumptionError):
    """No draft was tested, so there is nothing to estimate a rate from."""


@dataclass(frozen=True)
class Estimate:
    """A number from data, and how uncertain it is.

    Parameters
    ----------
    value
        The estimate, or an array of them.
    standard_error
        As many; ``nan`` where one observation gives none.
    n
        Observations behind each: tests, rounds or requests.

    Examples
    --------
    >>> Estimate(0.75, 0.2, 4).n
    4
    """

    value: float | FloatArray
    standard_error: float | FloatArray
    n: int | IntArray


def _rounds(accepted: ArrayLike, drafted: ArrayLike) -> tuple[IntArray, IntArray]:
    found, k = np.broadcast_arrays(count("accepted", accepted), count("drafted", drafted))
    if np.any(found > k):
        raise InputError("a round accepts more than it drafts", expected="accepted <= drafted")
    return found.ravel(), k.ravel()


def _share(hits: float, tests: float) -> tuple[float, float]:
    rate = hits / tests
    return rate, float(np.sqrt(rate * (1.0 - rate) / tests))


def per_test_rate(accepted: ArrayLike, drafted: ArrayLike) -> Estimate:
    """Return alpha = accepted/(accepted + rejections), the MLE under censoring (note 1.5).

    Its standard error is sqrt(alpha (1 - alpha)/tests): the censored likelihood of i.i.d. rounds
    is that of independent tests. It is 0 where all tests agree.

    Parameters
    ----------
    accepted
        Shape (n,): L of each round.
    drafted
        k of each round, or one k for all.

    Examples
    --------
    >>> per_test_rate([2, 0, 1], 2)   # 3 accepted, 2 rejections: the first round had none
    Estimate(value=0.6, standard_error=0.21908902300206645, n=5)
    """
    found, k = _rounds(accepted, drafted)
    hits = int(found.sum())
    tests = hits + int((found < k).sum())
    if tests == 0:
        raise NothingTestedError("no draft was tested", expected="a round with k of at least 1")
    return Estimate(*_share(hits, tests), tests)


def conditional_rates(accepted: ArrayLike, drafted: ArrayLike) -> Estimate:
    """Return the rate at each draft position, (L >= j)/(L >= j-1 and k >= j), j = 1, 2, ...

    The product-limit estimator of Kaplan and Meier 1958 with rounds cut at their own k. A
    position that no round tested has ``nan``.

    Parameters
    ----------
    accepted, drafted
        As in `per_test_rate`.

    Examples
    --------
    >>> found = conditional_rates([2, 0, 1], 2)
    >>> found.value.round(9).tolist(), found.n.tolist()
    ([0.666666667, 0.5], [3, 2])
    """
    found, k = _rounds(accepted, drafted)
    j = np.arange(1, int(k.max(initial=0)) + 1)[:, None]
    tests = ((found >= j - 1) & (k >= j)).sum(axis=1)
    hits = ((found >= j) & (k >= j)).sum(axis=1)
    if not tests.any():
        raise NothingTestedError("no draft was tested", expected="a round with k of at least 1")
    rate = np.where(tests > 0, hits / np.maximum(tests, 1), np.nan)
    error = np.sqrt(rate * (1.0 - rate) / np.maximum(tests, 1))
    return Estimate(rate, error, tests)


def acceptance_length_censored(accepted: ArrayLike, drafted: ArrayLike, k: int) -> Estimate:
    """Return E[N] at k from rounds of different k: 1 plus the sum of products of the rates.

    The standard error is the delta method on the independent `conditional_rates`, Greenwood's
    formula summed over positions.

    Parameters
    ----------
    accepted, drafted
        As in `per_test_rate`.
    k
        Draft length to estimate for, at most the greatest one drafted.

    Examples
    --------
    >>> round(acceptance_length_censored([2, 0, 1], 2, 2).value, 9)   # 1 + 2/3 + 1/3
    2.0
    """
    rates = conditional_rates(accepted, drafted)
    value, tests = np.atleast_1d(rates.value), np.atleast_1d(rates.n)
    n = int(count("k", k))
    p = np.where(tests[:n] > 0, value[:n], 0.0)
    reach = np.cumprod(p)
    before = np.concatenate([[1.0], reach])[: p.size]
    # After a rate of 0 nothing is reached, so that what was not tested there doesn't matter.
    if n > value.size or np.any((tests[:n] == 0) & (before > 0.0)):
        raise NothingTestedError(
            f"k is {n} and no round tested so many drafts", expected="a k that was measured"
        )
    # d E[N] / d p_i is the chance to get there times all that can follow.
    slope = np.empty(n)
    follow = 1.0
    for i in range(n - 1, -1, -1):
        slope[i] = before[i] * follow
        follow = 1.0 + p[i] * follow
    variance = (slope**2 * p * (1.0 - p) / np.maximum(tests[:n], 1)).sum()
    return Estimate(float(1.0 + reach.sum()), float(np.sqrt(variance)), int(tests[:1].sum()))


def first_rates_by_memory(accepted: ArrayLike, drafted: ArrayLike) -> tuple[Estimate, Estimate]:
    """Return P(first draft accepted) after a round with a rejection, and after a full one.

    These are r and f of `analysis.rounds_correlated`; a difference of several standard errors
    says that rejections cluster (theory notes 2.2a, 2.3).

    Parameters
    ----------
    accepted, drafted
        Successive rounds of one request, as in `per_test_rate`; rounds without drafts have no
        first test and count as full.

    Examples
    --------
    >>> after_rejection, after_full = first_rates_by_memory([2, 0, 1, 2, 1], 2)
    >>> after_rejection.value, after_full.value   # after 0 and 1; after 2 and 2
    (1.0, 0.5)
    """
    found, k = _rounds(accepted, drafted)
    full, tested, hit = (found == k)[:-1], k[1:] >= 1, found[1:] >= 1
    out = []
    for before, name in ((~full, "rejection"), (full, "full round")):
        tests = int((before & tested).sum())
        if tests == 0:
            raise NothingTestedError(f"no draft was tested after a {name}", expected="at least one")
        out.append(Estimate(*_share(int((before & tested & hit).sum()), tests), tests))
    return out[0], out[1]


def alpha_from_mean_length(mean_length: float, k: int, n_rounds: int) -> Estimate:
    """Return alpha matched to a mean acceptance length, for when only counters are known.

    Engines count rounds, drafts and accepted tokens but not full rounds, so `per_test_rate` is
    out of reach. The standard error is the delta method under i.i.d. acceptance,
    sqrt(Var[N]/n) / (dE[N]/d alpha); at alpha of 0 or 1 it is 0.

    Parameters
    ----------
    mean_length
        Emitted tokens per round, corrected or bonus token counted, in [1, k + 1].
    k
        Drafted tokens of every round, >= 1.
    n_rounds
        Rounds behind the mean, >= 1.

    Examples
    --------
    >>> found = alpha_from_mean_length(1.75, 2, 100)
    >>> round(found.value, 9), round(found.standard_error, 9)   # sqrt(.6875/100) / 2
    (0.5, 0.04145781)
    """
    n = int(count("n_rounds", n_rounds, 1))
    alpha = float(alpha_from_acceptance_length(mean_length, k))
    # d/d alpha of 1 + alpha + ... + alpha^k.
    j = np.arange(1, int(k) + 1)
    slope = float((j * alpha ** (j - 1.0)).sum())
    error = float(np.sqrt(accepted_variance_iid(alpha, k) / n)) / slope
    return Estimate(alpha, error, n)


def pooled_length(n_tokens: ArrayLike, n_rounds: ArrayLike) -> Estimate:
    """Return tokens/rounds over all requests, with the ratio estimator's error (note 4.3).

    Requests, not rounds, are the independent observations: rounds of one request share its
    text. It is the harmonic mean where requests are equally long.

    Parameters
    ----------
    n_tokens, n_rounds
        Shape (n,): of each request, > 0.

    Examples
    --------
    >>> found = pooled_length([8.0, 8.0], [4.0, 2.0])
    >>> round(found.value, 9), round(found.standard_error, 9)
    (2.666666667, 0.888888889)
    """
    tokens, rounds = positive("n_tokens", n_tokens).ravel(), positive("n_rounds", n_rounds).ravel()
    if tokens.shape != rounds.shape or tokens.size == 0:
        raise InputError(
            f"there are {tokens.size} token counts and {rounds.size} round counts",
            expected="one of each per request",
        )
    n = tokens.size
    ratio = float(tokens.sum() / rounds.sum())
    if n == 1:
        return Estimate(ratio, float("nan"), 1)
    spread = ((tokens - ratio * rounds) ** 2).sum() / (n - 1)
    return Estimate(ratio, float(np.sqrt(spread / n) / rounds.mean()), n)


def mean_of_lengths(n_tokens: ArrayLike, n_rounds: ArrayLike) -> Estimate:
    """Return the mean over requests of tokens/rounds: what a request sees, not what a GPU does.

    Examples
    --------
    >>> mean_of_lengths([8.0, 8.0], [4.0, 2.0])
    Estimate(value=3.0, standard_error=1.0, n=2)
    """
    each = positive("n_tokens", n_tokens) / positive("n_rounds", n_rounds)
    if each.size == 0:
        raise InputError("there is no request", expected="at least one")
    n = each.size
    error = float(each.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return Estimate(float(each.mean()), error, n)


def ratio_relative_error(
    mean_tokens: float, var_tokens: float, mean_time: float, var_time: float, covariance: float
) -> float:
    """Return sqrt(Var N/E[N]^2 + Var C/E[C]^2 - 2 Cov/(E[N] E[C])), to be divided by sqrt(cycles).

    The relative standard error of a throughput, tokens over time of K cycles (theory note 4.3).

    Examples
    --------
    >>> round(ratio_relative_error(3.3616, 2.57004544, 1.0, 0.0, 0.0), 6)
    0.476897
    """
    n, c = float(positive("mean_tokens", mean_tokens)), float(positive("mean_time", mean_time))
    square = var_tokens / n**2 + var_time / c**2 - 2.0 * covariance / (n * c)
    if not square >= 0.0:
        raise InputError("the covariance is beyond the variances", expected="a possible one")
    return float(np.sqrt(square))
