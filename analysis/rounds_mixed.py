"""Acceptance rates that differ between rounds or requests: Beta mixtures, and how they pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, give, one_count, positive
from analysis.beta_mean import beta_quadrature
from analysis.rounds import (
    acceptance_length_iid,
    acceptance_length_position,
    accepted_pmf_position,
    accepted_variance_position,
)
from psdsim.errors import InputError


def beta_conditional_rates(a: ArrayLike, b: ArrayLike, k: int) -> FloatArray:
    """Return P(draft j accepted | those before were) = (a+i)/(a+b+i), i = j - 1 (note 2.2b).

    Each acceptance is evidence for a high rate, so the rates rise with position.

    Parameters
    ----------
    a, b
        Shape parameters of the round's alpha ~ Beta(a, b), > 0; they broadcast.
    k
        Drafted tokens, >= 0.

    Returns
    -------
    Array of shape (..., k).

    Examples
    --------
    >>> beta_conditional_rates(1.0, 1.0, 2).round(9).tolist()   # 1/2, 2/3
    [0.5, 0.666666667]
    """
    shape_a, shape_b = np.broadcast_arrays(positive("a", a), positive("b", b))
    i = np.arange(one_count("k", k))
    return give((shape_a[..., None] + i) / (shape_a[..., None] + shape_b[..., None] + i))


def accepted_pmf_beta(a: ArrayLike, b: ArrayLike, k: int) -> FloatArray:
    """Return P(L = j), j = 0..k, with one alpha ~ Beta(a, b) per round (theory note 2.2b).

    Examples
    --------
    >>> accepted_pmf_beta(1.0, 1.0, 1).tolist()
    [0.5, 0.5]
    """
    return accepted_pmf_position(beta_conditional_rates(a, b, k))


def acceptance_length_beta(a: ArrayLike, b: ArrayLike, k: int) -> FloatArray:
    """Return E[N] with one alpha per round, alpha ~ Beta(a, b) (theory note 2.2b).

    Parameters
    ----------
    a, b
        Shape parameters, > 0.
    k
        Drafted tokens, >= 0.

    Examples
    --------
    >>> round(float(acceptance_length_beta(4.0, 1.0, 5)), 7)
    3.9825397
    """
    return acceptance_length_position(beta_conditional_rates(a, b, k))


def accepted_variance_beta(a: ArrayLike, b: ArrayLike, k: int) -> FloatArray:
    """Return Var[L] = Var[N] with one alpha ~ Beta(a, b) per round.

    Examples
    --------
    >>> float(accepted_variance_beta(1.0, 1.0, 1))
    0.25
    """
    return accepted_variance_position(beta_conditional_rates(a, b, k))


def pooled_acceptance_length(lengths: ArrayLike, n_tokens: ArrayLike | None = None) -> FloatArray:
    """Return tokens/rounds pooled over requests: the harmonic mean of their lengths (note 2.2c).

    Parameters
    ----------
    lengths
        Acceptance length of each request, > 0.
    n_tokens
        Output tokens of each request, > 0; equal for all where it is left out.

    Examples
    --------
    >>> round(float(pooled_acceptance_length([1.9375, 4.0951])), 7)
    2.6304599
    >>> float(pooled_acceptance_length([1.0, 3.0], [1.0, 3.0]))   # 4 tokens in 2 rounds
    2.0
    """
    each = positive("lengths", lengths)
    weight = np.ones_like(each) if n_tokens is None else positive("n_tokens", n_tokens)
    if weight.shape != each.shape:
        raise InputError(
            f"n_tokens has shape {weight.shape}", expected=f"that of lengths, {each.shape}"
        )
    return give(weight.sum() / (weight / each).sum())


def mean_of_acceptance_lengths(lengths: ArrayLike) -> FloatArray:
    """Return the plain mean over requests, never below the pooled value (theory note 2.2c).

    Examples
    --------
    >>> round(float(mean_of_acceptance_lengths([1.9375, 4.0951])), 4)
    3.0163
    """
    return give(np.mean(positive("lengths", lengths)))


def pooled_acceptance_length_beta(a: float, b: float, k: int) -> float:
    """Return the pooled tokens/rounds with one alpha ~ Beta(a, b) per request: 1 / E[1/E[N]].

    With one alpha per *request*, a slow request has more rounds, so pooling over equally long
    requests weighs it more: the value lies below `acceptance_length_beta` (theory note 2.2c).
    The mean over alpha is Gauss-Jacobi quadrature.

    Parameters
    ----------
    a, b
        Shape parameters, > 0.
    k
        Drafted tokens, >= 0.

    Examples
    --------
    >>> round(pooled_acceptance_length_beta(1.0, 1.0, 1), 9)   # 1 / ln 2
    1.442695041
    """
    n = one_count("k", k)
    # 1/E[N] has poles at the roots of unity, about 2 pi/(k+1) from [0, 1]: nodes grow with k.
    alpha, weight = beta_quadrature(a, b, 64 + 4 * n)
    return float(1.0 / (weight @ (1.0 / acceptance_length_iid(alpha, n))))
