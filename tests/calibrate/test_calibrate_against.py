"""A measured run replayed: equal counts, near times, and a verdict where it does not fit."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from measured import measure, scaled, truth

from psdsim.calibrate import read_run
from psdsim.calibrate.against import against
from psdsim.cli.main import main

CASES = [("ar", 0), ("sd", 4), ("minedraft", 3), ("pearl", 2), ("pearl-draft-ahead", 5)]
LENGTHS = {"kind": "empirical", "values": [1, 20, 60]}
WORK = {"kind": "batch", "n_requests": 40, "prompt_tokens": 8, "output_tokens": LENGTHS}


@pytest.fixture(scope="module")
def scenario():
    return truth(workload=WORK)


@pytest.mark.parametrize("schedule, k", CASES)
def test_a_replay_has_the_runs_counts_and_nearly_its_times(scenario, tmp_path, schedule, k):
    run = read_run(measure(tmp_path / "run.jsonl", scenario, schedule, k, seed=7))
    # Acceptance, workload and batch of the scenario play no part.
    other = scenario.set(
        {"acceptance.alpha": 0.1, "workload.n_requests": 3, "engine.max_num_seqs": 9}
    )
    found = against(run, other)
    assert found.agrees
    rows = {row["quantity"]: row for row in found.rows}
    assert rows["decode steps"]["measured"] == (run.recording.steps["kind"] == 2).sum() > 30
    for name in ("prefill steps", "drafting steps", "decode steps", "accepted drafts"):
        assert rows[name]["exact"]
        assert rows[name]["measured"] == rows[name]["simulated"], name
    for name in ("output throughput", "mean decode step", "mean TTFT", "mean TPOT", "total time"):
        assert not rows[name]["exact"]
        assert abs(rows[name]["error"]) < 0.05, name
    low, high = rows["mean decode step"]["spread"]
    assert low < rows["mean decode step"]["measured"] < high
    assert not found.notes


def test_without_jitter_the_replay_is_the_run_to_the_last_bit(scenario, tmp_path):
    steady = scenario.set({"step_time.jitter_cv": 0.0, "step_time.draft_jitter_cv": 0.0})
    run = read_run(measure(tmp_path / "run.jsonl", steady, "minedraft", 4))
    for row in against(run, steady).rows:
        assert row["simulated"] == pytest.approx(row["measured"], rel=1e-12), row["quantity"]


def test_the_error_is_that_of_the_scenario(scenario, tmp_path):
    run = read_run(measure(tmp_path / "run.jsonl", scaled(scenario, 2.0, 2.0), "sd", 4))
    rows = {row["quantity"]: row for row in against(run, scenario).rows}
    assert -0.5 < rows["total time"]["error"] < -0.35
    assert rows["output throughput"]["error"] > 0.5
    assert rows["decode steps"]["error"] == 0.0


def test_the_batch_at_equal_concurrency(scenario, tmp_path):
    path = tmp_path / "run.jsonl"
    measure(path, scenario, "minedraft", 3)
    held = read_run(path)
    assert held.metadata["capacity"] == 8
    assert against(held, scenario).agrees
    held.recording.metadata["capacity"] = 4
    assert not against(held, scenario).agrees  # halves of two take other steps


def test_a_forced_run_without_rounds_reads_the_same_tape(scenario, tmp_path):
    path = measure(tmp_path / "run.jsonl", scenario, "sd", 4, seed=3,
                   acceptance={"kind": "iid", "alpha": 0.7})  # fmt: skip
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for row in lines:
        row.pop("tested", None)
        row.pop("accepted", None)
    path.write_text("\n".join(json.dumps(row) for row in lines))
    assert against(read_run(path), scenario.set({"acceptance.alpha": 0.2})).agrees


def test_a_partial_run_is_compared_on_what_it_finished(scenario, tmp_path):
    path = measure(tmp_path / "run.jsonl", scenario, "sd", 4, partial=True)
    run = read_run(path)
    run.recording.requests["finish_s"][20:] = np.nan
    found = against(run, scenario)
    assert found.notes[0].startswith("PARTIAL: ")
    assert "its 20 finished requests of 40" in found.notes[0]
    assert found.agrees  # nothing is asked to be equal
    assert not any(row["exact"] for row in found.rows)


def test_arrivals_over_time_need_not_have_equal_steps(scenario, tmp_path):
    spread = WORK | {"kind": "poisson", "rate": 40.0}
    run = read_run(measure(tmp_path / "r.jsonl", scenario.set({"workload": spread}), "sd", 4))
    found = against(run, scenario)
    assert "arrive over time" in found.notes[0]
    assert not any(row["exact"] for row in found.rows)


# --- on the command line ------------------------------------------------------------------------


def written(scenario, path: Path) -> Path:
    path.write_text(yaml.safe_dump(scenario.to_dict()))
    return path


@pytest.fixture(scope="module")
def files(scenario, tmp_path_factory):
    folder = tmp_path_factory.mktemp("against")
    run = measure(folder / "run.jsonl", scenario, "pearl", 4)
    return run, written(scenario, folder / "s.yaml")


def test_table_json_and_csv(files, capsys, tmp_path):
    run, scenario = files
    arguments = ["validate", str(scenario), "--against", str(run)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "run.jsonl: pearl k=4, replayed on" in out
    assert "The counts agree." in out
    assert "quartiles of the run's steps" in out
    assert main([*arguments, "--format", "json", "--output", str(tmp_path / "x.json")]) == 0
    assert capsys.readouterr().out.endswith("The counts agree.\n")
    data = json.loads((tmp_path / "x.json").read_text())
    assert (data["schedule"], data["k"], data["passed"], data["partial"]) == (
        "pearl",
        4,
        True,
        False,
    )
    assert main([*arguments, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["quantity"] for row in rows] == [row["quantity"] for row in data["rows"]]


def test_other_steps_are_exit_code_1(files, capsys, tmp_path):
    run, scenario = files
    lines = run.read_text().splitlines()
    steps = [i for i, line in enumerate(lines) if '"Step"' in line]
    del lines[steps[-1]]
    short = tmp_path / "short.jsonl"
    short.write_text("\n".join(lines))
    assert main(["validate", str(scenario), "--against", str(short)]) == 1
    out = capsys.readouterr().out
    assert "NOT EQUAL" in out
    assert "The counts DISAGREE." in out


def test_a_partial_run_is_named_so(files, capsys, tmp_path):
    run, scenario = files
    cut = tmp_path / "cut.jsonl"
    cut.write_text(run.read_text().replace('"partial": false', '"partial": true'))
    assert main(["validate", str(scenario), "--against", str(cut)]) == 0
    out = capsys.readouterr().out
    assert "PARTIAL: the run was cut short" in out
    assert "counts agree" not in out


REFUSED = [
    (["--schedules", "sd"], "--schedules has no effect with --against"),
    (["--families", "steady"], "--families has no effect"),
    (["--mutation", "alpha"], "--mutation has no effect"),
    (["--processes", "2"], "--processes has no effect"),
]


@pytest.mark.parametrize("more, words", REFUSED, ids=lambda v: str(v)[:20])
def test_options_without_effect(files, capsys, more, words):
    run, scenario = files
    assert main(["validate", str(scenario), "--against", str(run), *more]) == 2
    assert words in capsys.readouterr().err


def test_what_can_not_be_replayed(files, scenario, capsys, tmp_path):
    run, path = files
    assert main(["validate", str(path)]) == 2
    assert "has no effect; expected --against RUN.jsonl" in capsys.readouterr().err
    assert main(["validate", "--against", str(run)]) == 2
    assert "no scenario is named" in capsys.readouterr().err
    assert main(["validate", str(path), "--against", str(run), "--output", str(run)]) == 2
    assert "is the run" in capsys.readouterr().err

    def refused(text: str, words: str) -> None:
        other = tmp_path / "other.jsonl"
        other.write_text(text)
        assert main(["validate", str(path), "--against", str(other)]) == 2
        assert words in capsys.readouterr().err

    text = run.read_text()
    refused(text.replace('"capacity": 4', '"capacity": 7'), "capacity is 7 at max_num_seqs 4")
    refused(text.replace('"max_num_seqs": 4', '"max_num_seqs": "4"'), "max_num_seqs is 4; expected")
    refused(
        text.replace('"schedule": "pearl"', '"schedule": "sd"'),
        "bonus is False and the schedule is sd",
    )
    refused(text.replace('"k": 4', '"k": 1'), "accepted drafts at k=1")
    plain = written(
        scenario.set({"draft": None, "acceptance": None, "step_time.draft": None,
                      "step_time.draft_prefill": None, "step_time.draft_jitter_cv": None,
                      "step_time.draft_start_s": 0.0}),
        tmp_path / "plain.yaml",
    )  # fmt: skip
    assert main(["validate", str(plain), "--against", str(run)]) == 2
    assert "the run drafts (pearl) and the scenario has no draft model" in capsys.readouterr().err
