"""Confidence intervals: over replications, and by batch means inside one long run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from psdsim.errors import InputError


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error and two-sided confidence interval.

    Parameters
    ----------
    mean
        The estimate.
    standard_error
        Its standard error; NaN with fewer than two values.
    low, high
        Bounds at `level`; NaN with fewer than two values.
    n
        Values it stands on.
    level
        Confidence level.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    n: int
    level: float = 0.95


def t_interval(values: ArrayLike, level: float = 0.95) -> Estimate:
    """Return the mean of independent values with Student's t interval.

    Examples
    --------
    >>> e = t_interval([1.0, 2.0, 3.0])
    >>> e.mean, round(e.high - e.mean, 4)  # 4.3027 x 1 / sqrt(3)
    (2.0, 2.4841)
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        return Estimate(math.nan, math.nan, math.nan, math.nan, 0, level)
    mean = float(x.mean())
    if x.size < 2:
        return Estimate(mean, math.nan, math.nan, math.nan, 1, level)
    error = float(x.std(ddof=1) / math.sqrt(x.size))
    half = float(stats.t.ppf(0.5 + level / 2, x.size - 1)) * error
    return Estimate(mean, error, mean - half, mean + half, int(x.size), level)


def batch_means_rate(
    amount: ArrayLike, time_s: ArrayLike, *, n_batches: int = 20, warm_up: float = 0.1
) -> Estimate:
    """Return total amount / total time of a sequence of steps, with a batch-means interval.

    The first `warm_up` share of the steps is cut, the rest is split into equally many steps;
    the interval is that of a ratio (delta method over batches).

    Parameters
    ----------
    amount, time_s
        What each step yielded and how long it took, shape (n,).
    n_batches
        Batches, >= 2.
    warm_up
        Share of steps to cut, in [0, 1).

    Returns
    -------
    Estimate
        With NaN for error and bounds where there are too few steps for the batches, or where no
        time passes; the mean is then that of all steps.

    Raises
    ------
    psdsim.errors.InputError
        If the two differ in length, or `n_batches` or `warm_up` is out of range.

    Examples
    --------
    >>> e = batch_means_rate([2.0, 4.0, 2.0, 4.0], [1.0] * 4, n_batches=2, warm_up=0.0)
    >>> e.mean, e.standard_error  # both batches yield 6 in 2 s
    (3.0, 0.0)
    """
    a = np.asarray(amount, dtype=np.float64)
    t = np.asarray(time_s, dtype=np.float64)
    if a.shape != t.shape or a.ndim != 1:
        raise InputError(f"the steps have shapes {a.shape} and {t.shape}", expected="(n,) twice")
    if n_batches < 2 or not 0.0 <= warm_up < 1.0:
        raise InputError(
            f"n_batches is {n_batches} and warm_up {warm_up}",
            expected="at least 2 batches and a share in [0, 1)",
        )
    start = int(a.size * warm_up)
    size = (a.size - start) // n_batches
    stop = start + size * n_batches
    if size < 1 or not t[start:stop].sum() > 0.0:
        rate = float(a.sum() / t.sum()) if t.sum() > 0 else math.nan
        return Estimate(rate, math.nan, math.nan, math.nan, 1)
    batch_a = a[start:stop].reshape(n_batches, size).sum(axis=1)
    batch_t = t[start:stop].reshape(n_batches, size).sum(axis=1)
    rate = float(batch_a.sum() / batch_t.sum())
    residual = batch_a - rate * batch_t
    error = float(residual.std(ddof=1) / (math.sqrt(n_batches) * batch_t.mean()))
    half = float(stats.t.ppf(0.975, n_batches - 1)) * error
    return Estimate(rate, error, rate - half, rate + half, n_batches)
