"""The "acceptance rates" in circulation, one function each way (theory note 1.5).

All are functions of alpha, the probability per test, and of k where the round is cut at k.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, between, count, give, nonnegative, probability, real
from analysis.rounds import acceptance_length_iid
from analysis.special import geometric_sum
from psdsim.errors import InputError


def acceptance_rate_iid(alpha: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return accepted/drafted = alpha(1-alpha**k)/(k(1-alpha)) (theory note 1.5).

    Examples
    --------
    >>> round(float(acceptance_rate_iid(0.8, 4)), 10)
    0.5904
    """
    n = count("k", k, 1)
    return give(probability("alpha", alpha) * geometric_sum(alpha, n) / n)


def per_test_rate_iid(alpha: ArrayLike) -> FloatArray:
    """Return accepted/(accepted + rejections), which is alpha itself: the rate per test.

    A draft behind a rejection was never tested and counts in neither (theory note 1.5).

    Examples
    --------
    >>> float(per_test_rate_iid(0.8))
    0.8
    """
    return give(probability("alpha", alpha))


def dsi_rate(mean_match: ArrayLike) -> FloatArray:
    """Return 1 - 1/(1 + n), n being the mean longest match, uncut: alpha again (note 1.5).

    Parameters
    ----------
    mean_match
        Mean number of drafts accepted before the first rejection, >= 0 (DSI's n-bar).

    Examples
    --------
    >>> float(dsi_rate(4.0))
    0.8
    """
    return give(1.0 - 1.0 / (1.0 + nonnegative("mean_match", mean_match)))


def mean_match_iid(alpha: ArrayLike) -> FloatArray:
    """Return alpha/(1 - alpha), the mean accepted run between rejections (PEARL's repo MAT).

    The corrected token isn't counted here; `mean_match_with_corrected_iid` counts it. Infinite
    at alpha = 1.

    Examples
    --------
    >>> round(float(mean_match_iid(0.8)), 9)
    4.0
    """
    return give(np.asarray(mean_match_with_corrected_iid(alpha)) - 1.0)


def mean_match_with_corrected_iid(alpha: ArrayLike) -> FloatArray:
    """Return 1/(1 - alpha): the accepted run and its corrected token (nano-PEARL's MAT).

    Examples
    --------
    >>> round(float(mean_match_with_corrected_iid(0.8)), 9)
    5.0
    """
    miss = 1.0 - probability("alpha", alpha)
    return give(np.where(miss > 0.0, 1.0 / np.where(miss > 0.0, miss, 1.0), np.inf))


def alpha_from_mean_match(mean_match: ArrayLike) -> FloatArray:
    """Return alpha from the accepted run between rejections; infinity gives 1.

    Examples
    --------
    >>> float(alpha_from_mean_match(4.0)), float(alpha_from_mean_match(np.inf))
    (0.8, 1.0)
    """
    found = np.asarray(mean_match, dtype=np.float64)
    endless = np.isposinf(found)
    return give(np.where(endless, 1.0, dsi_rate(np.where(endless, 0.0, found))))


def alpha_from_mean_match_with_corrected(mean_match: ArrayLike) -> FloatArray:
    """Return alpha from nano-PEARL's MAT, at least 1: the inverse of 1/(1 - alpha).

    Examples
    --------
    >>> float(alpha_from_mean_match_with_corrected(5.0))
    0.8
    """
    return alpha_from_mean_match(np.asarray(mean_match, dtype=np.float64) - 1.0)


def alpha_from_acceptance_length(length: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return the alpha whose E[N] at k is ``length``: the inverse of `acceptance_length_iid`.

    Parameters
    ----------
    length
        Emitted tokens per target pass, corrected or bonus token counted, in [1, k + 1].
    k
        Drafted tokens, >= 1; broadcasts with ``length``.

    Examples
    --------
    >>> round(float(alpha_from_acceptance_length(3.3616, 4)), 12)
    0.8
    """
    found, n = np.broadcast_arrays(real("length", length), count("k", k, 1))
    if np.any((found < 1.0) | (found > n + 1.0)):
        raise InputError("length is outside what k drafts can emit", expected="1 to k + 1")
    return _invert(lambda alpha: np.asarray(acceptance_length_iid(alpha, n)), found)


def alpha_from_acceptance_rate(rate: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return the alpha whose accepted/drafted share at k is ``rate``.

    Parameters
    ----------
    rate
        Accepted/drafted, in [0, 1] (vLLM's draft acceptance rate).
    k
        Drafted tokens, >= 1; broadcasts with ``rate``.

    Examples
    --------
    >>> round(float(alpha_from_acceptance_rate(0.5904, 4)), 12)
    0.8
    """
    found, n = np.broadcast_arrays(between("rate", rate, 0.0, 1.0), count("k", k, 1))
    return alpha_from_acceptance_length(1.0 + n * found, n)


def _invert(function: Callable[[FloatArray], FloatArray], target: FloatArray) -> FloatArray:
    """Return the argument in [0, 1] at which an increasing function takes ``target``."""
    low, high = np.zeros(target.shape), np.ones(target.shape)
    # Bisection halves the bracket to the spacing of doubles near 1; the ends stay reachable.
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = function(middle) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    at_end = function(np.ones(target.shape)) <= target
    at_start = function(np.zeros(target.shape)) >= target
    return give(np.where(at_end, 1.0, np.where(at_start, 0.0, 0.5 * (low + high))))
