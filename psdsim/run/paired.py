"""Estimates over replications: intervals of figures, and of ratios of paired runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from psdsim.run.cells import Outcome
from psdsim.stats import t_interval

WITH_INTERVAL = (
    "request_throughput", "decode_throughput", "acceptance_length", "acceptance_rate",
    "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "mean_itl_ms", "p99_itl_ms",
    "mean_e2el_ms", "p99_e2el_ms",
)  # fmt: skip
"""Figures that get an interval beside the throughput."""


def figure_intervals(outcomes: Sequence[Outcome], deterministic: bool) -> dict[str, Any]:
    """Return ``<figure>_ci`` for each: two numbers at 95 %, or None from a single random run."""
    found: dict[str, Any] = {}
    for name in WITH_INTERVAL:
        values = [outcome.metrics[name] for outcome in outcomes]
        if any(value is None for value in values):
            found[f"{name}_ci"] = None
        elif len(values) > 1:
            e = t_interval(values)
            found[f"{name}_ci"] = [e.low, e.high]
        else:
            found[f"{name}_ci"] = [values[0], values[0]] if deterministic else None
    return found


def throughput_interval(outcomes: Sequence[Outcome], deterministic: bool) -> list[float] | None:
    """Return the interval of the throughput: over replications, else by batch means inside it."""
    values = [outcome.metrics["output_throughput"] for outcome in outcomes]
    if len(values) > 1:
        e = t_interval(values)
        return [e.low, e.high]
    within = outcomes[0].within_run
    if deterministic:
        return [values[0], values[0]]
    if math.isnan(within.standard_error):
        return None
    half = (within.high - within.low) / 2
    return [values[0] - half, values[0] + half]


def ratio_interval(
    outcomes: Sequence[Outcome], baseline: Sequence[Outcome], factor: float = 1.0
) -> list[float] | None:
    """Return the interval of a ratio of mean throughputs of paired runs (delta method).

    Replication i of both saw the same traffic and text, so what is common cancels: the error is
    that of x_i - r y_i. A baseline that never varies has one run.
    """
    x = np.array([o.metrics["output_throughput"] for o in outcomes])
    y = np.array([o.metrics["output_throughput"] for o in baseline])
    if x.size < 2 and y.size < 2:
        return None
    x, y = np.broadcast_arrays(x, y)
    ratio = float(x.mean() / y.mean())
    error = float((x - ratio * y).std(ddof=1) / (math.sqrt(x.size) * y.mean()))
    half = float(stats.t.ppf(0.975, x.size - 1)) * error
    return [factor * (ratio - half), factor * (ratio + half)]
