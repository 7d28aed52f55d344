"""Several schedules on the same traffic and the same text, each against its baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.run.basis import Basis, n_gpus
from psdsim.run.cells import (
    Cell,
    Outcome,
    Task,
    asked_cells,
    baseline_cells,
    is_deterministic,
    run_task,
)
from psdsim.run.notes import assumed_notes
from psdsim.run.paired import figure_intervals, ratio_interval, throughput_interval
from psdsim.run.pool import run_all
from psdsim.run.why import why
from psdsim.scenario import Scenario

# Below about this many output tokens in all, starting worker processes costs more than it gains.
_WORTH_PROCESSES = 3_000_000


@dataclass(frozen=True, eq=False)
class Comparison:
    """The rows of a comparison, and what one must know to trust and repeat it.

    Parameters
    ----------
    rows
        One mapping a schedule and k.
    notes
        ASSUMED figures, extensions, extrapolations, what is not modelled.
    scenario, basis, seed, n_replications
        What was run.
    """

    rows: list[dict[str, Any]]
    notes: tuple[str, ...]
    scenario: Scenario
    basis: Basis
    seed: int
    n_replications: int

    def to_frame(self) -> pd.DataFrame:
        """Return one row a schedule and k."""
        return pd.DataFrame(self.rows)

    def summary(self) -> pd.DataFrame:
        """Return the columns that answer the question, indexed by schedule and k."""
        columns = [
            "output_throughput", "theory_output_throughput", "speedup_vs_ar", "speedup_vs_sd",
            "mean_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "acceptance_length", "n_gpus", "why",
        ]  # fmt: skip
        frame = self.to_frame().set_index(["schedule", "k"])
        return frame[[column for column in columns if column in frame.columns]]


def run_comparison(
    scenario: Scenario,
    schedules: Sequence[str],
    ks: Sequence[int],
    *,
    basis: Basis = Basis.STEP_BATCH,
    seed: int = 0,
    n_replications: int = 3,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run a comparison without its theory columns (`psdsim.compare` adds them).

    Parameters
    ----------
    scenario
        Deployment and traffic.
    schedules, ks
        What to compare; draft lengths are whole numbers of at least 0.
    basis
        What is held equal.
    seed, n_replications
        Replications 0..n-1 of this seed; each is one draw of text and traffic that all
        schedules share.
    processes
        Worker processes; None decides by the size of the job. The result doesn't depend on it.
    progress
        Called with (runs done, runs in all).
    """
    if n_replications < 1:
        raise InputError(
            f"replications is {n_replications}", expected="at least 1", where="--replications"
        )
    cells = asked_cells(schedules, ks, basis)
    if not cells:
        raise InputError("nothing to compare", expected="at least one schedule with a k it takes")
    hidden = baseline_cells(cells, scenario)
    tasks = [
        Task(scenario, cell, seed, replication)
        for cell in (*cells, *hidden)
        for replication in range(_n_runs(cell, scenario, basis, n_replications))
    ]
    worth_it = len(tasks) * _tokens(scenario) > _WORTH_PROCESSES
    outcomes = run_all(run_task, tasks, processes=processes, worth_it=worth_it, progress=progress)
    by_cell: dict[Cell, list[Outcome]] = {}
    for task, outcome in zip(tasks, outcomes, strict=True):
        by_cell.setdefault(task.cell, []).append(outcome)
    rows = [_row(cell, by_cell, scenario, basis) for cell in cells]
    _add_best_sd(rows, by_cell, basis)
    notes = assumed_notes(scenario)
    for outcome in outcomes:
        notes += outcome.notes
    return Comparison(rows, tuple(dict.fromkeys(notes)), scenario, basis, seed, n_replications)


def _n_runs(cell: Cell, scenario: Scenario, basis: Basis, n_replications: int) -> int:
    """Return the runs of a cell: one where all would be equal, or for a column without interval."""
    if cell.basis is not basis or is_deterministic(scenario, cell):
        return 1
    return n_replications


def _tokens(scenario: Scenario) -> float:
    work = scenario.workload
    if work.kind == "trace":
        return 1e6
    length = work.output_tokens
    mean = length if isinstance(length, int) else getattr(length, "mean", 256)
    return float(mean) * work.n_requests


def mean_of(outcomes: list[Outcome], name: str) -> Any:
    """Return the mean of a figure over replications (None if any lacks it; any() for flags)."""
    values = [outcome.metrics[name] for outcome in outcomes]
    if any(value is None for value in values):
        return None
    if isinstance(values[0], bool):
        return any(values)
    if isinstance(values[0], int) and len(set(values)) == 1:
        return values[0]
    return float(np.mean(values))


def _row(
    cell: Cell, by_cell: dict[Cell, list[Outcome]], scenario: Scenario, basis: Basis
) -> dict[str, Any]:
    cls = method(cell.schedule).schedule
    outcomes = by_cell[cell]
    row: dict[str, Any] = {"schedule": cell.schedule, "k": cell.k, "basis": str(basis)}
    row["lossless"] = method(cell.schedule).lossless
    row |= {name: mean_of(outcomes, name) for name in outcomes[0].metrics}
    gpus = n_gpus(cell.schedule, scenario, cell.k)
    row["n_gpus"] = gpus
    fixed = is_deterministic(scenario, cell)
    row["output_throughput_ci"] = throughput_interval(outcomes, fixed)
    row |= figure_intervals(outcomes, fixed)
    row["n_replications"] = len(outcomes)
    row["output_throughput_per_gpu"] = row["output_throughput"] / gpus
    ar = by_cell[Cell("ar", 0, basis)]
    sd = by_cell.get(Cell("sd", cell.k, basis)) if cell.k else ar
    for name, baseline in (("ar", ar), ("sd", sd)):
        ratio, interval = _speedup(cell, outcomes, name, baseline or [], scenario, basis)
        row[f"speedup_vs_{name}"], row[f"speedup_vs_{name}_ci"] = ratio, interval
    if sd:
        own = gpus / n_gpus("sd", scenario, cell.k)
        plain = _ratio_of_means(outcomes, sd)
        row["speedup_vs_sd_per_gpu"] = None if plain is None else plain / own
        equal = by_cell.get(Cell(cell.schedule, cell.k, Basis.CONCURRENCY), outcomes)
        row["speedup_vs_sd_equal_concurrency"] = (
            plain if equal is outcomes else _ratio_of_means(equal, sd[:1])
        )
    step, ar_step = row["mean_step_time_s"], mean_of(ar, "mean_step_time_s")
    row["step_cost_ratio"] = step / ar_step if step and ar_step else None
    plain_ar = _ratio_of_means(outcomes, ar)
    length = row["acceptance_length"]
    row["implied_step_cost_ratio"] = length / plain_ar if length and plain_ar else None
    row["why"] = why(row, cls)
    return row


def _ratio_of_means(outcomes: list[Outcome], baseline: list[Outcome]) -> float | None:
    own, base = mean_of(outcomes, "output_throughput"), mean_of(baseline, "output_throughput")
    return float(own / base) if own is not None and base else None


def _speedup(
    cell: Cell,
    outcomes: list[Outcome],
    name: str,
    baseline: list[Outcome],
    scenario: Scenario,
    basis: Basis,
) -> tuple[float | None, list[float] | None]:
    """Return the ratio of mean throughputs and its interval; per GPU on the gpus basis."""
    if not baseline:
        return None, None
    factor = 1.0
    if basis is Basis.GPUS:
        own = n_gpus(cell.schedule, scenario, cell.k)
        factor = n_gpus(name, scenario, cell.k) / own
    ratio = _ratio_of_means(outcomes, baseline)
    if ratio is None:
        return None, None
    return ratio * factor, ratio_interval(outcomes, baseline, factor)


def _add_best_sd(
    rows: list[dict[str, Any]], by_cell: dict[Cell, list[Outcome]], basis: Basis
) -> None:
    """Add `speedup_vs_best_sd`: a schedule at its best k against sd at its own best k."""
    # A saturated run has no steady throughput: it is never ranked.
    throughput = {
        cell: mean_of(outcomes, "output_throughput")
        for cell, outcomes in by_cell.items()
        if not mean_of(outcomes, "saturated")
    }
    sd = [v for cell, v in throughput.items() if cell.schedule == "sd" and cell.basis is basis]
    best_sd = max(sd, default=None)
    for row in rows:
        own = [
            v for c, v in throughput.items() if c.schedule == row["schedule"] and c.basis is basis
        ]
        best = max(own, default=None)
        row["speedup_vs_best_sd"] = best / best_sd if best and best_sd else None
        row["is_best_k"] = not row["saturated"] and row["output_throughput"] == best
