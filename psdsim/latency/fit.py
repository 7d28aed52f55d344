"""An affine law fitted to a measured table, and how far it is from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

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

    Parameters
    ----------
    table
        Measured points (read in).

    Examples
    --------
    >>> rows = tuple((n, 1, c, 0.01 + 0.001 * n + 1e-6 * n * c)
    ...              for n in (1, 8, 32) for c in (128, 1024))
    >>> fit = fit_affine(TableStepTime(rows=rows))
    >>> round(fit.model.base_s, 9), round(fit.model.per_kv_token_s, 12), fit.worst_error < 1e-9
    (0.01, 1e-06, True)
    """
    data = np.array(table.rows, dtype=np.float64)
    n, query, context, time_s = data.T
    design = np.stack([np.ones_like(n), n, n * query, n * context], axis=1)
    if np.allclose(query, query[0]):
        # One query length can't tell sequences from tokens: give all to the tokens.
        design[:, 1] = 0.0
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    coefficients, _ = nnls(design / time_s[:, None] / scale, np.ones_like(time_s))
    coefficients = coefficients / scale
    error = np.abs(design @ coefficients / time_s - 1.0)
    base, per_seq, per_token, per_kv = (float(c) for c in coefficients)
    model = AffineStepTime(
        base_s=base, per_sequence_s=per_seq, per_token_s=per_token, per_kv_token_s=per_kv
    )
    return AffineFit(model, float(np.median(error)), float(error.max()))
