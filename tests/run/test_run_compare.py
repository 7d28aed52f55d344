"""Comparisons: pairing, baselines, bases, processes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from psdsim import InputError, Scenario, compare
from psdsim.cli.output import to_json
from psdsim.run import Basis
from psdsim.run.basis import capacity, n_gpus
from psdsim.run.compare import run_comparison
from psdsim.schedules import SCHEDULES

SMALL = {"workload.n_requests": 40, "workload.output_tokens": 48, "engine.max_num_seqs": 4}


@pytest.fixture(scope="module")
def scenario():
    return Scenario.builtin(SMALL)


@pytest.fixture(scope="module")
def result(scenario):
    return compare(scenario, k=(2, 4), replications=2)


def row(result, schedule, k=0):
    (found,) = [r for r in result.rows if r["schedule"] == schedule and r["k"] == k]
    return found


def test_processes_give_the_same_bytes(scenario):
    kwargs = {"basis": Basis.STEP_BATCH, "seed": 3, "n_replications": 2}
    args = (scenario, ["ar", "sd", "minedraft", "pearl"], [1, 3])
    one = run_comparison(*args, processes=1, **kwargs)
    two = run_comparison(*args, processes=2, **kwargs)
    assert to_json(one.rows) == to_json(two.rows)


def test_each_schedule_runs_once_a_k_and_ar_once(result):
    assert [(r["schedule"], r["k"]) for r in result.rows] == [
        ("ar", 0), ("sd", 2), ("sd", 4), ("minedraft", 2), ("minedraft", 4),
        ("pearl", 2), ("pearl", 4),
    ]  # fmt: skip


def test_baselines_are_run_even_when_not_asked_for(scenario, result):
    alone = compare(scenario, ["minedraft"], 4, replications=2)
    for name in ("speedup_vs_ar", "speedup_vs_sd", "output_throughput", "step_cost_ratio"):
        assert row(alone, "minedraft", 4)[name] == row(result, "minedraft", 4)[name], name


def test_speedups_are_ratios_of_mean_throughputs(result):
    ar, sd, mine = row(result, "ar"), row(result, "sd", 4), row(result, "minedraft", 4)
    assert mine["speedup_vs_ar"] == mine["output_throughput"] / ar["output_throughput"]
    assert mine["speedup_vs_sd"] == mine["output_throughput"] / sd["output_throughput"]
    assert mine["speedup_vs_sd_per_gpu"] == pytest.approx(mine["speedup_vs_sd"] * 4 / 5)
    best = max(row(result, "sd", k)["output_throughput"] for k in (2, 4))
    top = max(row(result, "minedraft", k)["output_throughput"] for k in (2, 4))
    assert mine["speedup_vs_best_sd"] == top / best
    length, ratio = mine["acceptance_length"], mine["implied_step_cost_ratio"]
    assert ratio == pytest.approx(length / mine["speedup_vs_ar"])


def test_gpus_and_capacity(scenario):
    assert {name: n_gpus(name, scenario, 4) for name in SCHEDULES} == {
        "ar": 4, "sd": 4, "minedraft": 5, "pearl": 5, "pearl-draft-ahead": 5,
        "pearl-no-post-verify": 5, "pearl-no-pre-verify": 5,
    }  # fmt: skip
    shared = scenario.set({"draft.shared": True})
    assert n_gpus("minedraft", shared, 4) == 4
    mine = SCHEDULES["minedraft"]
    assert capacity(mine, scenario, Basis.STEP_BATCH) == 8
    assert capacity(mine, scenario, Basis.CONCURRENCY) == 4


def test_bases(scenario, result):
    gpus = compare(scenario, ["minedraft"], 4, replications=2, basis="gpus")
    equal = compare(scenario, ["minedraft"], 4, replications=2, basis="concurrency")
    step = row(result, "minedraft", 4)
    assert row(gpus, "minedraft", 4)["speedup_vs_sd"] == pytest.approx(
        step["speedup_vs_sd_per_gpu"]
    )
    assert row(equal, "minedraft", 4)["speedup_vs_sd"] < step["speedup_vs_sd"]
    column = step["speedup_vs_sd_equal_concurrency"]
    assert row(equal, "minedraft", 4)["speedup_vs_sd"] == pytest.approx(column, rel=0.03)


def test_all_schedules_see_the_same_text(scenario):
    # Same acceptance tape: accepted drafts of a chain don't depend on the schedule.
    sd, mine = compare(scenario, ["sd", "minedraft"], 3, replications=1).rows
    for name in ("accepted_draft_tokens", "drafted_tokens", "acceptance_length"):
        assert sd[name] == mine[name]


def test_sd_with_k_0_is_ar(scenario):
    ar, sd = compare(scenario, ["ar", "sd"], 0, replications=1).rows
    for name in ("output_throughput", "p99_tpot_ms", "mean_itl_ms", "n_steps"):
        assert ar[name] == sd[name]


def test_theory_has_a_reason_where_it_has_no_value(scenario):
    poisson = scenario.set(
        {"workload": {"kind": "poisson", "rate": 5.0, "n_requests": 20, "prompt_tokens": 8,
                      "output_tokens": 8}}
    )  # fmt: skip
    found = compare(poisson, ["sd"], 2, replications=1).rows[0]
    assert found["theory_output_throughput"] is None
    assert found["theory_reason"].startswith("open arrivals")


def test_decode_window_agrees_with_theory_on_the_built_in_scenario():
    rows = compare(Scenario.builtin({"workload.n_requests": 320}), k=4, replications=3).rows
    for found in rows:
        assert abs(found["decode_throughput_theory_error"]) < 0.02, found["schedule"]
        assert found["theory_error"] < 0  # prefill and tail only cost


def test_every_figure_survives_strict_json(result):
    parsed = json.loads(to_json(result.rows))
    assert len(parsed) == len(result.rows)
    assert all(len(r["output_throughput_ci"]) == 2 for r in parsed)


def test_frame_and_summary(result):
    assert len(result.to_frame()) == 7
    assert ("minedraft", 4) in result.summary().index


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"replications": 0}, "replications is 0"),
        ({"k": 65}, "k=65"),
        ({"schedules": ["minedraft"], "k": 0}, "nothing to compare"),
        ({"schedules": ["mindraft"]}, "did you mean 'minedraft'"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_arguments(scenario, kwargs, message):
    with pytest.raises(InputError, match=message):
        compare(scenario, **kwargs)


def test_intervals_cover_the_truth(scenario):
    # 30 independent comparisons of 3 replications: a 95 % interval misses rarely.
    runs = [compare(scenario, ["sd"], 3, replications=3, seed=s).rows[0] for s in range(30)]
    truth = np.mean([r["output_throughput"] for r in runs])
    hits = [r["output_throughput_ci"][0] <= truth <= r["output_throughput_ci"][1] for r in runs]
    assert sum(hits) >= 25


def test_every_main_figure_has_an_interval(result):
    for found in result.rows:
        for name in ("p99_ttft_ms", "mean_tpot_ms", "speedup_vs_ar", "decode_throughput"):
            if name == "speedup_vs_ar" and found["schedule"] == "ar":
                continue
            low, high = found[f"{name}_ci"]
            assert low <= found[name] <= high, (found["schedule"], name)


def test_pairing_makes_the_interval_of_a_speedup_narrow(scenario):
    found = compare(scenario, ["minedraft"], 4, replications=5).rows[0]
    low, high = found["output_throughput_ci"]
    own = (high - low) / found["output_throughput"]
    low, high = found["speedup_vs_sd_ci"]
    paired = (high - low) / found["speedup_vs_sd"]
    # Unpaired, the two errors would add: the ratio would be wider than either throughput.
    assert paired < own * 1.2


def test_decode_alone_agrees_where_a_closed_loop_does_not_fill_the_batch():
    work = {"kind": "concurrency", "concurrency": 8, "n_requests": 120, "prompt_tokens": 64,
            "output_tokens": 256}  # fmt: skip
    for found in compare(Scenario.builtin({"workload": work}), k=4, replications=2).rows:
        assert abs(found["decode_throughput_theory_error"]) < 0.01, found["schedule"]


@pytest.mark.parametrize(
    "acceptance",
    [
        {"kind": "markov", "after_accept": 0.88, "after_reject": 0.4},
        {"kind": "beta", "mean": 0.75, "concentration": 6.0},
        {"kind": "position", "convention": "conditional", "rates": [0.9, 0.7, 0.7, 0.5]},
    ],
    ids=lambda a: a["kind"],
)
def test_theory_of_other_acceptance_models_on_a_whole_comparison(acceptance):
    scenario = Scenario.builtin({"acceptance": acceptance, "workload.n_requests": 600})
    for found in compare(scenario, ["sd", "pearl"], 4, replications=3).rows:
        error = found["decode_throughput_theory_error"]
        if error is None:
            assert "PEARL's chain has a closed form for" in found["theory_reason"]
            assert found["schedule"] == "pearl"
        else:
            assert abs(error) < 0.015, (found["schedule"], error)
