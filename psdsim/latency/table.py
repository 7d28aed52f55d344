"""Measured step times: a grid over batch, query length and context, interpolated between points."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from psdsim.errors import InputError
from psdsim.hardware.fields import NonNegative, Positive
from psdsim.latency.base import Placement, StepTime, StepTimer
from psdsim.latency.table_file import AXES, read_table

Row = tuple[Positive, Positive, NonNegative, Positive]
"""(n_seqs, query_length, context, time_s)."""


class TableStepTime(StepTime):
    """Linear interpolation on a full grid of measured points; linear extension beyond it, flagged.

    Axes: `n_seqs` sequences in the pass, `query_length` new tokens a sequence, `context` cached
    tokens a sequence (means, where sequences differ). An axis with one point means that the
    time was not measured against it; asking elsewhere is flagged.

    Examples
    --------
    >>> rows = ((1, 1, 0, 1.0), (3, 1, 0, 2.0))
    >>> timer = TableStepTime(rows=rows).bind(Placement())
    >>> timer(2, 2, 0), timer(5, 5, 0)
    (1.5, 3.0)
    >>> sorted(timer.notes)
    ['n_seqs 5 lies outside the table (1 to 3): extended linearly']
    """

    kind: Literal["table"] = Field("table", description="Measured points, interpolated.")
    path: str | None = Field(
        None, min_length=1, description="CSV with n_seqs, query_length, context, time_s (or _ms)."
    )
    rows: Annotated[tuple[Row, ...], Field(min_length=1)] | None = Field(
        None, description="The points: [n_seqs, query_length, context, time_s]."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.path is None) == (self.rows is None):
            found = "neither" if self.path is None else "both"
            raise ValueError(f"found {found}; expected either path or rows")
        if self.rows is not None:
            try:
                self.grid()  # a hole in the grid shall show now
            except InputError as error:
                raise ValueError(str(error)) from None
        return self

    def resolve(self, base_dir: Path) -> Self:
        """Return the same table with its file read in."""
        if self.path is None:
            return self
        path = base_dir / self.path
        read = self.model_copy(update={"rows": tuple(read_table(path)), "path": None})
        try:
            read.grid()
        except InputError as error:
            raise error.at(str(path)) from None
        return read

    def grid(self) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.float64]]:
        """Return the axes, and the times on their product, shape (n_batch, n_query, n_context).

        Raises
        ------
        psdsim.errors.InputError
            If the file has not been read, a point is missing, stands twice, or is impossible.
        """
        if self.rows is None:
            raise InputError("the table has not been read", where="step_time")
        data = np.array(self.rows, dtype=np.float64)
        empty = data[:, :2].min(axis=1) < 1.0
        if empty.any():
            raise InputError(
                f"the step-time table has a row at {_named(data[empty][0, :3])}",
                expected="at least one sequence and one token each",
            )
        axes = tuple(np.unique(data[:, i]) for i in range(3))
        times = np.full([axis.size for axis in axes], np.nan)
        index = tuple(np.searchsorted(axis, data[:, i]) for i, axis in enumerate(axes))
        points, counts = np.unique(data[:, :3], axis=0, return_counts=True)
        if counts.max() > 1:
            raise InputError(f"the step-time table has two rows at {_named(points[counts > 1][0])}")
        times[index] = data[:, 3]
        holes = np.argwhere(np.isnan(times))
        if holes.size:
            first = [axis[i] for axis, i in zip(axes, holes[0], strict=True)]
            raise InputError(
                f"the step-time table has no row at {_named(first)} ({len(holes)} missing in all)",
                expected="a full grid",
            )
        return axes, times

    def _bare_timer(self, placement: Placement) -> StepTimer:
        axes, times = self.grid()
        notes: set[str] = set()
        batch, query, context = (
            _Axis(name, axis.tolist(), notes) for name, axis in zip(AXES, axes, strict=True)
        )
        # Plain floats in nested lists: a pass asks for one point, where NumPy is ten times slower.
        values: list[list[list[float]]] = times.tolist()

        def seconds(n_seqs: float, n_tokens: float, n_kv_tokens: float) -> float:
            i, i_next, u = batch.locate(n_seqs)
            j, j_next, v = query.locate(n_tokens / n_seqs)
            m, m_next, w = context.locate(n_kv_tokens / n_seqs)

            def at(row: list[float]) -> float:
                return row[m] * (1.0 - w) + row[m_next] * w

            near, far = values[i], values[i_next]
            first = at(near[j]) * (1.0 - v) + at(near[j_next]) * v
            second = at(far[j]) * (1.0 - v) + at(far[j_next]) * v
            time_s = first * (1.0 - u) + second * u
            if time_s < 0.0:
                notes.add("step-time table: its linear extension falls below 0, taken as 0")
                return 0.0
            return float(time_s)

        return StepTimer(seconds, notes=notes)


def _named(point: Iterable[float]) -> str:
    return ", ".join(f"{name} {x:g}" for name, x in zip(AXES, point, strict=True))


class _Axis:
    """The points of one axis; says between which two a value lies, and notes if it lies outside."""

    def __init__(self, name: str, points: list[float], notes: set[str]) -> None:
        self._name = name
        self._points = points
        self._notes = notes
        self._flagged = False

    def locate(self, x: float) -> tuple[int, int, float]:
        """Return (index, next index, share of the next), the share outside [0, 1] beyond the ends.

        An axis of one point gives (0, 0, 0): no dependence.
        """
        points = self._points
        if not self._flagged:
            # Quotients of token counts may miss a point by a rounding.
            slack = 1e-9 * max(abs(x), 1.0)
            if x < points[0] - slack or x > points[-1] + slack:
                self._flag(x)
        if len(points) == 1:
            return 0, 0, 0.0
        right = min(max(bisect_left(points, x), 1), len(points) - 1)
        left = right - 1
        return left, right, (x - points[left]) / (points[right] - points[left])

    def _flag(self, x: float) -> None:
        self._flagged = True
        ends = f"{self._points[0]:g} to {self._points[-1]:g}"
        how = "extended linearly" if len(self._points) > 1 else "taken as it is there"
        self._notes.add(f"{self._name} {x:g} lies outside the table ({ends}): {how}")
