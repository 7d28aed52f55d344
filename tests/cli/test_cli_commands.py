"""The commands do what they say: formats, files, keys, exit codes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest

from psdsim.cli.main import main
from psdsim.schedules import SCHEDULES

SMALL = ["--set", "workload.n_requests=16", "--set", "workload.output_tokens=16"]
KEYS = [
    "schedule",
    "k",
    "output_throughput",
    "output_throughput_ci",
    "theory_output_throughput",
    "theory_error",
    "request_throughput",
    "mean_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "p99_tpot_ms",
    "mean_itl_ms",
    "p99_itl_ms",
    "median_ttft_ms",
    "median_tpot_ms",
    "mean_e2el_ms",
    "p99_e2el_ms",
    "acceptance_length",
    "acceptance_rate",
    "vsr",
    "speedup_vs_ar",
    "speedup_vs_sd",
    "speedup_vs_best_sd",
    "step_cost_ratio",
    "implied_step_cost_ratio",
    "output_throughput_per_gpu",
    "draft_utilization",
    "target_utilization",
    "discarded_draft_tokens",
    "n_requests",
    "n_gpus",
    "saturated",
    "why",
    "theory_reason",
    "theory_omits",
]


def call(capsys, *arguments):
    code = main([str(a) for a in arguments])
    return code, *capsys.readouterr()


def test_compare_json_has_every_promised_key(capsys):
    code, out, err = call(capsys, "compare", *SMALL, "--k", "2", "--format", "json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    rows = data["rows"]
    assert [row["schedule"] for row in rows] == ["ar", "sd", "minedraft", "pearl"]
    for row in rows:
        assert not set(KEYS) - set(row)
        assert len(row["output_throughput_ci"]) == 2
        assert row["n_gpus"] == (4 if row["schedule"] in {"ar", "sd"} else 5)
        assert row["why"]
    assert data["psdsim_version"]
    assert data["scenario"]["target"]["n_gpus"] == 4
    assert any(note.startswith("ASSUMED acceptance.alpha") for note in data["notes"])
    assert "ttft" in data["definitions"]


def test_a_result_can_be_run_again_from_its_own_json(capsys):
    arguments = ["compare", *SMALL, "--k", "3", "--schedules", "sd", "--seed", "7"]
    _, out, _ = call(capsys, *arguments, "--format", "json")
    data = json.loads(out)
    from psdsim import Scenario, compare

    again = compare(
        Scenario.parse(data["scenario"]), ["sd"], 3,
        seed=data["seed"], replications=data["n_replications"], basis=data["basis"],
    )  # fmt: skip
    assert again.rows[0]["output_throughput"] == data["rows"][0]["output_throughput"]


def test_compare_csv(capsys):
    code, out, _ = call(capsys, "compare", *SMALL, "--k", "1,2", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [(row["schedule"], row["k"]) for row in rows][:3] == [
        ("ar", "0"),
        ("sd", "1"),
        ("sd", "2"),
    ]
    low, high = (
        float(rows[1]["output_throughput_ci_low"]),
        float(rows[1]["output_throughput_ci_high"]),
    )
    assert low <= float(rows[1]["output_throughput"]) <= high


def test_compare_table_names_the_basis_and_the_assumptions(capsys):
    code, out, _ = call(capsys, "compare", *SMALL, "--k", "2")
    assert code == 0
    assert "basis step-batch: 16 requests verified per step (minedraft holds 32)" in out
    assert "ASSUMED step_time.target" in out
    assert "left out: KV growth (mean context used), prefill, tail" in out
    assert "Where the time went" in out


def test_output_file_by_its_ending(capsys, tmp_path):
    path = tmp_path / "new" / "result.json"
    code, out, err = call(capsys, "compare", *SMALL, "--k", "2", "--output", path)
    assert code == 0
    assert json.loads(path.read_text())["rows"]
    assert "schedule" in out  # the table still goes to the terminal
    assert str(path) in err
    assert [p.name for p in path.parent.iterdir()] == ["result.json"]


def test_predict(capsys):
    code, out, _ = call(capsys, "predict", *SMALL, "--schedule", "pearl", "--k", "3")
    assert code == 0
    assert "output throughput" in out
    assert "closed form" in out
    code, out, _ = call(
        capsys, "predict", *SMALL, "--schedule", "pearl", "--k", "3", "--format", "json"
    )
    assert json.loads(out)["schedule"] == "pearl"


def test_a_saturated_run_is_marked(capsys):
    work = (
        "workload={kind: poisson, rate: 500, n_requests: 400, prompt_tokens: 64, output_tokens: 64}"
    )
    code, out, _ = call(capsys, "compare", "--set", work, "--k", "2", "--schedules", "sd")
    assert code == 0
    assert "sd k=2 SATURATED" in out
    assert "no closed form: open arrivals" in out


def test_timeline_writes_a_picture_and_a_trace(capsys, tmp_path):
    path = tmp_path / "t.png"
    code, _, _ = call(capsys, "timeline", *SMALL, "--schedule", "minedraft", "--output", path)
    assert code == 0
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    trace = json.loads((tmp_path / "t.trace.json").read_text())
    lanes = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {"target", "draft", "target group 0", "draft group 1"} <= lanes
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.png", "t.trace.json"]


def test_validate_passes_and_convicts(capsys):
    arguments = ["validate", "--schedules", "ar", "--families", "makespan,steady"]
    code, out, _ = call(capsys, *arguments, "--processes", "1")
    assert code == 0
    assert "6 comparisons, 0 disagree" in out
    arguments = ["validate", "--schedules", "pearl", "--families", "makespan"]
    code, out, _ = call(capsys, *arguments, "--mutation", "sync", "--format", "json")
    assert code == 1
    assert json.loads(out)["passed"] is False


def test_schedules_models_gpus(capsys):
    _, out, _ = call(capsys, "schedules")
    for name in SCHEDULES:
        assert f"{name}\n" in out
    _, out, _ = call(capsys, "schedules", "--models", "--gpus")
    assert "Qwen/Qwen3-32B" in out
    assert "H100-SXM" in out


def test_init_gives_a_file_that_runs(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    assert call(capsys, "init", path)[0] == 0
    assert (tmp_path / "scenario.schema.json").exists()
    code, _, _ = call(capsys, "predict", path, *SMALL, "--k", "2", "--replications", "1")
    assert code == 0
    path.write_text("changed")
    assert call(capsys, "init", path, "--force")[0] == 0
    assert path.read_text() != "changed"


def test_version_and_help(capsys):
    from psdsim import __version__

    assert call(capsys, "--version")[1].strip() == f"psdsim {__version__}"
    code, out, _ = call(capsys, "compare", "--help")
    assert code == 0
    assert "--replications" in out


@pytest.mark.parametrize("arguments", [["--version"], ["compare", "--k", "x"]])
def test_console_script(arguments):
    done = subprocess.run(
        [sys.executable, "-c", "from psdsim.cli.main import run; run()", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == (0 if arguments == ["--version"] else 2)
    assert "Traceback" not in done.stderr


def test_same_bytes_in_processes(capsys):
    arguments = ["compare", *SMALL, "--k", "2:3", "--format", "json", "--replications", "2"]
    one = call(capsys, *arguments, "--processes", "1")[1]
    two = call(capsys, *arguments, "--processes", "2")[1]
    assert one == two


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_records_of_a_run(capsys, tmp_path, ending):
    import pandas as pd

    from psdsim.records.jsonl import read_lines

    path = tmp_path / f"run.{ending}"
    arguments = ["predict", *SMALL, "--schedule", "sd", "--k", "2", "--replications", "1"]
    code, _, err = call(capsys, *arguments, "--records", path)
    assert code == 0
    assert str(path) in err
    if ending == "jsonl":
        metadata, steps, requests = read_lines(path)
        assert (metadata["schedule"], metadata["k"]) == ("sd", 2)
        assert requests["output_tokens"].sum() == steps["n_emitted_tokens"].sum() == 256
    else:
        read = pd.read_csv if ending == "csv" else pd.read_parquet
        assert read(path)["n_emitted_tokens"].sum() == 256
    assert call(capsys, *arguments, "--records", tmp_path / "run.txt")[0] == 2
