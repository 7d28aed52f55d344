"""Rounds needed for a finite output: a renewal process stopped at n tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import lfilter

from analysis._checks import FloatArray, law, one_count
from psdsim.errors import InputError


def _tokens_law(tokens_pmf: ArrayLike) -> FloatArray:
    pmf = law("tokens_pmf", tokens_pmf)
    if pmf[0] != 0.0:
        raise InputError(
            f"P(0 tokens) is {pmf[0]:g}", expected="0: every round emits at least one token"
        )
    return pmf


def expected_rounds_upto(n_tokens: int, tokens_pmf: ArrayLike) -> FloatArray:
    """Return E[R_n] for n = 0..n_tokens, R_n being the rounds until n tokens are out.

    E[R_n] = 1 + sum_j p_j E[R_(n-j)]: a recursive filter (theory note 4.1).

    Parameters
    ----------
    n_tokens
        Largest n, >= 0.
    tokens_pmf
        Shape (k+2,): P(a round emits j tokens), j = 0..k+1; P(0) must be 0.

    Examples
    --------
    >>> expected_rounds_upto(3, [0.0, 0.5, 0.5]).tolist()
    [0.0, 1.0, 1.5, 2.25]
    """
    n, pmf = one_count("n_tokens", n_tokens), _tokens_law(tokens_pmf)
    if n == 0:
        return np.zeros(1)
    feedback = np.concatenate([[1.0], -pmf[1:]])
    return np.concatenate([[0.0], lfilter([1.0], feedback, np.ones(n))])


def expected_rounds(n_tokens: int, tokens_pmf: ArrayLike) -> float:
    """Return E[R_n], the mean number of rounds until n tokens are out.

    Examples
    --------
    >>> pmf = [0.0, *(0.2 * 0.8**j for j in range(4)), 0.8**4]
    >>> round(expected_rounds(128, pmf), 6)
    38.542083
    """
    return float(expected_rounds_upto(n_tokens, tokens_pmf)[-1])


def variance_rounds(n_tokens: int, tokens_pmf: ArrayLike) -> float:
    """Return Var[R_n]; E[R_n^2] obeys the same recursion with 1 + 2 (E[R_n] - 1) as its input.

    Examples
    --------
    >>> variance_rounds(2, [0.0, 0.5, 0.5])
    0.25
    """
    mean = expected_rounds_upto(n_tokens, tokens_pmf)
    if mean.size == 1:
        return 0.0
    feedback = np.concatenate([[1.0], -_tokens_law(tokens_pmf)[1:]])
    second = lfilter([1.0], feedback, 2.0 * mean[1:] - 1.0)
    return float(second[-1] - mean[-1] ** 2)


def effective_tokens_per_round(n_tokens: int, tokens_pmf: ArrayLike) -> float:
    """Return n / E[R_n]: below E[tokens per round], since the stop clips the last block.

    Examples
    --------
    >>> round(effective_tokens_per_round(2, [0.0, 0.5, 0.5]), 9)   # 2 / 1.5
    1.333333333
    """
    n = one_count("n_tokens", n_tokens, 1)
    return n / expected_rounds(n, tokens_pmf)


def rounds_survival(n_tokens: int, tokens_pmf: ArrayLike) -> FloatArray:
    """Return P(R_n > r), r = 0..n: the law of rounds by repeated convolution.

    Parameters
    ----------
    n_tokens
        >= 1; meant for n up to some thousands.
    tokens_pmf
        As in `expected_rounds_upto`.

    Examples
    --------
    >>> rounds_survival(2, [0.0, 0.5, 0.5]).tolist()
    [1.0, 0.5, 0.0]
    """
    n, pmf = one_count("n_tokens", n_tokens, 1), _tokens_law(tokens_pmf)
    below = np.zeros(n)
    below[0] = 1.0
    out = np.zeros(n + 1)
    for r in range(n + 1):
        out[r] = below.sum()
        if out[r] < 1e-300:
            break
        below = np.convolve(below, pmf)[:n]
    return out


def expected_max_rounds(n_tokens: int, tokens_pmf: ArrayLike, n_requests: int) -> float:
    """Return E[max of the rounds of B equal requests] = sum_r 1 - P(R <= r)^B (note 4.5).

    Examples
    --------
    >>> pmf = [0.0, *(0.2 * 0.8**j for j in range(4)), 0.8**4]
    >>> round(expected_max_rounds(128, pmf, 8), 6)
    42.924753
    """
    survival = rounds_survival(n_tokens, tokens_pmf)
    # 1 - (1 - s)^B without cancellation for small s.
    return float(
        -np.expm1(
            one_count("n_requests", n_requests, 1) * np.log1p(-np.minimum(survival, 1 - 1e-16))
        ).sum()
    )
