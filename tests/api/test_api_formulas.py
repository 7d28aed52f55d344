"""The catalogue on a scenario: values, reasons, explanations."""

from __future__ import annotations

import json

import pytest

from analysis.catalogue import all_formulas, formula
from psdsim import InputError, Scenario, compare, simulate
from psdsim.api.formulas import theory_inputs, theory_table
from psdsim.cli.main import main


def values(scenario=None, k=4):
    return {row["name"]: row for row in theory_table(scenario, k)}


def test_every_entry_is_complete():
    for name, entry in all_formulas().items():
        assert entry.name == name
        assert entry.equation
        assert entry.source
        assert entry.assumptions
        assert entry.meaning


def test_values_by_hand_on_round_numbers():
    scenario = Scenario.builtin(
        {
            "acceptance": {"kind": "iid", "alpha": 0.5},
            "step_time": {
                "target": {"kind": "constant", "time_s": 0.04},
                "draft": {"kind": "constant", "time_s": 0.01},
                "step_overhead_s": 0.002,
                "sync_s": 0.001,
            },
            "assumed": {},
        }
    )
    rows = {name: row["value"] for name, row in values(scenario, 2).items()}
    assert rows["acceptance_length"] == 1.75
    assert rows["speedup"] == pytest.approx(1.75 / 1.5)
    assert rows["break_even_alpha"] == pytest.approx(0.25)
    assert rows["sd_step_time"] == pytest.approx(0.062)
    assert rows["minedraft_step_time"] == pytest.approx(0.043)
    assert rows["sd_throughput"] == pytest.approx(16 * 1.75 / 0.062)
    assert rows["minedraft_throughput"] == pytest.approx(16 * 1.75 / 0.043)
    assert rows["minedraft_speedup"] == pytest.approx(1.5)
    assert rows["minedraft_speedup_per_gpu"] == pytest.approx(1.2)
    assert rows["minedraft_speedup_equal_concurrency"] == pytest.approx(0.75)
    # pi_pre = .75 / (1.5 - .25) = .6; R = .6 + .4 x 1.5
    assert rows["pearl_pre_verify_share"] == pytest.approx(0.6)
    assert rows["pearl_tokens_per_step"] == pytest.approx(1.2)


def test_formulas_and_comparison_speak_of_the_same_thing():
    scenario = Scenario.builtin({"workload.n_requests": 64})
    rows = values(scenario)
    sd = compare(scenario, ["sd"], 4, replications=1).rows[0]
    # The comparison counts the stop inside the last block, the catalogue's entry does not.
    ratio = sd["theory_output_throughput"] / rows["sd_throughput"]["value"]
    assert 0.98 < ratio < 1.0
    assert theory_inputs(scenario, 4).verify_s == pytest.approx(sd["mean_verify_time_s"], rel=0.01)


def test_broken_assumptions_are_reasons_not_crashes():
    rows = values(Scenario.builtin({"acceptance": {"kind": "beta", "a": 4.0, "b": 1.0}}))
    assert rows["speedup"]["value"] is None
    assert "i.i.d." in rows["speedup"]["reason"]
    assert rows["acceptance_length"]["value"] > rows["pooled_acceptance_length"]["value"]
    assert "nothing is drafted" in values(k=0)["speedup"]["reason"]
    assert "not open" in values()["utilisation"]["reason"]


def test_overload_is_named():
    work = {"kind": "poisson", "rate": 200.0, "n_requests": 200, "prompt_tokens": 8,
            "output_tokens": 128}  # fmt: skip
    row = values(Scenario.builtin({"workload": work}))["utilisation"]
    assert "utilisation is" in row["reason"]


def test_unknown_formula():
    with pytest.raises(InputError, match="did you mean 'speedup'"):
        formula("speedupp")


def test_command(capsys):
    assert main(["theory", "--k", "3"]) == 0
    out = capsys.readouterr().out
    assert "pearl_tokens_per_step" in out
    assert "No value here" in out
    assert main(["theory", "--explain", "speedup"]) == 0
    out = capsys.readouterr().out
    assert "S = E[N] / (k c + 1)" in out
    assert "Theorem 3.8" in out
    assert main(["theory", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]
    assert main(["theory", "--explain", "nothing"]) == 2


@pytest.mark.parametrize("rate", [2.0, 5.0, 7.0])
def test_open_arrivals_fixed_point_against_simulation(rate):
    """Ours: mean decode latency of SD and MineDraft from arrival rate, step time and rounds."""
    work = {"kind": "poisson", "rate": rate, "n_requests": 1200, "prompt_tokens": 1,
            "output_tokens": 257}  # fmt: skip
    scenario = Scenario.builtin({"workload": work, "engine.max_num_seqs": 64})
    theory = {row["name"]: row["value"] for row in theory_table(scenario, 4)}
    for schedule in ("sd", "minedraft"):
        r = simulate(scenario, schedule, 4).requests.iloc[150:]
        latency = (r["finish_s"] - r["first_token_s"]).mean()
        assert latency == pytest.approx(theory[f"{schedule}_latency"], rel=0.03), schedule


def test_inexact_entries_say_so():
    rows = values()
    assert rows["specbranch_printed"]["exactness"].startswith("approximation")
    assert rows["speedup"]["exactness"] == "exact"
