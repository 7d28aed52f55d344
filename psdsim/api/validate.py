"""Simulation against closed form: every family of checks, in processes, with verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

from psdsim.api.gates import (
    Mutation,
    Row,
    ablation_cells,
    acceptance_cells,
    adaptive_cells,
    default_grid,
    finite_cells,
    jitter_cells,
    makespan_cells,
    pair_cells,
)
from psdsim.errors import InputError, did_you_mean
from psdsim.run.pool import run_all

FAMILIES: dict[str, Callable[[], Sequence[Any]]] = {
    "steady": default_grid,
    "acceptance": acceptance_cells,
    "ablations": ablation_cells,
    "jitter": jitter_cells,
    "finite": finite_cells,
    "adaptive": adaptive_cells,
    "makespan": lambda: [*makespan_cells(), *pair_cells()],
}
"""Families of checks by name."""


class Check(Protocol):
    """One cell: simulates, and compares what came out with its closed form."""

    @property
    def family(self) -> str:
        """Name of its family."""

    @property
    def schedule(self) -> str:
        """Which schedule it runs."""

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Return a row for each quantity compared."""


@dataclass(frozen=True, eq=False)
class Validation:
    """The verdicts.

    Parameters
    ----------
    rows
        One mapping a comparison: family, cell, what; simulated, theory, relative error,
        relative standard error, distance in standard errors or p-value; verdict.
    """

    rows: list[Row]

    @property
    def passed(self) -> bool:
        """Whether all agree."""
        return all(row["verdict"] == "agrees" for row in self.rows)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a comparison."""
        return pd.DataFrame(self.rows)


def all_checks(
    families: Sequence[str] | None = None, schedules: Sequence[str] | None = None
) -> list[Check]:
    """Return the checks of some families (None: all) for some schedules (None: all)."""
    names = list(FAMILIES) if families is None else list(families)
    for name in names:
        if name not in FAMILIES:
            raise InputError(
                f"there is no family '{name}'{did_you_mean(name, FAMILIES)}",
                expected="some of " + ", ".join(FAMILIES),
                where="--families",
            )
    checks: list[Check] = [check for name in names for check in FAMILIES[name]()]
    return [c for c in checks if schedules is None or c.schedule in schedules]


def validate(
    checks: Sequence[Check] | None = None,
    *,
    seed: int = 0,
    mutation: Mutation = "none",
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Validation:
    """Check the simulator against its closed forms.

    Parameters
    ----------
    checks
        What to check; None is everything (`all_checks`).
    seed
        Root seed.
    mutation
        A mistake to make on the theory's side, where a check knows it.
    processes
        Worker processes; None decides by the size of the job.
    progress
        Called with (cells done, cells in all).

    Examples
    --------
    >>> validate(all_checks(["makespan"], ["ar"])).passed
    True
    """
    wanted = list(checks) if checks is not None else all_checks()
    tasks = [(check, seed, mutation) for check in wanted]
    rows = run_all(_run, tasks, processes=processes, worth_it=len(tasks) > 8, progress=progress)
    return Validation([row for part in rows for row in part])


def _run(task: tuple[Check, int, Mutation]) -> list[Row]:
    check, seed, mutation = task
    return check.check(seed, mutation)
