"""Capacity planning: latency against load, and the load at which latency targets break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from psdsim.errors import InputError
from psdsim.run.basis import Basis
from psdsim.run.cells import Cell, Task, run_task
from psdsim.run.pool import run_all
from psdsim.scenario import Scenario
from psdsim.stats import t_interval

_FIGURES = (
    "output_throughput",
    "request_throughput",
    "mean_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "p99_tpot_ms",
    "target_utilization",
)


@dataclass(frozen=True)
class Targets:
    """Latency targets (service level objectives); None leaves one out.

    Parameters
    ----------
    p99_ttft_ms, p99_tpot_ms
        99th percentiles that must not be exceeded, ms.
    """

    p99_ttft_ms: float | None = None
    p99_tpot_ms: float | None = None

    def __post_init__(self) -> None:
        if self.p99_ttft_ms is None and self.p99_tpot_ms is None:
            raise InputError("no latency target is given", expected="p99_ttft_ms or p99_tpot_ms")
        for name in ("p99_ttft_ms", "p99_tpot_ms"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} is {value}", expected="a time above 0 ms")

    def met(self, figures: dict[str, Any]) -> bool:
        """Say whether figures keep every target."""
        for name in ("p99_ttft_ms", "p99_tpot_ms"):
            limit = getattr(self, name)
            if limit is not None and not figures[name] <= limit:
                return False
        return not figures["saturated"]


def at_rate(scenario: Scenario, rate: float) -> Scenario:
    """Return a scenario with another arrival rate, requests/s.

    Batch and closed-loop workloads become Poisson arrivals of the same requests; a trace is
    sped up or slowed down.
    """
    work = scenario.workload
    if not rate > 0:
        raise InputError(f"the rate is {rate}", expected="above 0 requests/s")
    if work.kind in {"poisson", "gamma"}:
        return scenario.set({"workload.rate": float(rate)})
    if work.kind == "trace":
        from psdsim.workload import describe, generate

        own = describe(generate(work, 0, 0, scenario.base_dir))["request_rate"]
        if own is None:
            raise InputError("the trace has no arrival times", where=work.path)
        scale = work.rate_scale * rate / own
        return scenario.set({"workload.rate_scale": float(scale)})
    data = scenario.to_dict()["workload"]
    data.pop("concurrency", None)
    return scenario.set({"workload": data | {"kind": "poisson", "rate": float(rate)}})


def sweep_rates(
    scenario: Scenario,
    cells: Sequence[tuple[str, int]],
    rates: Sequence[float],
    *,
    basis: str | Basis = Basis.STEP_BATCH,
    seed: int = 0,
    n_replications: int = 3,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Simulate schedules over arrival rates, every point on the same requests and text.

    Parameters
    ----------
    scenario
        Deployment and traffic; its arrival rate is replaced.
    cells
        (schedule, k) pairs.
    rates
        Requests/s, > 0.
    basis, seed, n_replications, processes, progress
        As in `psdsim.compare`.

    Returns
    -------
    pandas.DataFrame
        One row a (schedule, k, rate): means over replications, and the 95 % interval of the two
        p99 figures (columns ending in _low and _high).
    """
    held = Basis(basis)
    keys = [(name, k, float(rate)) for name, k in cells for rate in rates]
    scenarios = {rate: at_rate(scenario, rate) for rate in map(float, rates)}
    tasks = [
        Task(scenarios[rate], Cell(name, k, held), seed, replication)
        for name, k, rate in keys
        for replication in range(n_replications)
    ]
    outcomes = run_all(run_task, tasks, processes=processes, progress=progress)
    rows = []
    for index, (name, k, rate) in enumerate(keys):
        own = outcomes[index * n_replications : (index + 1) * n_replications]
        row: dict[str, Any] = {"schedule": name, "k": k, "rate": rate}
        for figure in _FIGURES:
            row[figure] = float(np.mean([o.metrics[figure] for o in own]))
        for figure in ("p99_ttft_ms", "p99_tpot_ms"):
            e = t_interval([o.metrics[figure] for o in own])
            row[f"{figure}_low"], row[f"{figure}_high"] = e.low, e.high
        row["saturated"] = any(o.metrics["saturated"] for o in own)
        rows.append(row)
    return pd.DataFrame(rows)


def breaking_rate(
    scenario: Scenario,
    schedule: str,
    k: int,
    targets: Targets,
    *,
    low: float = 0.1,
    high: float = 1000.0,
    tolerance: float = 0.02,
    basis: str | Basis = Basis.STEP_BATCH,
    seed: int = 0,
    n_replications: int = 1,
) -> float:
    """Return the largest arrival rate, requests/s, at which the targets are still met.

    Found by doubling and bisection; all rates use the same random numbers, so the answer is as
    smooth as the simulation allows. 0.0 if the targets are missed even at `low`.

    Parameters
    ----------
    scenario, schedule, k, targets
        What is asked.
    low, high
        Where to search, requests/s.
    tolerance
        Relative width at which the search ends.
    basis, seed, n_replications
        As in `psdsim.compare`; figures are means over replications.
    """
    held = Basis(basis)

    def met(rate: float) -> bool:
        runs = [
            run_task(Task(at_rate(scenario, rate), Cell(schedule, k, held), seed, r)).metrics
            for r in range(n_replications)
        ]
        figures: dict[str, Any] = {
            name: float(np.mean([m[name] for m in runs])) for name in ("p99_ttft_ms", "p99_tpot_ms")
        }
        figures["saturated"] = any(m["saturated"] for m in runs)
        return targets.met(figures)

    if not met(low):
        return 0.0
    good, bad = low, low
    while good < high:
        bad = min(2.0 * good, high)
        if not met(bad):
            break
        good = bad
    else:
        return high
    while bad / good > 1.0 + tolerance:
        middle = float(np.sqrt(good * bad))
        good, bad = (middle, bad) if met(middle) else (good, middle)
    return good
