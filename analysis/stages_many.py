"""The longest of many independent stage times: mean and variance of max(T_1, ..., T_n).

E[max] is the integral of 1 - F_1 F_2 ... F_n (theory note 4.2): in closed form for n equal
exponential, uniform or empirical laws, else by Gauss-Legendre pieces between quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, expit, polygamma

from analysis._checks import FloatArray, count, give, positive, real
from analysis.stage_laws import Empirical, StageLaw
from psdsim.errors import InputError

# Probabilities of the cut points: dense at the ends, where a maximum or a gamma law lives.
_CUTS = expit(np.linspace(-41.0, 0.0, 96)[:-1])
_NEGLECTED = 1e-18
_MAX_PIECES = 192
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def expected_max_exponential_of(mean: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return E[max of n equal exponentials] = mean (1 + 1/2 + ... + 1/n).

    Parameters
    ----------
    mean
        > 0.
    n
        >= 1; broadcasts with ``mean``.

    Examples
    --------
    >>> round(float(expected_max_exponential_of(1.0, 2)), 12)
    1.5
    """
    harmonic = digamma(count("n", n, 1) + 1.0) + np.euler_gamma
    return give(positive("mean", mean) * harmonic)


def variance_max_exponential_of(mean: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return Var[max of n equal exponentials] = mean^2 (1 + 1/4 + ... + 1/n^2).

    Examples
    --------
    >>> round(float(variance_max_exponential_of(1.0, 2)), 12)
    1.25
    """
    squares = np.pi**2 / 6.0 - polygamma(1, count("n", n, 1) + 1.0)
    return give(positive("mean", mean) ** 2 * squares)


def expected_max_uniform_of(low: ArrayLike, high: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return E[max of n equal uniforms] = low + (high - low) n/(n + 1).

    Examples
    --------
    >>> float(expected_max_uniform_of(0.0, 3.0, 2))
    2.0
    """
    a, b, times = real("low", low), real("high", high), count("n", n, 1)
    if np.any(b < a):
        raise InputError("high is below low", expected="low <= high")
    return give(a + (b - a) * times / (times + 1.0))


def expected_max_empirical_of(values: ArrayLike, n: int) -> float:
    """Return E[max of n draws from measured values] = sum x_(i) [F_i^n - F_(i-1)^n], exactly.

    Parameters
    ----------
    values
        Shape (m,): equally likely.
    n
        >= 1.

    Examples
    --------
    >>> expected_max_empirical_of([10.0, 30.0], 2)   # 10 with 1/4
    25.0
    """
    law = Empirical(tuple(real("values", values).ravel().tolist()))
    below = law.cdf(law.breaks) ** int(count("n", n, 1))
    return float(law.breaks @ np.diff(below, prepend=0.0))


def expected_max_of(laws: Sequence[StageLaw], counts: ArrayLike | None = None) -> float:
    """Return E[max] of independent stage times of any laws.

    Parameters
    ----------
    laws
        At least one `analysis.stage_laws` object.
    counts
        Shape (len(laws),): how many independent times have each law; 1 where it is left out.

    Examples
    --------
    >>> from analysis.stage_laws import Exponential, Uniform
    >>> round(expected_max_of([Exponential(1.0)], [2]), 9)
    1.5
    >>> round(expected_max_of([Uniform(10.0, 26.0), Uniform(15.0, 25.0)]), 7)
    21.3854167
    """
    return _moments(laws, counts)[0]


def variance_max_of(laws: Sequence[StageLaw], counts: ArrayLike | None = None) -> float:
    """Return Var[max] of independent stage times of any laws.

    Examples
    --------
    >>> from analysis.stage_laws import Exponential
    >>> round(variance_max_of([Exponential(1.0)], [2]), 9)
    1.25
    """
    return _moments(laws, counts)[1]


def barrier_loss(laws: Sequence[StageLaw], means: ArrayLike) -> float:
    """Return 1 - max(means)/E[max], the share of throughput that jitter costs at a barrier.

    Parameters
    ----------
    laws
        The stages that wait for one another.
    means
        Their means, > 0: what the step would last without jitter is the greatest.

    Examples
    --------
    >>> from analysis.stage_laws import Exponential
    >>> round(barrier_loss([Exponential(1.0), Exponential(1.0)], [1.0, 1.0]), 9)   # 1 - 1/1.5
    0.333333333
    """
    return 1.0 - float(np.max(positive("means", means))) / expected_max_of(laws)


def _moments(laws: Sequence[StageLaw], counts: ArrayLike | None) -> tuple[float, float]:
    if len(laws) == 0:
        raise InputError("there is no law", expected="at least one")
    times = np.ones(len(laws), dtype=np.int64) if counts is None else count("counts", counts, 1)
    if times.shape != (len(laws),):
        raise InputError(f"counts has shape {times.shape}", expected=f"({len(laws)},)")
    different: dict[StageLaw, int] = {}
    for law, n in zip(laws, times.tolist(), strict=True):
        different[law] = different.get(law, 0) + n
    edges = _edges(different)
    low = float(edges[0])
    if edges.size == 1:
        return low, 0.0
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    t = middle[:, None] + half[:, None] * _NODES
    log_all = np.zeros(t.shape)
    with np.errstate(divide="ignore"):  # log 0 = -inf is a cdf of 0, which is meant
        for law, n in different.items():
            log_all += n * np.log(law.cdf(t))
    weight = half[:, None] * _WEIGHTS
    exceeds = -np.expm1(log_all)
    # Moments about the lower end, so that a far-away law doesn't cancel.
    first = float((weight * exceeds).sum())
    second = float((weight * 2.0 * (t - low) * exceeds).sum())
    return low + first, max(second - first**2, 0.0)


def _edges(different: dict[StageLaw, int]) -> FloatArray:
    """Return the ends of the pieces: every jump and kink, and quantiles of the laws between."""
    sharp, soft, lows, highs = [], [], [], []
    for law, n in different.items():
        # P(max of n > t) is about n P(T > t); the maximum is above t unless all n are below.
        tail = np.concatenate([_CUTS, _CUTS / n])
        lows.append(float(law.quantile(_NEGLECTED)))
        highs.append(float(law.tail_quantile(_NEGLECTED / n)))
        sharp.append(law.breaks)
        soft.append(np.concatenate([law.quantile(_CUTS), law.tail_quantile(tail)]))
    low, high = max(lows), max(highs)
    points = np.unique(np.concatenate(soft))
    points = points[(points >= low) & (points <= high)]
    if points.size > _MAX_PIECES:
        points = points[np.linspace(0, points.size - 1, _MAX_PIECES).round().astype(np.int64)]
    found = np.unique(np.concatenate([points, *sharp, [low, high]]))
    return found[(found >= low) & (found <= high)]
