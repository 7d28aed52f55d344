"""The cells of a comparison: which schedules run at which k, and who is whose baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psdsim.engine import simulate_run
from psdsim.engine.setup import RawRun
from psdsim.methods import method
from psdsim.run.basis import Basis, capacity
from psdsim.run.metrics import run_metrics
from psdsim.run.notes import run_notes
from psdsim.run.prepare import prepare
from psdsim.scenario import Scenario
from psdsim.stats import Estimate, batch_means_rate


@dataclass(frozen=True)
class Cell:
    """One schedule at one draft length on one basis."""

    schedule: str
    k: int
    basis: Basis


@dataclass(frozen=True)
class Task:
    """One replication of a cell: everything a worker process needs."""

    scenario: Scenario
    cell: Cell
    seed: int
    replication: int


@dataclass(frozen=True)
class Outcome:
    """What a worker sends back: figures, not tables."""

    metrics: dict[str, Any]
    notes: tuple[str, ...]
    within_run: Estimate


def run_task(task: Task) -> Outcome:
    """Simulate one replication of a cell."""
    cell, scenario = task.cell, task.scenario
    setup = prepare(
        scenario, cell.schedule, cell.k,
        seed=task.seed, replication=task.replication, basis=cell.basis,
    )  # fmt: skip
    raw = simulate_run(setup)
    cls = method(cell.schedule).schedule
    metrics = run_metrics(
        raw,
        capacity=capacity(cls, scenario, cell.basis),
        open_loop=setup.requests.open_loop,
        n_replicas=scenario.engine.n_replicas,
        n_groups=cls.n_groups,
    )
    return Outcome(metrics, run_notes(scenario, cell.schedule, cell.k, raw), _within_run(raw))


def _within_run(raw: RawRun) -> Estimate:
    steps = raw.steps
    return batch_means_rate(steps["n_emitted_tokens"], steps["end_s"] - steps["start_s"])


def asked_cells(schedules: Sequence[str], ks: Sequence[int], basis: Basis) -> list[Cell]:
    """Return the cells that were asked for, in order, each once.

    Schedules that don't draft have one cell; so has ``sd`` at k=0, which is ``ar``.
    """
    cells: dict[Cell, None] = {}
    for name in schedules:
        cls = method(name).schedule
        for k in ks if cls.drafts else (0,):
            if k >= cls.min_k:
                cells[Cell(name, k, basis)] = None
    return list(cells)


def baseline_cells(cells: Sequence[Cell], scenario: Scenario) -> list[Cell]:
    """Return the cells to run beside the asked ones, so that every speedup has its baseline.

    ``ar``, ``sd`` at every k, and schedules of several groups at equal concurrency.
    """
    basis = cells[0].basis
    extra: dict[Cell, None] = {Cell("ar", 0, basis): None}
    for cell in cells:
        cls = method(cell.schedule).schedule
        if cls.drafts and cell.k:
            extra[Cell("sd", cell.k, basis)] = None
        if cls.n_groups > 1 and scenario.engine.max_num_seqs >= cls.n_groups:
            extra[Cell(cell.schedule, cell.k, Basis.CONCURRENCY)] = None
    return [cell for cell in extra if cell not in set(cells)]


def is_deterministic(scenario: Scenario, cell: Cell) -> bool:
    """Say whether every replication of a cell is the same run."""
    work, times = scenario.workload, scenario.step_time
    if work.kind in {"poisson", "gamma"} or times.jitter_cv:
        return False
    if work.kind != "trace" and not all(
        isinstance(length, int) for length in (work.prompt_tokens, work.output_tokens)
    ):
        return False
    kinds = {getattr(model, "kind", None) for model in (times.target, times.draft, times.prefill)}
    return cell.k == 0 and "exponential" not in kinds
