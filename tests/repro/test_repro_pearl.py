"""PEARL's and nano-PEARL's own figures, small simulations: what is asked for holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from repro import nano_pearl, pearl, pearl_inputs, pearl_table4
from repro.claims import Claim
from repro.nano_fit import BATCHES, Cells, fitted, grid
from repro.nano_play import play_cell
from repro.play import play, ratio

SIZE = pearl.QUICK


@pytest.fixture(scope="module")
def claims() -> dict[str, Claim]:
    return {c.id: c for c in pearl.claims(quick=True)}


@pytest.fixture(scope="module")
def nano() -> dict[str, Claim]:
    return {c.id: c for c in nano_pearl.claims(quick=True)}


def test_what_is_asked_for_holds(claims: dict[str, Claim], nano: dict[str, Claim]) -> None:
    asked = [c for c in (*claims.values(), *nano.values()) if c.asked]
    assert len(asked) >= 25
    # Small runs: within the tolerance, but for twice the half-width of the interval.
    slack = {
        c.id: (c.interval[1] - c.interval[0]) / (c.theirs or 1.0) if c.interval else 0.0
        for c in asked
    }
    missed = [
        (c.id, c.deviation)
        for c in asked
        if abs(c.deviation or 0.0) > (c.tolerance or 0.0) + slack[c.id]
    ]
    assert missed == []
    assert sum(c.holds for c in asked) >= len(asked) - 3
    # Simulated ones have an interval around our value.
    for c in (*claims.values(), *nano.values()):
        if c.interval is not None and c.unit != "%":
            assert c.interval[0] < (c.ours or 0.0) < c.interval[1]


def test_ids_are_unique_and_every_table_is_there(claims: dict[str, Claim]) -> None:
    assert len(claims) == len(pearl.claims(quick=True))
    for name in ("table1", "table2", "table3", "table4", "table5", "table7", "table8",
                 "table11", "table15", "v1", "waiting", "cap"):  # fmt: skip
        assert [i for i in claims if i.startswith(f"pearl-{name}")], name


def test_where_iid_fails_and_what_memory_does(claims: dict[str, Claim]) -> None:
    for key in ("cl7-34", "cl7-70", "ds1.3-33"):
        iid = claims[f"pearl-table4-no-pre-{key}"]
        assert iid.verdict == "not"
        assert (iid.theirs or 0) > 0.05 > (iid.ours or 0) + 0.03
        two = claims[f"pearl-table4-no-pre-two-state-{key}"]
        assert two.verdict == "consistent"
        assert two.solved == "this row"
        # The same memory takes accepted drafts from SD, which Table 7 doesn't show.
        assert (claims[f"pearl-table7-two-state-{key}"].deviation or 0) < -0.05


def test_weak_and_missing_sources_are_shown(claims: dict[str, Claim]) -> None:
    assert [i for i, c in claims.items() if c.weak] == [
        "pearl-waiting-draft-idle", "pearl-waiting-target-idle"
    ]  # fmt: skip
    lost = claims["pearl-table1-pearl-l3.1-8-70"]
    assert (lost.ours, lost.verdict) == (None, "not")
    assert "no acceptance was found" in lost.reason


def test_a_tolerance_broken_on_purpose_fails(monkeypatch: Any) -> None:
    monkeypatch.setattr(pearl, "RATIO", 0.005)
    found = [c for c in pearl.table11(SIZE) if c.asked]
    assert found
    assert not any(c.holds for c in found)
    monkeypatch.setattr(pearl_table4, "SPEED", 0.01)
    assert not any(c.holds for c in pearl_table4.table4(SIZE) if c.asked)
    monkeypatch.setattr(nano_pearl, "MEDIAN", 0.005)
    assert not nano_pearl.predicted(nano_pearl.AHEAD, 3, nano_pearl.published())[0].holds


def test_a_wrong_published_figure_is_noticed(monkeypatch: Any) -> None:
    p = pearl_inputs.pair("cl7-34")
    wrong = {**p.data, "pearl_mat": p.data["pearl_mat"] / 3}
    other = pearl_inputs.Pair(p.key, p.name, p.draft_s, p.target_s, p.gamma, wrong)
    monkeypatch.setattr(pearl, "pairs", lambda: (other,))
    assert not next(c for c in pearl.table1(SIZE) if c.asked).holds


def test_solved_inputs_give_back_what_they_were_solved_from() -> None:
    p = pearl_inputs.pair("ds1.3-33")
    a1, a0 = pearl_inputs.two_state(p)
    assert a0 / (1 - a1) == pytest.approx(p.data["pearl_mat"])
    speeds = [
        pearl_inputs.speedup(p, name, p.gamma, a1, a0) for name in ("pearl", "pearl-no-pre-verify")
    ]
    assert speeds[1] / speeds[0] == pytest.approx(3.19 / 3.48, rel=1e-9)
    other = pearl_inputs.pair("l2-7-70")
    a1, a0 = pearl_inputs.two_state_from_rows(other)
    for name, row in (("pearl", "full"), ("pearl-no-pre-verify", "no_pre")):
        found = pearl_inputs.speedup(other, name, other.gamma, a1, a0)
        assert found == pytest.approx(other.data["table4"][row], rel=1e-6)
    alpha = pearl_inputs.alpha_from_sd_runs(other)
    rate = pearl_inputs.sd_mean_accepted(other.gamma, alpha, alpha) + 1.0
    assert 164 * 1023 / rate == pytest.approx(35092)


def test_simulation_and_formula_are_one_setting() -> None:
    p = pearl_inputs.pair("cl7-70")
    for schedule in ("pearl", "sd", "pearl-no-post-verify", "pearl-no-pre-verify"):
        for a, a0 in ((0.9, 0.9), (0.95, 0.5)):
            one = play(schedule, 5, a, a0, p.draft_s, p.target_s, (24, 1500))
            value, (low, high) = ratio(one.tokens, one.time_s)
            half = (high - low) / 2
            expected = pearl_inputs.speedup(p, schedule, 5, a, a0) / p.target_s
            assert abs(value - expected) < 2.5 * half


def test_ratio_by_hand() -> None:
    value, (low, high) = ratio(np.array([2.0, 4.0]), np.array([1.0, 1.0]))
    assert value == 3.0
    assert (low + high) / 2 == pytest.approx(3.0)
    assert high - low == pytest.approx(2 * 12.706 * 1.0, rel=1e-3)


# --- nano-PEARL -------------------------------------------------------------------------------


def test_the_grid_is_whole_and_agrees_with_itself() -> None:
    rows = grid()
    assert len(rows) == 6 * 4 * len(BATCHES)
    assert not rows.duplicated(["draft", "target", "data_set", "batch"]).any()
    printed = rows["pearl_tok_s"] / rows["ar_tok_s"] / rows["speedup"]
    assert (abs(printed - 1) < 0.012).all()


def test_nothing_of_the_predicted_columns_goes_into_the_fit(monkeypatch: Any) -> None:
    target = "Qwen3-32B"
    rows = grid().copy()
    spoiled = rows.assign(
        pearl_tok_s=rows["pearl_tok_s"].where(rows["batch"].isin((1, 8)), 1.0),
        mat=rows["mat"].where(rows["batch"].isin((1, 8)), 2.0),
    )
    own = fitted(target, (1, 8))
    monkeypatch.setattr("repro.nano_fit.grid", lambda: spoiled)
    assert fitted.__wrapped__(target, (1, 8)) == own


def test_simulated_cells_are_those_of_the_formula() -> None:
    rows = grid()
    rows = rows[(rows["target"] == "Qwen2.5-72B") & (rows["batch"] == 32)]
    times = fitted("Qwen2.5-72B", (1, 8))
    formula = times.speeds(Cells.of(rows))
    for row, expected in zip(rows.itertuples(index=False), formula, strict=True):
        cell = [
            play_cell(row.target, row.draft, row.data_set, 32, row.mat, (1, 8), r)
            for r in range(3)
        ]  # fmt: skip
        assert np.mean([c.speed for c in cell]) == pytest.approx(expected, rel=0.04)
        assert np.mean([c.mat for c in cell]) == pytest.approx(row.mat, rel=0.15)


def test_claims_of_the_grid(nano: dict[str, Claim]) -> None:
    assert nano["nano-pearl-plain"].verdict == "consistent"
    assert nano["nano-pearl-speedup-falls"].theirs == 72
    assert nano["nano-pearl-faq-h20"].verdict == "not"
    assert "rule" in nano["nano-pearl-speeds-ahead"].reason
