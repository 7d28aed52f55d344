"""Factors on the profiled times, from serial steps of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psdsim.calibrate.factors import AS_PROFILED, Factors
from psdsim.calibrate.figures import Figure, Spread, pooled, spread
from psdsim.calibrate.overhead import least_squares
from psdsim.calibrate.profile import Profile
from psdsim.calibrate.runs import Columns, MeasuredRun
from psdsim.errors import InputError
from psdsim.latency import StepTimer

MIN_STEPS = 20
"""Fewest decode steps on which a factor may rest."""
_MIN_PREFILLS = 3

Floats = NDArray[np.float64]


def target_alone(timer: StepTimer, steps: Columns, bonus: bool) -> Floats:
    """Return the profile's time of the target pass of each step, s."""
    n = steps["n_verify_seqs"]
    # Without bonus row, the last row of a request tests a draft and is counted with them.
    tokens = steps["n_verified_tokens"] + (n if bonus else 0)
    return timer.over(n, tokens, steps["n_kv_tokens"])


def draft_alone(timer: StepTimer, steps: Columns) -> Floats:
    """Return the profile's time of the drafting phase of each step, s.

    The cache of the requests that are drafted for is taken to be as long as that of those
    verified in the same step.
    """
    n = steps["n_draft_seqs"]
    kv = steps["n_kv_tokens"] * (n / np.maximum(steps["n_verify_seqs"], 1))
    k = steps["n_drafted_tokens"] // np.maximum(n, 1)
    total = np.zeros(n.size)
    for i in range(int(k.max(initial=0))):
        total += np.where(i < k, timer.over(n, n, kv + i * n), 0.0)
    return total


def drafting(steps: Columns) -> Columns:
    """Return the steps that draft."""
    mask = (steps["n_draft_seqs"] > 0) & (steps["draft_time_s"] > 0)
    return {name: column[mask] for name, column in steps.items()}


@dataclass(frozen=True)
class TargetFit(Spread):
    """Target passes in serial steps / the profile's.

    Parameters
    ----------
    factors
        On the profile's times, by batch.
    """

    factors: Factors = AS_PROFILED


def full_sizes(runs: Sequence[MeasuredRun]) -> list[int]:
    """Return the full batches of runs: what they ran at but for their tails."""
    return sorted({int(run.decode_steps()["n_verify_seqs"].max(initial=1)) for run in runs})


def fit_target(profile: Profile, serial: Sequence[MeasuredRun], pauses: bool) -> TargetFit:
    """Fit target passes in serial steps, at each of the runs' full batches.

    Where the target `pauses` while a model drafts on a device of its own, plain decoding alone
    counts if there is any: its passes follow each other without a pause, as the profile's do and
    those of overlapping schedules. What a pass takes longer after a pause is left to `fit_pause`.
    """
    timer = profile.timer("target", "decode")
    assert timer is not None
    plain = [run for run in serial if not run.drafts]
    runs = plain if pauses and plain else list(serial)
    parts, sizes = [], []
    for run in runs:
        steps = run.decode_steps()
        parts.append(steps["verify_time_s"] / target_alone(timer, steps, True))
        sizes.append(steps["n_verify_seqs"])
    whole = _enough(_balanced(parts), "decode steps of ar or sd", "target's passes")
    ratio, n = pooled(parts), pooled(sizes)
    own = {size: ratio[(n == size) & (ratio > 0)] for size in full_sizes(runs)}
    middle = {size: spread(r).median.value for size, r in own.items() if r.size >= MIN_STEPS}
    if not middle:
        return TargetFit(whole.median, whole.cv, whole.quartiles, Factors({1: whole.mean}))
    # What differs between batches is no jitter.
    around = Factors(middle)
    cv = _enough(_balanced([r / around.at(s) for r, s in zip(parts, sizes, strict=True)]),
                 "decode steps of ar or sd", "target's passes").cv  # fmt: skip
    mean = (1.0 + cv**2) ** 0.5
    factors = Factors({size: value * mean for size, value in middle.items()})
    return TargetFit(whole.median, cv, whole.quartiles, factors)


def _balanced(parts: Sequence[Floats]) -> Floats:
    """Return as many values of each run, evenly spaced: small batches take more steps."""
    sizes = [part.size for part in parts if part.size]
    n = max(min(sizes, default=0), MIN_STEPS)
    picked = [
        part[np.unique(np.linspace(0, part.size - 1, min(n, part.size)).astype(np.int64))]
        for part in parts
        if part.size
    ]
    return pooled(picked)


_NONE = Figure(0.0, 0.0, 0.0, 0)


@dataclass(frozen=True)
class DraftFit(Spread):
    """Drafting phases: start + factor x the profile's forwards.

    Parameters
    ----------
    factors
        On the profile's forwards, by batch.
    start
        Of every phase, s, as far as the drafter itself measured it.
    """

    factors: Factors = AS_PROFILED
    start: Figure = _NONE


def fit_draft(profile: Profile, serial: Sequence[MeasuredRun]) -> DraftFit:
    """Fit drafting phases in serial steps; two draft lengths tell the start from the forwards."""
    timer = profile.timer("draft", "decode")
    assert timer is not None
    runs = [run for run in serial if run.drafts]
    measured, alone, batch, length = [], [], [], []
    for run in runs:
        steps = drafting(run.decode_steps())
        measured.append(steps["draft_time_s"])
        alone.append(draft_alone(timer, steps))
        batch.append(steps["n_draft_seqs"])
        length.append(np.full(batch[-1].size, run.k))
    d, a, n, k = pooled(measured), pooled(alone), pooled(batch), pooled(length)
    plain = _enough(d / a, "drafting steps of sd", "draft's phases")
    # Two draft lengths tell the start from the forwards; at one, it is part of the factor.
    told = [size for size in full_sizes(runs) if np.unique(k[n == size]).size > 1]
    rows = np.isin(n, told)
    if rows.sum() < MIN_STEPS:
        factors = Factors({1: plain.mean})
        return DraftFit(plain.median, plain.cv, plain.quartiles, factors)
    x = np.stack([np.ones(int(rows.sum())), *(a[rows] * (n[rows] == s) for s in told)], axis=1)
    (start, *found), (error, *_) = least_squares(x, d[rows])
    if start <= 0 or min(found) <= 0:
        factors = Factors({1: plain.mean})
        return DraftFit(plain.median, plain.cv, plain.quartiles, factors)
    factors = Factors(dict(zip(told, found, strict=True)))
    # As ratios to the profile's, had the start been in proportion to it.
    factor = factors.at(n)
    whole = spread(factor * d / (start + factor * a))
    cv = spread(d / (start + factor * a)).cv
    figure = Figure(start, max(start - 1.96 * error, 0.0), start + 1.96 * error, d.size)
    return DraftFit(whole.median, cv, whole.quartiles, factors, figure)


def fit_pause(profile: Profile, serial: Sequence[MeasuredRun], factors: Factors) -> Figure:
    """Return how much longer sd's target passes take than plain decoding's, s.

    The target pauses while drafts are made; what it finds in its caches afterwards is less.

    Parameters
    ----------
    profile, serial
        Times alone, runs.
    factors
        Of the target's passes without a pause (`fit_target`).
    """
    timer = profile.timer("target", "decode")
    assert timer is not None
    parts = []
    for run in serial:
        if run.drafts:
            steps = run.decode_steps()
            expected = factors.at(steps["n_verify_seqs"]) * target_alone(timer, steps, True)
            parts.append(steps["verify_time_s"] - expected)
    more = pooled(parts)
    if not more.size:
        return Figure(0.0, 0.0, 0.0, 0)
    middle = float(more.mean())
    reach = 1.96 * float(more.std(ddof=1)) / more.size**0.5 if more.size > 1 else 0.0
    return Figure(max(middle, 0.0), max(middle - reach, 0.0), max(middle + reach, 0.0), more.size)


def _enough(ratios: Floats, what: str, of: str) -> Spread:
    ratios = ratios[ratios > 0]
    if ratios.size < MIN_STEPS:
        raise InputError(
            f"the runs have {ratios.size} {what} to fit the {of} on",
            expected=f"at least {MIN_STEPS}",
        )
    return spread(ratios)


@dataclass(frozen=True)
class PrefillFit:
    """Prompt passes of one model.

    Parameters
    ----------
    spread
        Measured / profiled; None where there is no profile or too few steps.
    mean_s
        Mean measured time of a prompt pass; None without any.
    n
        Prefill steps in the runs.
    """

    spread: Spread | None
    mean_s: float | None
    n: int


def fit_prefill(profile: Profile, runs: Sequence[MeasuredRun], model: str) -> PrefillFit:
    """Compare prompt passes in the runs with the profile's."""
    timer = profile.timer(model, "prefill")
    column = "verify_time_s" if model == "target" else "draft_time_s"
    ratios, times = [], []
    for run in runs:
        if model == "draft" and not run.drafts:
            continue
        steps = run.prefill_steps()
        times.append(steps[column])
        if timer is not None:
            # Each request of a prefill step gets its first token there.
            alone = timer.over(steps["n_emitted_tokens"], steps["n_prefill_tokens"], 0)
            ratios.append(steps[column] / alone)
    time_s, ratio = pooled(times), pooled(ratios)
    ratio = ratio[ratio > 0]
    return PrefillFit(
        spread(ratio) if ratio.size >= _MIN_PREFILLS else None,
        float(time_s.mean()) if time_s.size else None,
        int(time_s.size),
    )
