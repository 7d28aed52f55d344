"""One schedule on one scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from psdsim.engine import simulate_run
from psdsim.methods import method
from psdsim.run.basis import Basis, capacity, n_gpus
from psdsim.run.notes import run_notes
from psdsim.run.prepare import prepare
from psdsim.run.result import SimulationResult
from psdsim.scenario import Scenario


def simulate(
    scenario: Scenario | None = None,
    schedule: str = "sd",
    k: int = 4,
    *,
    seed: int = 0,
    replication: int = 0,
    basis: str | Basis = Basis.STEP_BATCH,
    timeline: bool = False,
    record_steps: bool = True,
    record_rounds: bool = False,
    steps_parquet: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> SimulationResult:
    """Simulate one run.

    Parameters
    ----------
    scenario
        Deployment and traffic; None is the built-in one.
    schedule
        ``"ar"``, ``"sd"``, ``"minedraft"``, ``"pearl"``, ...
    k
        Drafted tokens per round, 0..64 (``ar`` ignores it).
    seed, replication
        Same values, same bytes.
    basis
        What is held equal between schedules; see `Basis`.
    timeline
        Keep timeline spans (memory grows with the number of passes).
    record_steps
        Keep step records.
    record_rounds
        Keep what each round tested and accepted of each request.
    steps_parquet
        Stream step records to this Parquet file instead of keeping them.
    progress
        Called with the number of finished requests, now and then.

    Raises
    ------
    psdsim.errors.InputError
        If the scenario can't be run.

    Examples
    --------
    >>> scenario = Scenario.builtin({"workload.n_requests": 4})
    >>> simulate(scenario, "ar").metrics["n_requests"]
    4
    """
    scenario = scenario if scenario is not None else Scenario.builtin()
    basis = Basis(basis)
    cls = method(schedule).schedule
    k = k if cls.drafts else 0
    setup = prepare(
        scenario, schedule, k,
        seed=seed, replication=replication, basis=basis,
        record_steps=record_steps, record_spans=timeline, record_rounds=record_rounds,
        steps_parquet=Path(steps_parquet) if steps_parquet is not None else None,
        progress=progress,
    )  # fmt: skip
    raw = simulate_run(setup)
    return SimulationResult(
        scenario=scenario,
        schedule=schedule,
        k=k,
        basis=basis,
        seed=seed,
        replication=replication,
        capacity=capacity(cls, scenario, basis),
        n_gpus=n_gpus(schedule, scenario, k),
        raw=raw,
        notes=run_notes(scenario, schedule, k, raw),
    )
