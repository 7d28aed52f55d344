"""Figures with simulated points: stored points come out again, and what the pictures show holds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis import dsi, sd
from figures import (
    dsi_maps,
    dspark_budget,
    dspark_profiles,
    methods_at_loads,
    minedraft_sweeps,
    pearl_draft_length,
    schedule_timelines,
    when_it_pays,
)
from figures.style import HERE
from psdsim.methods import METHODS


def stored(name: str) -> pd.DataFrame:
    return pd.read_csv(HERE / "data" / f"{name}.csv")


def the_same(fresh: pd.DataFrame, old: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(
        fresh.reset_index(drop=True), old.reset_index(drop=True), check_dtype=False, rtol=1e-6,
        atol=1e-9,
    )  # fmt: skip


def test_stored_sweep_points_come_out_again():
    table = stored("minedraft_sweeps")
    wanted: list[minedraft_sweeps.Cell] = [
        ("k", "4B", "sd", 3, 16),
        ("batch", "1.7B", "minedraft", 4, 8),
        ("batch", "none", "ar", 4, 2),
    ]
    keys = ["over", "draft", "schedule", "k", "batch"]
    old = pd.concat([table[(table[keys] == list(cell)).all(axis=1)] for cell in wanted])
    the_same(minedraft_sweeps.rows(wanted, False), old)


def test_minedraft_gains_most_where_drafting_lasts_as_long_as_a_pass():
    """(D + V) / max(D, V): D grows with the draft model, so the best k falls with its size."""
    table = stored("minedraft_sweeps")
    best = {}
    for name in minedraft_sweeps.DRAFTS:
        part = table[(table["over"] == "k") & (table["draft"] == name)].set_index("k")
        tokens = {
            s: part.loc[part["schedule"] == s, "output_throughput"] for s in ("sd", "minedraft")
        }
        gain = tokens["minedraft"] / tokens["sd"]
        assert gain.between(1.0, 2.0).all()
        best[name] = int(gain.idxmax())
    assert best["0.6B"] > best["1.7B"] > best["4B"]


def test_a_request_is_verified_less_often_but_waits_less():
    """TPOT is never better than SD's, E2EL is at the best k."""
    table = stored("minedraft_sweeps")
    for name in minedraft_sweeps.DRAFTS:
        part = table[(table["over"] == "k") & (table["draft"] == name)].set_index("k")
        sd, mine = (part[part["schedule"] == s] for s in ("sd", "minedraft"))
        assert (mine["mean_tpot_ms"] > sd["mean_tpot_ms"]).all()
        assert mine["mean_e2el_ms"].min() < 0.75 * sd["mean_e2el_ms"].min()


def test_map_is_what_the_closed_forms_give():
    table = stored("when_it_pays")
    cells = table[table["kind"] == "map"]
    row = cells[(cells["basis"] == "concurrency") & (cells["per_gpu"] == 0)]
    load = row["load"].unique()[20]
    row = row[row["load"] == load]
    best, _ = when_it_pays.speeds(float(load), row["alpha"].to_numpy(), "concurrency")
    speeds = np.array([best[name] for name in when_it_pays.NAMES])
    assert row["winner"].tolist() == speeds.argmax(0).tolist()
    np.testing.assert_allclose(row["gain"], speeds.max(0) / speeds[0], rtol=1e-6)


def test_simulated_winners_lie_in_their_regions():
    """Within 3 % of a boundary either may win; the circles are beyond that or undecided."""
    table = stored("when_it_pays")
    for point in table[table["kind"] == "point"].itertuples():
        best, _ = when_it_pays.speeds(float(point.load), np.array([point.alpha]), point.basis)
        gpus = when_it_pays.gpu_counts(point.per_gpu)
        speeds = np.array([best[name][0] for name in when_it_pays.NAMES]) / gpus
        assert point.decided
        assert point.winner == speeds.argmax() or speeds.max() < 1.03 * speeds[point.winner]
        assert point.gain == pytest.approx(speeds.max() / speeds[0], rel=0.08)


def test_stored_timelines_come_out_again():
    table = stored("schedule_timelines")
    assert list(dict.fromkeys(table["method"]))[:4] == ["ar", "sd", "minedraft", "pearl"]
    the_same(schedule_timelines.compute(), table[table["method"].isin(METHODS)])


def test_timelines_show_the_same_text():
    """MineDraft's halves confirm in their first rounds what SD's batch confirms in its own."""
    table = stored("schedule_timelines")
    first = {
        name: table[(table["method"] == name) & (table["kind"] == "verify")]["n_tokens"].tolist()
        for name in ("sd", "minedraft")
    }
    assert first["minedraft"][0] + first["minedraft"][1] == first["sd"][0]
    assert first["minedraft"][2] + first["minedraft"][3] == first["sd"][1]


def test_predicted_draft_lengths_follow_pearls_table():
    table = stored("pearl_draft_length").dropna(subset=["published"])
    assert len(table) == 15
    assert (np.abs(table["simulated"] / table["published"] - 1.0) < 0.12).all()
    full = stored("pearl_draft_length")
    # Outputs of the simulation end: each starts in pre-verify and is clipped.
    assert ((full["simulated"] / full["formula"]).between(0.97, 1.005)).all()
    assert (full["low"] < full["simulated"]).all()
    assert (full["high"] > full["simulated"]).all()
    the_same(pearl_draft_length.compute().iloc[:3], full.iloc[:3])


def test_dsi_map_is_what_the_closed_forms_give():
    table = stored("dsi_maps")
    columns = ["alpha", "draft_cost_ratio", "sd", "dsi", "dsi_over_best"]
    the_same(dsi_maps.grid(), table.loc[table["kind"] == "map", columns])


def test_dsi_is_never_slower_and_sd_is():
    table = stored("dsi_maps")
    cells = table[table["kind"] == "map"]
    assert (cells["dsi"] >= 1.0 - 1e-12).all()
    assert (cells["dsi_over_best"] >= 1.0 - 1e-6).all()
    assert (cells["sd"] < 1.0).any()


def test_simulated_speedups_are_the_formulas():
    """Outputs of 300 tokens against the long-run forms: 3 % beside the 95 % interval."""
    table = stored("dsi_maps")
    points = table[table["kind"] == "point"]
    forms = {
        "sd": np.asarray(sd.speedup(points["alpha"], dsi_maps.K, points["draft_cost_ratio"])),
        "dsi": np.asarray(dsi.speedup_limit(points["alpha"], points["draft_cost_ratio"], 1.0)),
    }
    for name, form in forms.items():
        if name not in points:
            continue
        assert (points[f"{name}_low"] < 1.03 * form).all()
        assert (points[f"{name}_high"] > 0.97 * form).all()


@pytest.mark.parametrize("name", ["sd", "dsi"])
def test_stored_speedups_come_out_again(name):
    table = stored("dsi_maps")
    old = table[(table["kind"] == "point") & (table["draft_cost_ratio"] == 0.5)]
    cells = list(zip(old["alpha"], old["draft_cost_ratio"], strict=True))
    the_same(dsi_maps.speedups(name, cells, False), old[[name, f"{name}_low", f"{name}_high"]])


def test_profiles_have_the_published_lengths():
    """Last column of the table that goes with the figure: 1 + sum of products."""
    printed = {
        ("math", "dflash"): 4.79, ("math", "eagle3"): 4.56, ("math", "dspark"): 5.58,
        ("code", "dflash"): 4.48, ("code", "eagle3"): 3.91, ("code", "dspark"): 5.18,
        ("chat", "dflash"): 2.97, ("chat", "eagle3"): 2.41, ("chat", "dspark"): 3.52,
    }  # fmt: skip
    for row in dspark_profiles.compute().drop_duplicates(["domain", "drafter"]).itertuples():
        # Rates are rounded to 0.001, their sum of products to some 0.01.
        assert row.acceptance_length == pytest.approx(printed[(row.domain, row.drafter)], abs=0.011)


def test_stored_budgets_come_out_again():
    table = stored("dspark_budget")
    for row in table.to_dict("records"):
        if row["kind"] == "formula" and row["n_seqs"] in (6, 48, 240):
            fresh = dspark_budget.formula(row["n_seqs"])
            del fresh["kind"]
            assert {n: row[n] for n in fresh} == pytest.approx(fresh, rel=1e-6)
        elif row["kind"] == "simulated" and row["n_seqs"] == 24:
            mean, low, high = dspark_budget.simulated("chat", 24)
            found = (row["chat"], row["chat_low"], row["chat_high"])
            assert found == pytest.approx((mean, low, high), rel=1e-6)


def test_budgets_fall_with_load_and_pay():
    table = stored("dspark_budget")
    lines = table[table["kind"] == "formula"]
    for domain in dspark_budget.DOMAINS:
        assert (np.diff(lines[domain]) <= 1e-12).all()
    assert (lines["scheduled"] >= lines["best_fixed"] - 1e-12).all()
    assert (lines["math"] >= lines["chat"]).all()
    assert (lines["scheduled"] >= 1.0 - 1e-12).all()


def test_every_method_is_in_the_comparison():
    """Nothing that is registered is left out silently, whatever it does on the scenario."""
    frame = methods_at_loads.compute(True)
    assert set(frame["method"]) == set(methods_at_loads.names())
    assert (frame["over_ar"].notna() ^ frame["reason"].notna()).all()
    assert frame.set_index("method").loc["ar", "over_ar"] == 1.0
    assert methods_at_loads.table(frame).count("\n") == len(frame) + 2


def test_stored_method_points_come_out_again():
    table = stored("methods_at_loads").set_index(["load", "method"])
    best = {(2, name): int(table.loc[(2, name), "k"]) for name in ("ar", "sd", "pearl")}
    fresh = methods_at_loads.rows(best, False)
    old = table.loc[list(best)].reset_index()[fresh.columns]
    the_same(fresh.drop(columns="reason"), old.drop(columns="reason"))
