"""The gate of adaptive methods: theory and simulation agree, and a wrong theory is seen."""

from __future__ import annotations

import pytest

from psdsim.api.gates.adaptive import adaptive_cells

CELLS = adaptive_cells()
ONE_OF_EACH = {cell.schedule: place for place, cell in reversed(list(enumerate(CELLS)))}


@pytest.mark.parametrize("place", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
def test_theory_and_simulation_agree(place: int) -> None:
    cell = CELLS[place]
    (row,) = cell.check(seed=7)
    assert row["verdict"] == "agrees", row
    # A mutation that moves the theory by nine standard errors must be seen by the same check.
    error = row["standard_error"] * row["simulated"]
    told = []
    for mutation in ("alpha", "k+1", "k-1", "bonus"):
        if abs(cell.theory(mutation) - row["theory"]) >= 9 * error:
            distance = abs(row["simulated"] - cell.theory(mutation)) / error
            assert distance >= 4.5, mutation
            told.append(mutation)
    assert told
