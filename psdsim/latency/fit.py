"""An affine law fitted to a measured table, and how far it is from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from psdsim.errors import InputError
from psdsim.latency.simple import AffineStepTime
from psdsim.latency.table import TableStepTime


@dataclass(frozen=True)
class AffineFit:
    """A fitted law with its relative errors on the points it was fitted to.

    Parameters
    ----------
    model
        The affine law.
    median_error, worst_error
        |fitted / measured - 1|, median and maximum over the points.
    """

    model: AffineStepTime
    median_error: float
    worst_error: float


def fit_affine(table: TableStepTime) -> AffineFit:
    """Fit base, sequence, token and KV slopes, none negative, by least squares of relative error.

    What the points can't tell apart goes to the base first, then to the tokens, the sequences and
    the cache: with one query length `per_sequence_s` is 0, with one context `per_kv_token_s` is 0.

    Parameters
    ----------
    table
        Measured points (read in).

    Raises
    ------
    psdsim.errors.InputError
        If the table's file has not been read.

    Examples
    --------
    >>> rows = tuple((n, 1, c, 0.01 + 0.001 * n + 1e-6 * n * c)
    ...              for n in (1, 8, 32) for c in (128, 1024))
    >>> fit = fit_affine(TableStepTime(rows=rows))
    >>> round(fit.model.base_s, 9), round(fit.model.per_kv_token_s, 12), fit.worst_error < 1e-9
    (0.01, 1e-06, True)
    """
    if table.rows is None:
        raise InputError("the table has not been read", where="step_time")
    data = np.array(table.rows, dtype=np.float64)
    n, query, context, time_s = data.T
    design = np.stack([np.ones_like(n), n, n * query, n * context], axis=1)
    kept = _independent(design, order=(0, 2, 1, 3))
    scale = np.abs(design[:, kept]).max(axis=0)
    found, _ = nnls(design[:, kept] / time_s[:, None] / scale, np.ones_like(time_s))
    coefficients = np.zeros(4)
    coefficients[kept] = found / scale
    error = np.abs(design @ coefficients / time_s - 1.0)
    base, per_seq, per_token, per_kv = (float(c) for c in coefficients)
    model = AffineStepTime(
        base_s=base, per_sequence_s=per_seq, per_token_s=per_token, per_kv_token_s=per_kv
    )
    return AffineFit(model, float(np.median(error)), float(error.max()))


def _independent(design: NDArray[np.float64], *, order: tuple[int, ...]) -> list[int]:
    """Return the columns, in ``order``, that are no linear combination of those before them."""
    kept: list[int] = []
    for column in order:
        trial = design[:, [*kept, column]]
        size = np.abs(trial).max(axis=0)
        if size.min() > 0.0 and np.linalg.matrix_rank(trial / size, tol=1e-9) == len(kept) + 1:
            kept.append(column)
    return kept
