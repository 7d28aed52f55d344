"""The other families: acceptance models, jitter, finite outputs, deterministic makespans."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psdsim.api.gates import (
    LIMIT,
    AblationCell,
    AcceptanceCell,
    BarrierCell,
    FiniteCell,
    JitterCell,
    MakespanCell,
    PairCell,
)
from psdsim.api.validate import FAMILIES, all_checks, validate
from psdsim.errors import InputError

SEED = 20260102


@pytest.fixture(scope="module", params=[name for name in FAMILIES if name != "steady"])
def family(request):
    return request.param, validate(all_checks([request.param]), seed=SEED, processes=1).rows


def test_every_comparison_agrees(family):
    _, rows = family
    bad = [r for r in rows if r["verdict"] != "agrees"]
    assert not bad, [(r["cell"], r["what"], r["simulated"], r["theory"]) for r in bad]


def test_distances_are_neither_too_large_nor_too_small(family):
    name, rows = family
    z = np.array([r["distance_se"] for r in rows if r["distance_se"] is not None])
    if name == "makespan":
        assert not z.size  # nothing is random
        return
    assert 0.4 < math.sqrt((z**2).mean()) < 1.5


def test_p_values_are_spread(family):
    name, rows = family
    p = np.array([r["p_value"] for r in rows if r["p_value"] is not None])
    if name == "finite":
        assert p.size >= 20
        assert 0.2 < p.mean() < 0.8


def test_two_hundred_comparisons_in_all():
    n_rows = {"steady": 64, "acceptance": 40, "ablations": 27, "jitter": 28, "makespan": 53}
    for name, n in n_rows.items():
        assert len(all_checks([name])) == n
    # Finite cells of chain rounds give three or four rows each.
    assert sum(n_rows.values()) + 3 * 29 > 200


CONVICTED = [
    (AcceptanceCell("sd", "markov", 4), "k+1"),
    (AcceptanceCell("pearl", "markov", 5), "k-1"),
    (AblationCell("pearl-no-post-verify", 0.8, 0.8, 5, 1.25, 32), "k-1"),
    (AblationCell("pearl-no-pre-verify", 0.8, 0.8, 5, 1.25, 32), "k+1"),
    (AblationCell("pearl-no-pre-verify", 0.8, 0.8, 3, 0.5, 1), "sync"),
    (JitterCell("minedraft", 1.0, 0.3), "alpha"),
    (JitterCell("minedraft", 1.0, 1.0, "exponential"), "alpha"),
    (JitterCell("pearl", 0.5, 0.6), "sync"),
    (FiniteCell("sd", 0.8, 4, 64), "alpha"),
    (FiniteCell("sd", 0.8, 4, 64), "bonus"),
    (FiniteCell("pearl", 0.8, 5, 128), "k+1"),
    (MakespanCell("minedraft", 4, 0.0625, 9), "sync"),
    (MakespanCell("sd", 4, 0.125, 9), "k+1"),
    (BarrierCell(0.3, 0.07), "sync"),
    (PairCell(0.0625, 2), "k+1"),
]


@pytest.mark.parametrize("check, mutation", CONVICTED, ids=lambda x: str(x)[:60])
def test_mistakes_are_convicted(check, mutation):
    result = validate([check], seed=SEED, mutation=mutation, processes=1)
    assert not result.passed
    distances = [r["distance_se"] for r in result.rows if r["distance_se"] is not None]
    if distances:
        assert max(distances) > LIMIT


def test_laws_are_convicted_too():
    rows = validate([FiniteCell("sd", 0.8, 4, 64)], seed=SEED, mutation="bonus", processes=1).rows
    (law,) = [r for r in rows if r["p_value"] is not None]
    assert law["verdict"] == "DISAGREES"


def test_unknown_family():
    with pytest.raises(InputError, match="did you mean 'jitter'"):
        all_checks(["jiter"])
