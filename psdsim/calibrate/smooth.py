"""Noise of a profile taken off: a pass over more rows or a longer context is not shorter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Row = tuple[float, float, float, float]
_CYCLES = 200
_CLOSE = 1e-9


def monotone(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows whose times rise with requests, query length and context.

    The least-squares projection of the logarithms of the times onto tables that rise along every
    axis (isotonic regression in several dimensions), by Dykstra's cyclic projections: Robertson,
    Wright and Dykstra 1988, section 1.4. Rows that form no full grid are returned as they are.

    Parameters
    ----------
    rows
        (requests, query length, context, seconds), seconds above 0.

    Examples
    --------
    >>> [round(row[3], 6) for row in monotone([(1, 1, 8, 2.0), (2, 1, 8, 8.0), (4, 1, 8, 2.0)])]
    [2.0, 4.0, 4.0]
    """
    axes = [sorted({row[i] for row in rows}) for i in range(3)]
    shape = tuple(len(axis) for axis in axes)
    if len(rows) != np.prod(shape) or len({row[:3] for row in rows}) != len(rows):
        return tuple(rows)
    grid = np.empty(shape)
    for n, q, c, time_s in rows:
        grid[axes[0].index(n), axes[1].index(q), axes[2].index(c)] = np.log(time_s)
    grid = _project(grid)
    return tuple(
        (n, q, c, float(np.exp(grid[i, j, m])))
        for i, n in enumerate(axes[0])
        for j, q in enumerate(axes[1])
        for m, c in enumerate(axes[2])
    )


def straight(rows: Sequence[Row], sizes: Sequence[int], noise: float) -> list[Row]:
    """Return rows on straight lines between batches that are known, where noise hides the shape.

    A batch between two known ones keeps its own time only if that is further from the line than
    the noise.

    Parameters
    ----------
    rows
        As for `monotone`.
    sizes
        Batches whose times are known well.
    noise
        Largest distance, as a logarithm of the ratio, that is taken for noise.

    Examples
    --------
    >>> [row[3] for row in straight([(1, 1, 8, 1.0), (2, 1, 8, 1.3), (3, 1, 8, 2.0)], [1, 3], 0.2)]
    [1.0, 1.5, 2.0]
    """
    lines: dict[tuple[float, float], dict[float, float]] = {}
    for n, q, c, time_s in rows:
        lines.setdefault((q, c), {})[n] = time_s
    out = []
    for n, q, c, time_s in rows:
        known = lines[q, c]
        ends = [size for size in sizes if size in known]
        if len(ends) > 1 and ends[0] < n < ends[-1] and n not in ends:
            on_line = float(np.interp(n, ends, [known[size] for size in ends]))
            if abs(np.log(time_s / on_line)) <= noise:
                time_s = on_line
        out.append((n, q, c, time_s))
    return out


def _project(grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project onto the tables that rise along every axis."""
    along = [axis for axis in range(grid.ndim) if grid.shape[axis] > 1]
    left = {axis: np.zeros_like(grid) for axis in along}
    for _ in range(_CYCLES):
        before = grid
        for axis in along:
            asked = grid - left[axis]
            grid = np.apply_along_axis(lambda line: isotonic_regression(line).x, axis, asked)
            left[axis] = grid - asked
        if np.abs(grid - before).max() < _CLOSE:
            break
    return grid
