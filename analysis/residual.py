"""The acceptance rule of lossless speculative sampling, on explicit next-token distributions.

p is the target's and q the drafter's law of the next token; arrays have the vocabulary on the
last axis and broadcast over the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, give, probability
from analysis._kinds import AssumptionError
from psdsim.errors import InputError


class NoRejectionError(AssumptionError):
    """p and q are the same law, so nothing is ever rejected and there is no residual law."""


def _laws(p: ArrayLike, q: ArrayLike) -> tuple[FloatArray, FloatArray]:
    target, drafter = probability("p", p), probability("q", q)
    for name, found in (("p", target), ("q", drafter)):
        if found.ndim == 0 or np.any(np.abs(found.sum(axis=-1) - 1.0) > 1e-9):
            raise InputError(f"{name} doesn't sum to 1", expected="laws along the last axis")
    if target.shape[-1] != drafter.shape[-1]:
        raise InputError(
            f"p has {target.shape[-1]} tokens and q {drafter.shape[-1]}", expected="one vocabulary"
        )
    return target, drafter


def total_variation(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """Return TV(p, q) = half the sum of |p - q| (theory note 1.1).

    Parameters
    ----------
    p, q
        Shape (..., V): laws along the last axis.

    Examples
    --------
    >>> round(float(total_variation([0.5, 0.5], [0.8, 0.2])), 12)
    0.3
    """
    target, drafter = _laws(p, q)
    return give(0.5 * np.abs(target - drafter).sum(axis=-1))


def acceptance_probability(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """Return beta = sum of min(p, q) = 1 - TV(p, q) (Leviathan et al. 2023, Theorem 3.5).

    Its mean over contexts is alpha (their Corollary 3.6).

    Examples
    --------
    >>> p, q = [0.5, 0.2, 0.2, 0.07, 0.03], [0.3, 0.4, 0.1, 0.1, 0.1]
    >>> round(float(acceptance_probability(p, q)), 12)
    0.7
    """
    target, drafter = _laws(p, q)
    return give(np.minimum(target, drafter).sum(axis=-1))


def token_acceptance(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """Return min(1, p(x)/q(x)) of each token x; 1 where the drafter never proposes it.

    Examples
    --------
    >>> token_acceptance([0.5, 0.5], [0.25, 0.75]).round(9).tolist()
    [1.0, 0.666666667]
    """
    target, drafter = np.broadcast_arrays(*_laws(p, q))
    # Only q > p is divided, so that a tiny q cannot overflow.
    lower = drafter > target
    return give(np.where(lower, target / np.where(lower, drafter, 1.0), 1.0))


def residual_law(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """Return r = (p - q)+ / sum of (p - q)+, what a rejected token is replaced from.

    Leviathan et al. 2023 and Chen et al. 2023, as in theory note 1.1.

    Raises
    ------
    NoRejectionError
        If p and q are equal: their excess is empty.

    Examples
    --------
    >>> p, q = [0.5, 0.2, 0.2, 0.07, 0.03], [0.3, 0.4, 0.1, 0.1, 0.1]
    >>> residual_law(p, q).round(9).tolist()   # 2/3 and 1/3
    [0.666666667, 0.0, 0.333333333, 0.0, 0.0]
    """
    target, drafter = _laws(p, q)
    excess = np.maximum(target - drafter, 0.0)
    total = excess.sum(axis=-1, keepdims=True)
    if np.any(total == 0.0):
        raise NoRejectionError("p and q are equal", expected="two different laws")
    return give(excess / total)


def output_law(p: ArrayLike, q: ArrayLike) -> FloatArray:
    """Return q(x) min(1, p(x)/q(x)) + (1 - beta) r(x), which is p: the rule is lossless.

    Built from its parts, so that comparing it with p checks them (theory note 1.1).

    Examples
    --------
    >>> output_law([0.5, 0.5], [0.8, 0.2]).round(12).tolist()
    [0.5, 0.5]
    """
    target, drafter = _laws(p, q)
    accepted = drafter * token_acceptance(target, drafter)
    return give(
        accepted + (1.0 - accepted.sum(axis=-1, keepdims=True)) * residual_law(target, drafter)
    )


def expected_rejections(tv: ArrayLike) -> FloatArray:
    """Return the sum of TV over positions: rejections in T tokens (Yin et al. 2024, Theorem 1).

    No unbiased scheme that rejects one draft at a time can have fewer (their Theorem 2).

    Parameters
    ----------
    tv
        Shape (..., T): E[TV(p_n, q_n)] of each emitted position, in [0, 1].

    Examples
    --------
    >>> round(float(expected_rejections([0.2] * 100)), 9)
    20.0
    """
    found = probability("tv", tv)
    if found.ndim == 0:
        raise InputError("tv is a single number", expected="one value per position")
    return give(found.sum(axis=-1))


def least_bias(reject_probability: ArrayLike, tv: ArrayLike) -> FloatArray:
    """Return the least TV(output, p) that a rejection probability allows: (TV - P(reject))+.

    The trade-off of lossy verification is linear (Yin et al. 2024, Theorem 5).

    Parameters
    ----------
    reject_probability, tv
        In [0, 1]; they broadcast.

    Examples
    --------
    >>> round(float(least_bias(0.125, 0.375)), 12)
    0.25
    """
    reject = probability("reject_probability", reject_probability)
    return give(np.maximum(probability("tv", tv) - reject, 0.0))
