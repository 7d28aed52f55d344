"""Bad input files that a scenario names: traces, step-time tables, recordings, model configs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from psdsim.cli import compare
from psdsim.cli.main import main

BASE = ["compare", "--replications", "1", "--k", "2", "--schedules", "sd"]
SMALL = ["--set", "workload.n_requests=8", "--set", "workload.output_tokens=8"]
HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
DAY = "2023-11-16 18:15:00.0"


def refused(capsys, arguments, *words):
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("psdsim: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


TRACES = [
    ("t.csv", "", "the file is empty"),
    ("t.csv", HEAD, "a header and no rows"),
    ("t.csv", HEAD + f"{DAY},5,0\n", "line 2", "GeneratedTokens is '0'", "at least 1"),
    ("t.csv", HEAD + f"{DAY},-5,5\n", "line 2", "ContextTokens is '-5'", "at least 1"),
    ("t.csv", HEAD + f"{DAY},5.5,5\n", "line 2", "'5.5'", "whole number"),
    ("t.csv", HEAD + f"{DAY},x,5\n", "line 2", "'x'", "a number"),
    ("t.csv", HEAD + f"{DAY},,5\n", "line 2", "''", "a number"),
    ("t.csv", HEAD + f"{DAY},5,5,5\n", "line 2", "has 4 fields", "expected 3"),
    ("t.csv", HEAD + f"{DAY},5,5\n{DAY},5", "line 3", "truncated", "expected 3"),
    ("t.csv", HEAD + f"{DAY},5,5\n16/11/2023,5,5\n", "line 3", "'16/11/2023'", "expected a date"),
    ("t.csv", HEAD + "2023-13-16 18:15:00.0,5,5\n", "line 2", "expected a date"),
    ("t.csv", (HEAD + f"{DAY},5,x\n").replace("\n", "\r\n"), "line 2", "'x'"),
    ("t.csv", HEAD + f"{DAY},9000,5\n", "9000 prompt tokens", "8192", "chunked_prefill"),
    ("t.csv", HEAD + f"{DAY},5,9999999\n", "KV blocks", "the pool has"),
    ("t.csv", "a,b\n1,2\n", "columns a, b", "expected Azure"),
    ("t.csv", b"\xff\xfe\x00\x01", "can't be read"),
    ("t.csv.gz", "plain", "can't be unpacked"),
    ("t.txt", HEAD, "'.txt'", ".csv or .jsonl"),
    ("t.jsonl", "{\n", "line 1", "is not JSON"),
    ("t.jsonl", "[1]\n", "line 1", "is a list", "a JSON object"),
    ("t.csv", "num_prefill_tokens,num_decode_tokens,arrived_at\n5,5,nan\n", "line 2", "'nan'"),
    ("t.csv", "num_prefill_tokens,num_decode_tokens,arrived_at\n5,5,-1\n", "line 2", "'-1'"),
]


@pytest.mark.parametrize("case", TRACES, ids=lambda c: str(c[1])[-30:])
def test_trace(capsys, tmp_path, case):
    name, content, *words = case
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    arguments = [*BASE, "--set", f"workload={{kind: trace, path: '{path}'}}"]
    # A figure that is right by itself and too large for the engine names the engine's key.
    place = "engine." if "9000" in str(content) or "9999999" in str(content) else str(path)
    refused(capsys, arguments, place, *words)


def test_trace_shorter_than_asked_for(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + f"{DAY},5,5\n")
    work = f"{{kind: trace, path: '{path}', n_requests: 5}}"
    refused(capsys, [*BASE, "--set", f"workload={work}"], "t.csv", "n_requests is 5")
    work = f"{{kind: trace, path: '{path}', format: vidur}}"
    refused(capsys, [*BASE, "--set", f"workload={work}"], "t.csv", "num_prefill_tokens")
    work = f"{{kind: trace, path: '{tmp_path}'}}"
    refused(capsys, [*BASE, "--set", f"workload={work}"], str(tmp_path))


TABLES = [
    ("", "the file is empty"),
    ("n_seqs,time_ms\n", "no rows"),
    ("n_seqs,time_ms\n1,x\n", "line 2", "time_ms is 'x'", "a number"),
    ("n_seqs,time_ms\n1\n", "line 2", "has 1 fields", "expected 2"),
    ("n_seqs,time_ms\n1,-2\n", "line 2", "'-2'", "at least 0"),
    ("n_seqs,time_ms\n1,nan\n", "line 2", "'nan'"),
    ("n_seqs,time_ms\n1,2\n1,3\n", "two rows at n_seqs 1"),
    ("n_seqs,time\n1,2\n", "line 1", "unknown column 'time'", "did you mean 'time_s'"),
    ("n_seqs,query_length,time_ms\n1,1,1\n2,2,2\n", "no row at n_seqs 1, query_length 2"),
    ("n_seqs,time_ms,time_s\n1,2,2\n", "2 time columns"),
    (b"\xff\xfe", "can't be read"),
]


@pytest.mark.parametrize("case", TABLES, ids=lambda c: str(c[0])[:30])
def test_table(capsys, tmp_path, case):
    content, *words = case
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = f"step_time.target={{kind: table, path: '{path}'}}"
    refused(capsys, [*BASE, *SMALL, "--set", table], str(path), *words)


RECORDINGS = [
    ("r.jsonl", "", "the recording is empty"),
    ("r.jsonl", "x", "line 1", "is not JSON"),
    ("r.jsonl", "[1,2]\n[3]\n", "line 2", "found [3]", "0 to 2"),
    ("r.jsonl", "[1,1.5]\n", "line 1", "[1, 1.5]", "whole numbers"),
    ("r.jsonl", "[true]\n", "line 1", "whole numbers"),
    ("r.json", "{}", "not a list", "a list of lists"),
    ("r.csv", "a,b\n1,2\n", "line 1", "'request' is missing"),
    ("r.txt", "[1]", "'.txt'", ".json, .jsonl or .csv"),
]


@pytest.mark.parametrize("case", RECORDINGS, ids=lambda c: c[0] + str(c[1])[:20])
def test_recording(capsys, tmp_path, case):
    name, content, *words = case
    path = tmp_path / name
    path.write_text(content)
    replay = f"acceptance={{kind: replay, k: 2, path: '{path}'}}"
    refused(capsys, [*BASE, *SMALL, "--set", replay], str(path), *words)


def test_recording_binds_k_and_schedule(capsys):
    replay = ["--set", "acceptance={kind: replay, k: 2, rounds: [[2, 1, 0]]}"]
    other_k = ["compare", "--replications", "1", "--schedules", "sd", "--k", "3", *SMALL]
    refused(capsys, [*other_k, *replay], "acceptance.k", "k=2 and k=3")
    pearl = ["compare", "--replications", "1", "--schedules", "pearl", "--k", "2", *SMALL]
    refused(capsys, [*pearl, *replay], "acceptance.kind", "expected schedule sd or minedraft")
    refused(capsys, [*BASE, *SMALL, *replay], "request 0", "as long as the output")


CONFIGS = [
    ("", "line 1", "not valid JSON"),
    ("[]", "the top level is a list", "an object"),
    ("{}", "'num_hidden_layers' is missing"),
    (b"\xff\xfe", "can't be read"),
]


@pytest.mark.parametrize("case", CONFIGS, ids=lambda c: str(c[0]))
def test_config(capsys, tmp_path, case):
    content, *words = case
    path = tmp_path / "config.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    arguments = [*BASE, *SMALL, "--set", f"target.config={path}"]
    refused(capsys, arguments, "target.config", str(path), *words)


def test_a_crlf_trace_runs(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes((HEAD + f"{DAY},5,5\n{DAY},6,4\n").replace("\n", "\r\n").encode())
    assert main([*BASE, "--set", f"workload={{kind: trace, path: '{path}'}}"]) == 0
    assert "sd k=2" in capsys.readouterr().out


def test_weights_that_do_not_fit(capsys):
    draft = ["--set", "draft={config: Qwen/Qwen3-32B, gpu: L4, n_gpus: 1}"]
    arguments = ["compare", "--replications", "1", "--k", "2", "--schedules", "minedraft"]
    refused(capsys, [*arguments, *SMALL, *draft], "the weights of Qwen/Qwen3-32B", "1 x L4")
    few = ["--set", "engine.gpu_memory_utilization=0.05"]
    refused(capsys, [*BASE, *SMALL, *few], "the weights of", "expected more GPUs")


def test_outputs_longer_than_memory_are_refused_before_they_are_drawn(capsys):
    arguments = [*BASE, "--set", "workload.output_tokens=1000000000"]
    refused(capsys, arguments, "engine.kv_blocks", "1000000000 output tokens", "the pool has")


def test_no_draft_model(capsys):
    none = [f"{name}=null" for name in ("draft", "acceptance", "step_time.draft")]
    without = [word for text in none for word in ("--set", text)]
    refused(capsys, [*BASE, *SMALL, *without], "schedule 'sd' drafts", "expected draft")
    refused(capsys, ["timeline", *SMALL, *without], "schedule 'minedraft' drafts")
    assert main(["predict", *SMALL, *without, "--schedule", "ar", "--replications", "1"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "error, code, words",
    [
        (MemoryError(), 2, "needs more memory"),
        (OSError(28, "No space left on device", "x.csv"), 2, "x.csv: No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_what_can_go_wrong_at_any_time(monkeypatch, capsys, error, code, words):
    def fail(*_):
        raise error

    monkeypatch.setattr(compare, "load_scenario", fail)
    assert main(["compare"]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err


def test_asked_for_nothing_it_shows_its_commands():
    done = subprocess.run(
        [sys.executable, "-c", "from psdsim.cli.main import run; run()"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: ")
    assert "compare" in done.stderr
