"""What a step costs beside its passes, from serial steps of the runs; least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from psdsim.calibrate.figures import Figure
from psdsim.calibrate.runs import MeasuredRun

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Overhead:
    """What a step costs beside its passes, s.

    Parameters
    ----------
    fixed, per_seq
        Of every step; added for each request in it.
    sync
        Handover of drafts; None where no run could tell it from the rest.
    """

    fixed: Figure
    per_seq: Figure
    sync: Figure | None


def fit_overhead(serial: Sequence[MeasuredRun], own_device: bool) -> Overhead:
    """Fit step - draft - verify of serial steps by a constant, requests, and a handover.

    Means are fitted (least squares, nothing below 0), since it is sums of steps that a
    prediction is about; standard errors allow for unequal variances.

    Parameters
    ----------
    serial
        Runs of ar and sd.
    own_device
        Whether sd's drafts are handed over from a device of their own.
    """
    rows, rests = [], []
    for run in serial:
        steps = run.decode_steps()
        n = steps["n_verify_seqs"].astype(np.float64)
        handover = (steps["n_drafted_tokens"] > 0).astype(np.float64)
        rows.append(np.stack([np.ones(n.size), n, handover], axis=1))
        length = steps["end_s"] - steps["start_s"]
        rests.append(length - steps["draft_time_s"] - steps["verify_time_s"])
    x, y = np.concatenate(rows), np.concatenate(rests)
    used = [0]
    if np.ptp(x[:, 1]) > 0:
        used.append(1)
    if own_device and 0 < x[:, 2].sum() < len(x):
        used.append(2)
    # What would be below 0 is left out, the rest fitted again.
    kept = [c for c, value in zip(used, nnls(x[:, used], y)[0], strict=True) if value > 0]
    values, errors = least_squares(x[:, kept], y)
    found = dict(zip(kept, zip(values, errors, strict=True), strict=True))

    def figure(column: int) -> Figure:
        value, error = found.get(column, (0.0, 0.0))
        return Figure(value, max(value - 1.96 * error, 0.0), value + 1.96 * error, y.size)

    return Overhead(figure(0), figure(1), figure(2) if 2 in used else None)


def least_squares(x: Floats, y: Floats) -> tuple[list[float], list[float]]:
    """Return coefficients and their standard errors, for rows of unequal variance."""
    if not x.shape[1]:
        return [], []
    inverse = np.linalg.pinv(x.T @ x)
    beta = inverse @ x.T @ y
    rest = y - x @ beta
    # HC1: small-sample correction of White's estimator.
    meat = (x * (rest**2)[:, None]).T @ x * (len(y) / max(len(y) - x.shape[1], 1))
    errors = np.sqrt(np.maximum(np.diag(inverse @ meat @ inverse), 0.0))
    return beta.tolist(), errors.tolist()
