"""Simulation against closed form on a grid of cells where both should agree exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from psdsim.engine import simulate_run
from psdsim.records import StepKind
from psdsim.run.basis import Basis
from psdsim.run.pool import run_all
from psdsim.run.prepare import prepare
from psdsim.scenario import Scenario
from psdsim.stats import batch_means_rate

Mutation = Literal["none", "alpha", "k+1", "k-1", "bonus", "sync"]
"""A deliberate mistake on the theory's side; a sharp check must notice it."""

LIMIT = 4.5
"""Standard errors within which simulation and theory must agree."""
_BATCHES = 40
_BASE_S, _PER_TOKEN_S, _DRAFT_S = 0.008, 0.00025, 0.003
_OVERHEAD_S, _SYNC_S = 0.001, 0.0005


@dataclass(frozen=True)
class GridCell:
    """One point of the grid.

    Parameters
    ----------
    schedule, alpha, k
        What runs.
    draft_s
        One draft forward, s.
    n_seqs
        Requests verified per step.
    """

    schedule: str
    alpha: float
    k: int
    draft_s: float
    n_seqs: int = 32


@dataclass(frozen=True, eq=False)
class Validation:
    """The verdicts of a grid.

    Parameters
    ----------
    rows
        One mapping a cell: what ran, simulated and theoretical decode throughput (tokens/s),
        relative error, relative standard error, distance in standard errors, verdict.
    """

    rows: list[dict[str, Any]]

    @property
    def passed(self) -> bool:
        """Whether every cell agrees."""
        return all(row["verdict"] == "agrees" for row in self.rows)

    def to_frame(self) -> pd.DataFrame:
        """Return one row a cell."""
        return pd.DataFrame(self.rows)


def default_grid(schedules: Sequence[str] = ("ar", "sd", "minedraft", "pearl")) -> list[GridCell]:
    """Return the cells of the standard grid (64 for the four schedules).

    Drafting takes less, about as long and more time than verifying in different cells, so
    both branches of every maximum are met.
    """
    cells: list[GridCell] = []
    for schedule in schedules:
        if schedule == "ar":
            cells += [GridCell("ar", 0.0, 0, _DRAFT_S, n) for n in (1, 16, 32, 64)]
            continue
        for alpha, k in itertools.product((0.3, 0.6, 0.8, 0.95), (1, 2, 4, 6, 8)):
            cells.append(GridCell(schedule, alpha, k, _DRAFT_S))
    return cells


def validate(
    cells: Sequence[GridCell] | None = None,
    *,
    seed: int = 0,
    n_seq_steps: int = 240_000,
    mutation: Mutation = "none",
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Validation:
    """Check simulated decode throughput against the closed form, cell by cell.

    Parameters
    ----------
    cells
        The grid; None is `default_grid`.
    seed
        Root seed.
    n_seq_steps
        Requests times steps that each cell observes; the standard error falls with its root.
    mutation
        A mistake to make on the theory's side.
    processes
        Worker processes.
    progress
        Called with (cells done, cells in all).
    """
    grid = list(cells) if cells is not None else default_grid()
    tasks = [(cell, seed, n_seq_steps, mutation) for cell in grid]
    rows = run_all(_check, tasks, processes=processes, worth_it=len(tasks) > 8, progress=progress)
    return Validation(rows)


def _scenario(cell: GridCell, n_tokens: int) -> Scenario:
    n_groups = 2 if cell.schedule == "minedraft" else 1
    return Scenario.builtin(
        {
            "name": "grid",
            "acceptance": {"kind": "iid", "alpha": cell.alpha},
            "step_time": {
                "target": {"kind": "affine", "base_s": _BASE_S, "per_sequence_s": _PER_TOKEN_S},
                "draft": {"kind": "constant", "time_s": cell.draft_s},
                "step_overhead_s": _OVERHEAD_S,
                "sync_s": _SYNC_S,
            },
            "workload": {
                "kind": "batch",
                "n_requests": cell.n_seqs * n_groups,
                "prompt_tokens": 1,
                "output_tokens": n_tokens,
            },
            "engine": {"max_num_seqs": cell.n_seqs, "kv_blocks": "unlimited"},
            "assumed": {},
        }
    )


def _check(task: tuple[GridCell, int, int, Mutation]) -> dict[str, Any]:
    cell, seed, n_seq_steps, mutation = task
    n_steps = math.ceil(n_seq_steps / cell.n_seqs)
    # Long enough that nobody finishes inside the window: no stop clips a block.
    scenario = _scenario(cell, n_steps * (cell.k + 1) + cell.k + 2)
    setup = prepare(scenario, cell.schedule, cell.k, seed=seed, basis=Basis.STEP_BATCH)
    steps = simulate_run(setup).steps
    decode = np.flatnonzero(steps["kind"] == int(StepKind.DECODE))[:n_steps]
    tokens = steps["n_emitted_tokens"][decode]
    time_s = (steps["end_s"] - steps["start_s"])[decode]
    estimate = batch_means_rate(tokens, time_s, n_batches=_BATCHES, warm_up=0.02)
    theory = _theory(cell, mutation)
    error = estimate.mean / theory - 1
    relative_error = estimate.standard_error / estimate.mean
    exact = estimate.standard_error <= 1e-12 * estimate.mean
    distance = abs(estimate.mean - theory) / estimate.standard_error if not exact else math.nan
    agrees = abs(error) < 1e-9 if exact else distance < LIMIT
    return {
        "schedule": cell.schedule,
        "alpha": cell.alpha,
        "k": cell.k,
        "n_seqs": cell.n_seqs,
        "simulated": estimate.mean,
        "theory": theory,
        "error": error,
        "standard_error": 0.0 if exact else relative_error,
        "distance_se": None if exact else distance,
        "verdict": "agrees" if agrees else "DISAGREES",
    }


def _theory(cell: GridCell, mutation: Mutation) -> float:
    """Return the closed form in tokens/s, with a mistake built in if asked for."""
    from analysis.schedules import steady_state
    from psdsim.acceptance import IidAcceptance

    k = cell.k + {"k+1": 1, "k-1": -1}.get(mutation, 0) if cell.k else 0
    alpha = min(1.0, cell.alpha + 0.01) if mutation == "alpha" else cell.alpha
    m = cell.n_seqs
    steady = steady_state(
        cell.schedule,
        n_seqs_per_step=m,
        acceptance=IidAcceptance(alpha=alpha),
        k=k,
        draft_time_s=k * cell.draft_s,
        verify_time_s=_BASE_S + _PER_TOKEN_S * m,
        overhead_s=_OVERHEAD_S,
        sync_s=0.0 if mutation == "sync" else _SYNC_S,
        n_tokens=None,
        jitter=None,
    )
    value = steady.output_throughput
    if mutation == "bonus":
        # A round that was fully accepted loses the token that comes for free.
        lost = alpha**k if cell.schedule in {"sd", "minedraft"} else 0.0
        value *= 1.0 - lost / steady.tokens_per_step_per_request
    return value
