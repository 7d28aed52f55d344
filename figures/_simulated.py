"""Simulated points of figures: cells over replications, in processes where that is worth it."""

from __future__ import annotations

from collections.abc import Sequence

from psdsim import Scenario
from psdsim.errors import InputError
from psdsim.run.basis import Basis
from psdsim.run.cells import Cell, Outcome, Task, run_task
from psdsim.run.pool import run_all
from psdsim.stats import Estimate, t_interval

SEED = 20260
"""Of every simulated point."""
Point = tuple[Scenario, str, int, Basis]
"""Scenario, method, k, what is held equal."""


def attempt(task: Task) -> Outcome | str:
    """Simulate one replication; where the scenario can't be run so, say why."""
    try:
        return run_task(task)
    except InputError as error:
        return str(error)


def outcomes(
    points: Sequence[Point], n_replications: int, *, parallel: bool, seed: int = SEED
) -> list[list[Outcome] | str]:
    """Return each point's replications, or why it can't be run; the same bytes either way."""
    tasks = [
        Task(scenario, Cell(name, k, basis), seed, replication)
        for scenario, name, k, basis in points
        for replication in range(n_replications)
    ]
    # A few runs are over before another process has started.
    done = run_all(attempt, tasks, worth_it=parallel and len(tasks) > 40)
    found: list[list[Outcome] | str] = []
    for i in range(len(points)):
        own = done[i * n_replications : (i + 1) * n_replications]
        why = next((one for one in own if isinstance(one, str)), None)
        found.append(why if why is not None else [o for o in own if isinstance(o, Outcome)])
    return found


def interval(runs: list[Outcome] | str, name: str, scale: float = 1.0) -> Estimate:
    """Return a figure's mean over replications with its 95 % interval."""
    if isinstance(runs, str):
        raise InputError(runs)
    return t_interval([scale * float(run.metrics[name]) for run in runs])
