"""Measured step times: a grid over batch, query length and context, interpolated between points."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

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
            raise ValueError("expected either path or rows")
        if self.rows is not None:
            try:
                self.grid  # noqa: B018 (a hole in the grid shall show now)
            except InputError as error:
                raise ValueError(str(error)) from None
        return self

    def resolve(self, base_dir: Path) -> Self:
        """Return the same table with its file read in."""
        if self.path is None:
            return self
        path = base_dir / self.path
        rows = read_table(path)
        try:
            return self.model_copy(update={"rows": tuple(rows), "path": None})._checked()
        except InputError as error:
            raise error.at(str(path)) from None

    def _checked(self) -> Self:
        self.grid  # noqa: B018
        return self

    @cached_property
    def grid(self) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.float64]]:
        """The axes, and the times on their product, shape (n_batch, n_query, n_context)."""
        if self.rows is None:
            raise InputError("the table has not been read", where="step_time")
        data = np.array(self.rows, dtype=np.float64)
        axes = tuple(np.unique(data[:, i]) for i in range(3))
        times = np.full([axis.size for axis in axes], np.nan)
        index = tuple(np.searchsorted(axis, data[:, i]) for i, axis in enumerate(axes))
        if np.unique(np.stack(index), axis=1).shape[1] < len(data):
            raise InputError("a point stands twice in the step-time table")
        times[index] = data[:, 3]
        holes = np.argwhere(np.isnan(times))
        if holes.size:
            at = ", ".join(
                f"{name} {axis[i]:g}" for name, axis, i in zip(AXES, axes, holes[0], strict=True)
            )
            raise InputError(
                f"the step-time table has no point at {at} ({len(holes)} missing in all)",
                expected="a full grid",
            )
        return axes, times

    def _bare_timer(self, placement: Placement) -> StepTimer:
        axes, times = self.grid
        notes: set[str] = set()
        lists = [axis.tolist() for axis in axes]

        def seconds(n_seqs: float, n_tokens: float, n_kv_tokens: float) -> float:
            point = (n_seqs, n_tokens / n_seqs, n_kv_tokens / n_seqs)
            corner = times
            for name, axis, x in zip(AXES, lists, point, strict=True):
                corner = _along(name, axis, x, corner, notes)
            return max(float(corner), 0.0)

        return StepTimer(seconds, notes=notes)


def _along(
    name: str, axis: list[float], x: float, values: NDArray[Any], notes: set[str]
) -> NDArray[Any]:
    """Interpolate over the first dimension; extend linearly beyond the ends."""
    slack = 1e-9 * max(abs(x), 1.0)
    outside = x < axis[0] - slack or x > axis[-1] + slack
    if outside and not any(note.startswith(name) for note in notes):
        how = "extended linearly" if len(axis) > 1 else "taken as it is there"
        notes.add(f"{name} {x:g} lies outside the table ({axis[0]:g} to {axis[-1]:g}): {how}")
    if len(axis) == 1:
        return np.asarray(values[0])
    right = int(np.clip(np.searchsorted(axis, x), 1, len(axis) - 1))
    share = (x - axis[right - 1]) / (axis[right] - axis[right - 1])
    return np.asarray(values[right - 1] * (1.0 - share) + values[right] * share)
