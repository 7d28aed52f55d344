"""Rounds needed for a finite output: a renewal process stopped at n tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import lfilter, lfiltic

from analysis._checks import FloatArray, law, one_count
from analysis._kinds import Approximation, AssumptionError
from analysis.rounds import pmf_mean, pmf_variance
from psdsim.errors import InputError


class LatticeError(AssumptionError):
    """All rounds emit multiples of one number, so the renewal theorem has no limit."""


def tokens_law(tokens_pmf: ArrayLike) -> FloatArray:
    """Return a checked law of the tokens of one round, without trailing zeros.

    Parameters
    ----------
    tokens_pmf
        Shape (k+2,): P(a round emits j tokens), j = 0..k+1; P(0) must be 0.

    Examples
    --------
    >>> tokens_law([0.0, 0.5, 0.5, 0.0]).tolist()
    [0.0, 0.5, 0.5]
    """
    pmf = law("tokens_pmf", tokens_pmf)
    if pmf[0] != 0.0:
        raise InputError(
            f"P(0 tokens) is {pmf[0]:g}", expected="0: every round emits at least one token"
        )
    return pmf[: int(np.flatnonzero(pmf)[-1]) + 1]


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
    n, pmf = one_count("n_tokens", n_tokens), tokens_law(tokens_pmf)
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
    """Return Var[R_n] by a recursion on X_n = R_n - n/mu, which stays small where R_n grows.

    X_n = X_(n-N) + 1 - N/mu, so E[X_n] and E[X_n^2] are recursive filters that start from
    X_m = -m/mu at m <= 0 (own derivation).

    Examples
    --------
    >>> round(variance_rounds(2, [0.0, 0.5, 0.5]), 12)
    0.25
    """
    n, pmf = one_count("n_tokens", n_tokens), tokens_law(tokens_pmf)
    longest = pmf.size - 1
    mean = float(pmf_mean(pmf))
    feedback = np.concatenate([[1.0], -pmf[1:]])
    past = np.arange(longest) / mean  # X_0, X_-1, ..., as long as one round can reach back
    surplus = 1.0 - np.arange(pmf.size) / mean
    drift, _ = lfilter([1.0], feedback, np.zeros(n), zi=lfiltic([1.0], feedback, past))
    known = np.concatenate([past[::-1], drift])
    # One entry for each of X_1 .. X_n: the sum over j of p_j 2 (1 - j/mu) E[X_(n-j)].
    cross = np.convolve(known, 2.0 * pmf * surplus)[longest : longest + n]
    inputs = cross + float(pmf @ surplus**2)
    second, _ = lfilter([1.0], feedback, inputs, zi=lfiltic([1.0], feedback, past**2))
    return float(second[-1] - drift[-1] ** 2) if n else 0.0


def effective_tokens_per_round(n_tokens: int, tokens_pmf: ArrayLike) -> float:
    """Return n / E[R_n]: below E[tokens per round], since the stop clips the last block.

    Examples
    --------
    >>> round(effective_tokens_per_round(2, [0.0, 0.5, 0.5]), 9)   # 2 / 1.5
    1.333333333
    """
    n = one_count("n_tokens", n_tokens, 1)
    return n / expected_rounds(n, tokens_pmf)


def expected_rounds_asymptotic(n_tokens: int, tokens_pmf: ArrayLike) -> Approximation:
    """Return n/mu + E[N(N-1)]/(2 mu^2), which E[R_n] tends to geometrically (theory note 4.4).

    Assumes that the possible tokens of a round have no common divisor above 1.

    Examples
    --------
    >>> pmf = [0.0, *(0.2 * 0.8**j for j in range(4)), 0.8**4]
    >>> round(expected_rounds_asymptotic(128, pmf).value, 7)
    38.5420827
    """
    n, pmf = one_count("n_tokens", n_tokens), tokens_law(tokens_pmf)
    if int(np.gcd.reduce(np.flatnonzero(pmf))) > 1:
        raise LatticeError(
            "every round emits a multiple of the same number of tokens",
            expected="a law without a common divisor, or the exact `expected_rounds`",
        )
    j = np.arange(pmf.size)
    mean = float(pmf @ j)
    value = n / mean + float(pmf @ (j * (j - 1.0))) / (2.0 * mean**2)
    return Approximation(value, None, "renewal theorem; good when n is many times k + 1")


def variance_rounds_asymptotic(n_tokens: int, tokens_pmf: ArrayLike) -> Approximation:
    """Return n sigma^2 / mu^3, the leading term of Var[R_n] (theory note 4.4).

    Examples
    --------
    >>> round(variance_rounds_asymptotic(2, [0.0, 0.5, 0.5]).value, 9)   # 2 (1/4) / (3/2)^3
    0.148148148
    """
    n, pmf = one_count("n_tokens", n_tokens), tokens_law(tokens_pmf)
    value = n * float(pmf_variance(pmf)) / float(pmf_mean(pmf)) ** 3
    return Approximation(value, None, "leading term for large n; a constant is neglected")


def renewal_probabilities(n_tokens: int, tokens_pmf: ArrayLike) -> FloatArray:
    """Return u_m = P(some round ends exactly at token m), m = 0..n: u = [m=0] + p * u.

    Examples
    --------
    >>> renewal_probabilities(2, [0.0, 0.5, 0.5]).tolist()
    [1.0, 0.5, 0.75]
    """
    n, pmf = one_count("n_tokens", n_tokens), tokens_law(tokens_pmf)
    impulse = np.zeros(n + 1)
    impulse[0] = 1.0
    return np.asarray(lfilter([1.0], np.concatenate([[1.0], -pmf[1:]]), impulse))


def overshoot_pmf(n_tokens: int, tokens_pmf: ArrayLike) -> FloatArray:
    """Return P(S_R - n = j), j = 0..k: the tokens of the last round that the stop clips.

    The last round starts at n - i with i >= 1 and emits i + j: the sum of u_(n-i) p_(i+j).

    Parameters
    ----------
    n_tokens
        n, >= 1.
    tokens_pmf
        As in `tokens_law`.

    Examples
    --------
    >>> overshoot_pmf(2, [0.0, 0.5, 0.5]).tolist()   # 1/4 + 1/2 of the paths end at 2
    [0.75, 0.25]
    """
    n, pmf = one_count("n_tokens", n_tokens, 1), tokens_law(tokens_pmf)
    starts = renewal_probabilities(n - 1, pmf)
    longest = pmf.size - 1
    out = np.zeros(longest)
    for i in range(1, min(longest, n) + 1):
        out[: longest - i + 1] += starts[n - i] * pmf[i:]
    return out


def mean_overshoot(n_tokens: int, tokens_pmf: ArrayLike) -> float:
    """Return mu E[R_n] - n by Wald's identity (theory note 4.4).

    A count of unclipped last rounds is too high by this much a request.

    Examples
    --------
    >>> pmf = [0.0, *(0.2 * 0.8**j for j in range(4)), 0.8**4]
    >>> round(mean_overshoot(128, pmf), 5)
    1.56307
    """
    n = one_count("n_tokens", n_tokens, 1)
    return float(pmf_mean(tokens_law(tokens_pmf))) * expected_rounds(n, tokens_pmf) - n
