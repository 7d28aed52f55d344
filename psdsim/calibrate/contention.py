"""By how much passes slow each other while both models run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from psdsim.calibrate.factors import Factors
from psdsim.calibrate.figures import Figure, pooled, spread
from psdsim.calibrate.profile import Profile
from psdsim.calibrate.runs import MeasuredRun
from psdsim.calibrate.times import MIN_STEPS, draft_alone, target_alone

Floats = NDArray[np.float64]
_RESAMPLES = 60


@dataclass(frozen=True)
class SlowDownFit:
    """The pair of factors.

    Parameters
    ----------
    target, draft
        Of target passes while the draft runs, and the other way round.
    source
        What they rest on, in words.
    """

    target: Figure
    draft: Figure
    source: str


def elapsed(draft_s: Floats, verify_s: Floats, target: float, draft: float) -> Floats:
    """Return how long two passes take that begin together, shape (2, n): draft, target.

    Parameters
    ----------
    draft_s, verify_s
        Their times alone.
    target, draft
        Slow-down of the target, of the draft, while both run.

    Examples
    --------
    >>> elapsed(np.array([0.25]), np.array([1.0]), 1.0, 2.0).ravel().tolist()
    [0.5, 1.0]
    """
    first = draft_s * draft <= verify_s * target
    together = np.where(first, draft_s * draft, verify_s * target)
    late_target = verify_s + together * (1.0 - 1.0 / target)
    late_draft = draft_s + together * (1.0 - 1.0 / draft)
    return np.stack((np.where(first, together, late_draft), np.where(first, late_target, together)))


def fit_slow_down(
    profile: Profile,
    runs: Sequence[MeasuredRun],
    target_factors: Factors,
    draft_factors: Factors,
    draft_start_s: float = 0.0,
) -> SlowDownFit | None:
    """Fit the pair on overlapped steps of the runs, else take the profile's busy rows.

    Parameters
    ----------
    profile
        Times alone.
    runs
        All runs.
    target_factors, draft_factors
        Time in serial steps / the profile's, by batch.
    draft_start_s
        Of every drafting phase, s.

    Returns
    -------
    SlowDownFit or None
        None where nothing was measured while both ran.
    """
    target, draft = profile.timer("target", "decode"), profile.timer("draft", "decode")
    assert target is not None
    assert draft is not None
    parts: list[list[Floats]] = [[], [], [], []]
    for run in runs:
        if not run.schedule.overlaps:
            continue
        steps = run.decode_steps()
        # A group that is alone drafts and verifies in turn.
        both = (steps["draft_group"] >= 0) & (steps["draft_time_s"] > 0)
        if run.schedule.n_groups > 1:
            both &= steps["draft_group"] != steps["verify_group"]
        steps = {name: column[both] for name, column in steps.items()}
        found = (
            draft_alone(draft, steps) * draft_factors.at(steps["n_draft_seqs"]) + draft_start_s,
            target_alone(target, steps, run.schedule.bonus)
            * target_factors.at(steps["n_verify_seqs"]),
            steps["draft_time_s"],
            steps["verify_time_s"],
        )
        for part, column in zip(parts, found, strict=True):
            part.append(column)
    data = np.stack([pooled(part) for part in parts])
    if data.shape[1] >= MIN_STEPS:
        return _from_steps(data)
    slow = [profile.slow_downs(model) for model in ("target", "draft")]
    if not all(slow):
        return None
    pair = []
    for ratios in slow:
        middle = spread(ratios).median
        low, high = max(middle.low, 1.0), max(middle.high, 1.0)
        pair.append(Figure(max(middle.value, 1.0), low, high, middle.n))
    source = "busy / alone of the shapes profiled both ways, median"
    return SlowDownFit(pair[0], pair[1], source)


def _from_steps(data: Floats) -> SlowDownFit:
    best = _fit(data)
    rng = np.random.default_rng(0)
    n = data.shape[1]
    again = np.array([_fit(data[:, rng.integers(0, n, n)], best) for _ in range(_RESAMPLES)])
    low, high = np.quantile(again, (0.025, 0.975), axis=0)
    target, draft = (
        Figure(float(b), float(lo), float(hi), n) for b, lo, hi in zip(best, low, high, strict=True)
    )
    return SlowDownFit(target, draft, "steps of the runs in which both models worked (bootstrap)")


def _fit(data: Floats, start: Floats | None = None) -> Floats:
    """Return the pair with the least mean |log(measured / predicted)| of both passes."""
    draft_s, verify_s = data[:2]
    seen = np.log(data[2:])

    def loss(x: Floats) -> float:
        pair = 1.0 + x**2  # never below 1
        return float(np.abs(seen - np.log(elapsed(draft_s, verify_s, *pair))).mean())

    first = np.array([1.1, 1.1]) if start is None else np.maximum(start, 1.0 + 1e-4)
    found = minimize(loss, np.sqrt(first - 1.0), method="Nelder-Mead", options={"xatol": 1e-4})
    pair: Floats = 1.0 + found.x**2
    return pair
