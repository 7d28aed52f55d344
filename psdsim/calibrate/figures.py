"""A fitted figure: its value, its uncertainty and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

IQR_OF_NORMAL = 1.3489795003921634
"""Interquartile range of a standard normal."""


@dataclass(frozen=True)
class Figure:
    """A number with its 95 % interval.

    Parameters
    ----------
    value, low, high
        Estimate and interval.
    n
        Points that it rests on.
    """

    value: float
    low: float
    high: float
    n: int

    def text(self, unit: str = "") -> str:
        """Return interval and number of points, for a comment."""
        unit = f" {unit}" if unit else ""
        return f"95 % interval {self.low:.4g} to {self.high:.4g}{unit}, n = {self.n}"


@dataclass(frozen=True)
class Spread:
    """Measured / predicted times of many passes.

    Parameters
    ----------
    median
        Their middle, with its interval.
    cv
        Standard deviation / mean of a lognormal with their interquartile range.
    quartiles
        25th and 75th percentile.
    """

    median: Figure
    cv: float
    quartiles: tuple[float, float]

    @property
    def mean(self) -> float:
        """Mean of the lognormal: what multiplies a time whose jitter has mean 1."""
        return self.median.value * math.sqrt(1.0 + self.cv**2)


def spread(ratios: ArrayLike) -> Spread:
    """Return median and robust spread of ratios, shape (n,), all above 0.

    Examples
    --------
    >>> spread([0.5, 1.0, 2.0]).median.value
    1.0
    """
    log = np.sort(np.log(np.asarray(ratios, dtype=np.float64)))
    low, middle, high = np.quantile(log, (0.25, 0.5, 0.75))
    sigma = float(high - low) / IQR_OF_NORMAL
    # Order statistics around the median hold it with 95 %, whatever the distribution.
    n = log.size
    reach = 0.98 * math.sqrt(n)
    first = max(math.floor(n / 2 - reach), 0)
    last = min(math.ceil(n / 2 + reach), n - 1)
    return Spread(
        Figure(math.exp(middle), math.exp(log[first]), math.exp(log[last]), n),
        math.sqrt(math.expm1(sigma**2)),
        (math.exp(low), math.exp(high)),
    )


def pooled(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays end to end; an empty one if there are none."""
    return np.concatenate(parts) if parts else np.zeros(0)
