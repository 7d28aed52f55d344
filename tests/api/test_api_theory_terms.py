"""Closed forms know every key that costs time: overhead a request, handover of sd, slow-down."""

from __future__ import annotations

from typing import Any

import pytest

from psdsim import Scenario, compare, simulate
from psdsim.api.formulas import theory_table
from psdsim.api.theory import theory_for
from psdsim.run.basis import n_gpus
from psdsim.schedules import SCHEDULES

FIXED = {
    "acceptance": {"kind": "iid", "alpha": 1.0},
    "step_time": {
        "target": {"kind": "constant", "time_s": 0.25},
        "draft": {"kind": "constant", "time_s": 0.03125},
        "step_overhead_s": 0.0625,
        "step_overhead_per_seq_s": 0.0078125,
        "sync_s": 0.015625,
        "comm_per_token_s": 0.0009765625,
        "draft_start_s": 0.001953125,
    },
    "workload": {"kind": "batch", "n_requests": 8, "prompt_tokens": 1, "output_tokens": 41},
    "engine": {"max_num_seqs": 4, "kv_blocks": "unlimited"},
    "assumed": {},
}
"""Dyadic times and certain acceptance: 8 rounds of 5 tokens each, sums without rounding."""


@pytest.mark.parametrize("serial_on", ["target", "own"])
@pytest.mark.parametrize("schedule", ["ar", "sd", "minedraft"])
def test_the_closed_form_is_the_simulated_step_exactly(schedule: str, serial_on: str) -> None:
    scenario = Scenario.builtin(FIXED | {"draft.serial_on": serial_on})
    k = 0 if schedule == "ar" else 4
    steps = simulate(scenario, schedule, k).steps
    full = steps[(steps["kind"] == "decode") & (steps["n_verify_seqs"] == 4)]
    if schedule == "minedraft":
        full = full[full["draft_group"] >= 0]
    assert len(full) > 10
    theory = theory_for(scenario, schedule, k)
    times = (full["end_s"] - full["start_s"]).unique()
    assert times.tolist() == [theory.step_time_s]


def test_every_term_is_in_the_closed_form() -> None:
    base = Scenario.builtin(FIXED | {"draft.serial_on": "own"})
    handover = 0.015625 + 16 * 0.0009765625
    expected = 0.0625 + 4 * 0.0078125 + (0.001953125 + 4 * 0.03125) + handover + 0.25
    assert theory_for(base, "sd", 4).step_time_s == expected
    on_target = base.set({"draft.serial_on": "target"})
    assert theory_for(on_target, "sd", 4).step_time_s == expected - handover
    rows = {row["name"]: row["value"] for row in theory_table(base, 4)}
    assert rows["sd_step_time"] == expected
    assert rows["minedraft_step_time"] == 0.0625 + 4 * 0.0078125 + 0.25 + handover
    assert rows["sd_throughput"] == 4 * 5 / expected


def test_where_passes_slow_each_other_there_is_a_reason_not_a_value() -> None:
    slow = Scenario.builtin(FIXED | {"draft.slow_down": {"target": 1.0, "draft": 1.5}})
    for schedule in ("minedraft", "pearl"):
        theory = theory_for(slow, schedule, 4)
        assert theory.step_time_s is None
        assert "overlapping passes slow each other" in str(theory.reason)
    assert theory_for(slow, "sd", 4).step_time_s is not None
    rows = {row["name"]: row for row in theory_table(slow, 4)}
    plain = {row["name"]: row for row in theory_table(slow.set({"draft.slow_down": 1.0}), 4)}
    gone = {
        name
        for name, row in rows.items()
        if row["reason"] != plain[name]["reason"] and "slow each other" in row["reason"]
    }
    # All that speak of both phases at once, and nothing else.
    assert {"minedraft_step_time", "minedraft_speedup", "stage_maximum", "three_groups"} <= gone
    assert not {name for name in gone if name.startswith(("sd_", "pearl", "speedup"))}
    for name in set(rows) - gone:
        assert rows[name]["value"] == plain[name]["value"], name


def test_gpus_of_serial_drafting_are_counted() -> None:
    own = Scenario.builtin({"draft.serial_on": "own"})
    counts: dict[str, Any] = {name: n_gpus(name, own, 4) for name in SCHEDULES}
    assert counts == {"ar": 4} | {name: 5 for name in SCHEDULES if name != "ar"}
    rows = {row["name"]: row for row in theory_table(own, 4)}
    assert "draft.serial_on" in rows["minedraft_speedup_per_gpu"]["reason"]
    assert rows["minedraft_speedup"]["value"] is not None
    small = {"workload.n_requests": 8, "workload.output_tokens": 8, "engine.max_num_seqs": 4}
    found = compare(own.set(small), ["sd"], 2, replications=1).rows[0]
    assert found["n_gpus"] == 5
    assert found["decode_throughput_theory_error"] is not None


@pytest.mark.parametrize("schedule", ["sd", "minedraft"])
def test_jitter_of_drafting_alone(schedule: str) -> None:
    """Drafts that vary make the barrier wait longer; the target's passes keep their time."""
    changed = FIXED | {"step_time.draft_jitter_cv": 0.5, "step_time.jitter_cv": 0.0}
    changed["step_time"] = FIXED["step_time"] | {"draft": {"kind": "constant", "time_s": 0.0625}}
    scenario = Scenario.builtin(
        {**changed, "workload.output_tokens": 20_001, "engine.max_num_seqs": 2}
    )
    steps = simulate(scenario, schedule, 4).steps
    decode = steps[(steps["kind"] == "decode") & (steps["n_draft_seqs"] > 0)]
    assert decode["verify_time_s"].nunique() == 1
    cv = decode["draft_time_s"].std() / decode["draft_time_s"].mean()
    assert cv == pytest.approx(0.5, rel=0.05)
    mean = (decode["end_s"] - decode["start_s"]).mean()
    assert mean == pytest.approx(theory_for(scenario, schedule, 4).step_time_s, rel=0.01)
