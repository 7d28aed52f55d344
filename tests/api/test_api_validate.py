"""The gate: simulation against closed form, and the same check convicting planted mistakes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psdsim.api.gates import LIMIT, GridCell, default_grid, theory
from psdsim.api.validate import all_checks, validate
from psdsim.run.pool import run_all


@pytest.fixture(scope="module")
def grid():
    return validate(all_checks(["steady"]), seed=20260101, processes=1)


def test_at_least_sixty_cells_agree_within_the_limit(grid):
    assert len(grid.rows) >= 60
    bad = [row for row in grid.rows if row["verdict"] != "agrees"]
    assert not bad, [(r["cell"], r["simulated"], r["theory"]) for r in bad]


def test_standard_errors_are_below_0_3_percent(grid):
    assert max(row["standard_error"] for row in grid.rows) < 0.003


def test_distances_look_like_standard_normals(grid):
    """Too good would be as wrong as too bad: the batch-means errors are not inflated."""
    z = np.array([row["distance_se"] for row in grid.rows if row["distance_se"] is not None])
    assert 0.6 < math.sqrt((z**2).mean()) < 1.5


def test_both_branches_of_the_maximum_are_met():
    hidden = [c for c in default_grid() if c.schedule != "ar" and c.k * c.draft_s < 0.016]
    exposed = [c for c in default_grid() if c.schedule != "ar" and c.k * c.draft_s > 0.016]
    assert len(hidden) > 20
    assert len(exposed) > 10


# Which cells a mutation must be noticed in: where it moves theory by at least 9 standard errors.
MUTATIONS = ["alpha", "k+1", "k-1", "bonus", "sync"]


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_mutations_are_convicted_wherever_they_are_visible(grid, mutation):
    n_convicted, insensitive = 0, []
    for row, cell in zip(grid.rows, default_grid(), strict=True):
        if cell.k == 0 or (mutation == "k-1" and cell.k == 1):
            continue
        wrong = theory(cell, mutation)
        error = row["standard_error"] * row["simulated"]
        shift = abs(wrong - row["theory"])
        if shift < 9 * error or shift < 1e-9 * wrong:
            insensitive.append((cell.schedule, cell.alpha, cell.k))
            continue
        distance = abs(row["simulated"] - wrong) / error if error else math.inf
        assert distance > LIMIT, (mutation, cell)
        n_convicted += 1
    at_least = {"alpha": 20, "k+1": 40, "k-1": 30, "bonus": 20, "sync": 35}[mutation]
    assert n_convicted >= at_least, (n_convicted, insensitive)


def test_a_wrong_simulation_is_reported_as_disagreeing():
    wrong = validate([GridCell("sd", 0.8, 4, 0.003)], mutation="bonus", processes=1)
    assert not wrong.passed
    assert wrong.rows[0]["verdict"] == "DISAGREES"


def _square(x):
    return x * x


def test_pool_keeps_the_order():
    assert run_all(_square, list(range(20)), processes=2) == [x * x for x in range(20)]
