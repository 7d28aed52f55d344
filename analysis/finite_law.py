"""The law of the rounds that n tokens take: P(R_n > r) = P(N_1 + ... + N_r < n), theory note 4.4.

Two ways to the same numbers: powers of the characteristic function in a window around the mean
(fast, absolute error near 1e-14) and repeated convolution (slow, small probabilities exact too).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import next_fast_len, rfft

from analysis._checks import FloatArray, give, one_count
from analysis.finite import tokens_law
from analysis.rounds import pmf_mean, pmf_variance

# ln of the probability that is neglected outside the window: exp(-42) < 1e-18.
_LOG_NEGLECTED = 42.0


def rounds_survival(n_tokens: int, tokens_pmf: ArrayLike) -> FloatArray:
    """Return P(R_n > r), r = 0..n, the law of rounds; absolute error below 1e-13.

    The law of S_r = N_1 + ... + N_r is the r-th power of one round's transform. Bernstein's
    inequality says how few r matter and how short a transform can be: S_r is needed only modulo
    a length that it leaves with a probability below 1e-18.

    Parameters
    ----------
    n_tokens
        n, >= 1; 10^5 is fine.
    tokens_pmf
        Shape (k+2,): P(a round emits j tokens), j = 0..k+1; P(0) must be 0.

    Examples
    --------
    >>> rounds_survival(2, [0.0, 0.5, 0.5]).round(12).tolist()
    [1.0, 0.5, 0.0]
    """
    n, pmf = one_count("n_tokens", n_tokens, 1), tokens_law(tokens_pmf)
    mean, variance, longest = float(pmf_mean(pmf)), float(pmf_variance(pmf)), pmf.size - 1
    r = np.arange(n + 1)
    reach = _bernstein(r, variance, float(max(longest - mean, mean - 1.0)))
    surely_below = (r * mean + reach < n) | (r * longest < n)
    surely_above = (r * mean - reach > n - 1) | (r >= n)
    out = np.where(surely_below, 1.0, 0.0)
    inside = np.flatnonzero(~surely_below & ~surely_above)
    if inside.size:
        first, last = int(inside[0]), int(inside[-1])
        half = math.ceil(max(n - max(first * mean - reach[first], float(first)), 1.0))
        above = math.ceil(max(min(last * mean + reach[last], float(last * longest)) - n, 0.0)) + 1
        window = _below(n, pmf, first, last, half, half + above)
        # What rounding adds or takes is far below the error promised; a law is monotone.
        out[first : last + 1] = np.minimum.accumulate(np.clip(window, 0.0, 1.0))
    return out


def _bernstein(r: np.ndarray, variance: float, largest: float) -> FloatArray:
    """Return the deviation that a sum of r rounds exceeds with a probability below e^-42."""
    linear = largest * _LOG_NEGLECTED / 3.0
    return np.asarray(linear + np.sqrt(linear**2 + 2.0 * _LOG_NEGLECTED * variance * r))


def _below(n: int, pmf: FloatArray, first: int, last: int, half: int, span: int) -> FloatArray:
    """Return P(n - half <= S_r < n) for r = first..last, with S_r taken modulo ``span``."""
    size = next_fast_len(max(span, pmf.size), real=True)
    # The indicator of the last `half` values below n, moved so that n - half falls on 0.
    indicator = np.zeros(size)
    indicator[:half] = 1.0
    one_round = rfft(pmf, size)
    frequency = np.arange(one_round.size)
    # Parseval with the real signal's missing half counted by weight 2.
    weight = np.full(one_round.size, 2.0 / size)
    weight[0] = 1.0 / size
    if size % 2 == 0:
        weight[-1] = 1.0 / size
    turn = (frequency * ((n - half) % size)) % size  # whole turns drop out before rounding
    start = weight * np.conj(rfft(indicator, size)) * np.exp(2j * np.pi * turn / size)
    start = start * one_round**first
    # Baby steps and giant steps: the r in the window as one matrix product.
    n_steps = last - first + 1
    block = max(1, math.isqrt(n_steps))
    n_blocks = -(-n_steps // block)
    baby = _powers(one_round, block)
    giant = _powers(one_round**block, n_blocks) * start
    # Only the real part is wanted: two real products are cheaper than one complex.
    product = giant.real @ baby.real.T - giant.imag @ baby.imag.T
    return np.asarray(product.ravel()[:n_steps])


def _powers(base: np.ndarray, n: int) -> np.ndarray:
    """Return base**0 .. base**(n-1) as rows."""
    out = np.empty((n, base.size), dtype=np.complex128)
    out[0] = 1.0
    for i in range(1, n):
        np.multiply(out[i - 1], base, out=out[i])
    return out


def rounds_survival_by_convolution(n_tokens: int, tokens_pmf: ArrayLike) -> FloatArray:
    """Return P(R_n > r), r = 0..n, by repeated convolution: the slow, independent way.

    All terms are positive, so small probabilities keep their relative accuracy.

    Parameters
    ----------
    n_tokens
        >= 1; meant for n up to some thousands.
    tokens_pmf
        As in `rounds_survival`.

    Examples
    --------
    >>> rounds_survival_by_convolution(2, [0.0, 0.5, 0.5]).tolist()
    [1.0, 0.5, 0.0]
    """
    n, pmf = one_count("n_tokens", n_tokens, 1), tokens_law(tokens_pmf)
    below = np.zeros(n)
    below[0] = 1.0
    out = np.zeros(n + 1)
    for r in range(n + 1):
        out[r] = below.sum()
        if out[r] < 1e-300:
            break
        below = np.convolve(below, pmf)[:n]
    return out


def rounds_pmf(n_tokens: int, tokens_pmf: ArrayLike) -> FloatArray:
    """Return P(R_n = r), r = 0..n: the steps of `rounds_survival` (theory note 4.4).

    Examples
    --------
    >>> pmf = [0.0, 0.4, 0.24, 0.36]   # alpha = 0.6, k = 2
    >>> rounds_pmf(5, pmf).round(10).tolist()
    [0.0, 0.0, 0.3024, 0.5184, 0.1536, 0.0256]
    """
    survival = rounds_survival(n_tokens, tokens_pmf)
    return give(np.concatenate([[1.0 - survival[0]], survival[:-1] - survival[1:]]))
