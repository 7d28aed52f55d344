"""Quantiles as the serving benchmarks print them: linear between order statistics."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def quantile(values: NDArray[np.float64], q: float) -> float:
    """Return the q-quantile (NumPy's default, linear); NaN of an empty array."""
    return float(np.quantile(values, q)) if values.size else math.nan


def weighted_quantile(values: NDArray[np.float64], weights: NDArray[np.float64], q: float) -> float:
    """Return the quantile of a sample in which value i stands `weights[i]` times.

    Parameters
    ----------
    values
        Shape (n,).
    weights
        Whole numbers >= 1 as floats, shape (n,).
    q
        In [0, 1].

    Returns
    -------
    float
        What `numpy.quantile` gives on the repeated sample; NaN if it is empty.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0]), np.array([1.0, 3.0]), 0.5)
    1.0
    >>> weighted_quantile(np.array([3.0, 1.0]), np.array([1.0, 1.0]), 0.5)
    2.0
    """
    if not values.size:
        return math.nan
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    last = np.cumsum(weights[order])
    place = q * (last[-1] - 1.0)
    below = math.floor(place)
    # The value at rank r (from 0) is the first whose cumulated weight exceeds r.
    low = sorted_values[np.searchsorted(last, below, side="right")]
    high_rank = min(below + 1.0, last[-1] - 1.0)
    high = sorted_values[np.searchsorted(last, high_rank, side="right")]
    return float(low + (place - below) * (high - low))
