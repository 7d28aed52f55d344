"""Factors on the profile's times that depend on the batch, as far as runs of several sizes tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Factors:
    """Measured / profiled mean times at the batch sizes of the runs.

    Parameters
    ----------
    by_size
        Factor of each size, above 0; at least one.

    Examples
    --------
    >>> Factors({1: 1.0, 4: 3.0}).at([1, 2, 4, 16]).tolist()
    [1.0, 2.0, 3.0, 3.0]
    """

    by_size: Mapping[int, float]

    def at(self, n_seqs: ArrayLike) -> Floats:
        """Return the factor at any batch: straight lines over the doublings, flat outside."""
        sizes = sorted(self.by_size)
        values = [self.by_size[size] for size in sizes]
        n = np.log2(np.maximum(np.asarray(n_seqs, dtype=np.float64), 1.0))
        return np.asarray(np.interp(n, np.log2(sizes), values), dtype=np.float64)

    def times(self, factor: float) -> Factors:
        """Return them all times a factor."""
        return Factors({size: value * factor for size, value in self.by_size.items()})

    def text(self) -> str:
        """Return them in words, for a comment."""
        return ", ".join(f"{self.by_size[n]:.4g} at {n}" for n in sorted(self.by_size))


AS_PROFILED = Factors({1: 1.0})
"""No factor at all."""
