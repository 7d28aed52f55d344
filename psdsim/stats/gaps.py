"""Weighted samples of inter-token latency: exact while they fit, then a fine log histogram."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_FLUSH = 1 << 16
_EXACT = 4_000_000
# 0.1 % wide bins from 1 ns to about 10^6 s.
_LOG_STEP = math.log(1.001)
_LOWEST = 1e-9
_N_BINS = int(math.log(1e15) / _LOG_STEP) + 1


class GapLog:
    """Collects (gap, weight) pairs and answers mean and quantiles.

    Above about four million pairs, values are kept in bins 0.1 % wide (`exact` turns False);
    the mean stays exact.
    """

    def __init__(self) -> None:
        self._gaps: list[float] = []
        self._weights: list[int] = []
        self._chunks: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        self._n = 0
        self._bins: NDArray[np.float64] | None = None
        self._sum = 0.0
        self._weight = 0.0

    @property
    def exact(self) -> bool:
        """Whether quantiles are exact rather than within 0.1 %."""
        return self._bins is None

    def add(self, gap: float, weight: int) -> None:
        """Add one gap in seconds that `weight` requests saw."""
        self._gaps.append(gap)
        self._weights.append(weight)
        if len(self._gaps) >= _FLUSH:
            self._flush()

    def add_many(self, gaps: NDArray[np.float64]) -> None:
        """Add one gap for each request, shape (n,)."""
        self._gaps.extend(gaps.tolist())
        self._weights.extend([1] * gaps.size)
        if len(self._gaps) >= _FLUSH:
            self._flush()

    def _flush(self) -> None:
        if not self._gaps:
            return
        self._take(np.array(self._gaps), np.array(self._weights, dtype=np.float64))
        self._gaps.clear()
        self._weights.clear()

    def _take(self, gaps: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        self._sum += float((gaps * weights).sum())
        self._weight += float(weights.sum())
        self._n += gaps.size
        self._chunks.append((gaps, weights))
        if self._bins is None and self._n <= _EXACT:
            return
        if self._bins is None:
            self._bins = np.zeros(_N_BINS)
        for values, w in self._chunks:
            place = np.log(np.maximum(values, _LOWEST) / _LOWEST) / _LOG_STEP
            index = np.minimum(place.astype(np.int64), _N_BINS - 1)
            self._bins += np.bincount(index, weights=w, minlength=_N_BINS)
        self._chunks.clear()

    def merge(self, other: GapLog) -> None:
        """Add all of another log."""
        other._flush()
        self._flush()
        if other._bins is None and self._bins is None:
            for gaps, weights in list(other._chunks):
                self._take(gaps, weights)
            return
        values, weights = other.values()
        exact_sum, exact_weight = self._sum + other._sum, self._weight + other._weight
        self._n = _EXACT + 1
        self._take(values, weights)
        self._sum, self._weight = exact_sum, exact_weight

    def values(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (gaps in seconds, weights), shape (n,) each, in no particular order."""
        self._flush()
        if self._bins is not None:
            used = np.flatnonzero(self._bins)
            return _LOWEST * np.exp((used + 0.5) * _LOG_STEP), self._bins[used]
        if not self._chunks:
            return np.empty(0), np.empty(0)
        gaps = np.concatenate([g for g, _ in self._chunks])
        return gaps, np.concatenate([w for _, w in self._chunks])

    def mean(self) -> float:
        """Return the weighted mean in seconds; NaN if there are none."""
        self._flush()
        return self._sum / self._weight if self._weight else math.nan
