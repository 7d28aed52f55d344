"""Bad input: one clear sentence on stderr, exit code 2, nothing on stdout, nothing left behind."""

from __future__ import annotations

import pytest

from psdsim.cli.main import main
from psdsim.scenario import builtin_text

BASE = ["compare", "--replications", "1", "--k", "2", "--schedules", "sd"]
SMALL = ["--set", "workload.n_requests=8", "--set", "workload.output_tokens=8"]


def refused(capsys, arguments, *words):
    """Run, and check that the refusal names all `words`."""
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert code == 2, (code, out, err)
    assert out == ""
    assert err.startswith("psdsim: ")
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1, err
    for word in words:
        assert word in err, (word, err)


SETTINGS = [
    ("acceptance.alpha=1.7", "acceptance.alpha", "found 1.7", "at most 1"),
    ("acceptance.alpha=-0.1", "acceptance.alpha", "found -0.1", "at least 0"),
    ("acceptance.alpha=true", "acceptance.alpha", "truth value"),
    ("acceptance.alpha=high", "acceptance.alpha", "'high'", "number"),
    ("acceptance.alpha=.nan", "acceptance.alpha", "nan"),
    ("acceptance.alhpa=0.5", "unknown key 'alhpa'", "did you mean 'alpha'"),
    ("acceptance={kind: idd, alpha: 0.5}", "'idd'", "did you mean 'iid'"),
    ("acceptance={alpha: 0.5}", "acceptance", "does not say its kind"),
    ("acceptance={kind: position, rates: [0.5, 0.4]}", "convention", "missing"),
    (
        "acceptance={kind: position, convention: unconditional, rates: [0.4, 0.5]}",
        "acceptance",
        "0.5 at position 1 exceeds 0.4",
    ),
    ("acceptance={kind: position, convention: conditional, rates: [0.4]}", "k=1 and k=2", "extend"),
    ("acceptance={kind: mean_length, length: 9, k: 4, includes_bonus: true}", "k=4 can't give"),
    ("acceptance={kind: mean_length, length: 2, k: 4}", "includes_bonus", "missing"),
    ("acceptance={kind: histogram, counts: [0, 0]}", "all counts are 0"),
    ("acceptance={kind: histogram, counts: [3, -1]}", "counts.1", "-1"),
    ("acceptance={kind: markov, after_accept: 1.0, after_reject: 0.0}", "never leaves a state"),
    ("acceptance={kind: beta, a: 2.0}", "expected a and b, or mean and concentration"),
    ("acceptance={kind: replay, k: 2, path: none.json}", "none.json", "can't be read"),
    ("acceptance={kind: replay, k: 3, rounds: [[1, 2]]}", "k=3 and k=2"),
    ("acceptance={kind: replay, k: 2, rounds: [[1, 9]]}", "9 accepted drafts"),
    ("acceptance=0.8", "acceptance", "0.8"),
    ("step_time.target.base_s=-1", "step_time.target.base_s", "found -1", "at least 0"),
    ("step_time.target.base_s=fast", "step_time.target.base_s", "'fast'"),
    ("step_time.target.base=1", "unknown key 'base'", "did you mean 'base_s'"),
    ("step_time.target={kind: table, path: none.csv}", "none.csv", "can't be read"),
    ("step_time.target={kind: table, rows: [[1, 1, 0, 0.1], [2, 2, 0, 0.1]]}", "no row at"),
    ("step_time.target={kind: constant}", "time_s", "missing"),
    ("step_time.sync_s=.inf", "step_time.sync_s", "inf"),
    ("step_time.jitter_cv=-0.5", "step_time.jitter_cv", "-0.5"),
    ("step_time.step_overhead=1", "unknown key 'step_overhead'", "did you mean"),
    ("workload.output_tokens=0", "workload.output_tokens", "found 0", "at least 1"),
    ("workload.output_tokens=2.5", "workload.output_tokens", "2.5"),
    ("workload.n_requests=0", "workload.n_requests", "0"),
    ("workload.n_requests=many", "workload.n_requests", "'many'"),
    ("workload.rate=3", "unknown key 'rate'"),
    ("workload={kind: poisson, n_requests: 5, prompt_tokens: 5, output_tokens: 5}", "rate"),
    (
        "workload={kind: poisson, rate: 0, n_requests: 5, prompt_tokens: 5, output_tokens: 5}",
        "workload.rate",
        "more than 0",
    ),
    ("workload={kind: batches}", "'batches'", "did you mean 'batch'"),
    ("workload={kind: trace, path: none.csv}", "none.csv", "No such file"),
    ("workload.prompt_tokens={kind: lognormal, mean: -5, cv: 1}", "prompt_tokens", "-5"),
    ("workload.prompt_tokens=9000", "9000 prompt tokens", "chunked_prefill"),
    ("engine.max_num_seqs=0", "engine.max_num_seqs", "0"),
    ("engine.max_num_seqs=1.5", "engine.max_num_seqs", "1.5"),
    ("engine.kv_blocks=3", "engine.kv_blocks", "needs", "pool has 3"),
    ("engine.kv_blocks=lots", "engine.kv_blocks", "'lots'"),
    ("engine.max_num_batched_tokens=20", "feeds", "the budget is 20"),
    ("engine.chunked_prefill=1", "engine.chunked_prefill", "1"),
    ("engine.routing=least_loaded", "engine.routing has no effect"),
    ("engine.max_seqs=5", "unknown key 'max_seqs'", "did you mean 'max_num_seqs'"),
    (
        "draft={config: Qwen/Qwen3-0.6B, gpu: L4, n_gpus: 1, shared: true, serial_on: own}",
        "draft.serial_on: own has no effect",
    ),
    ("draft=null", "go together"),
    ("target.gpu=H100-SMX", "target.gpu", "did you mean 'H100-SXM'"),
    ("target.config=Qwen/Qwen3-33B", "target.config", "did you mean"),
    ("target.config=none/config.json", "target.config", "no file"),
    ("target.n_gpus=0", "target.n_gpus", "0"),
    ("target={config: Qwen/Qwen3-32B, gpu: L4, n_gpus: 1}", "weights", "GiB"),
    ("targets={}", "unknown key 'targets'", "did you mean 'target'"),
    ("name=5", "name", "found 5", "a text"),
    ("acceptance.alpha.x=1", "goes into 'alpha'"),
    ("acceptance.alpha", "--set", "found 'acceptance.alpha'", "key.path=value"),
    ("acceptance.alpha=[1", "can't be read"),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s[0][:50])
def test_bad_setting(capsys, setting):
    assignment, *words = setting
    small = [] if assignment.startswith("workload") else SMALL
    refused(capsys, [*BASE, *small, "--set", assignment], *words)


OPTIONS = [
    (["--k", "-1"], "--k"),
    (["--k", "3:1"], "--k", "empty"),
    (["--k", "2.5"], "--k", "2.5"),
    (["--k", "65"], "--k", "at most 64"),
    (["--k", ""], "--k"),
    (["--k", "1:"], "--k", "'1:'", "a range (1:6)"),
    (["--k", "1:65"], "--k", "k is 65", "at most 64"),
    (["--k", "9" * 5000], "--k", "999...'", "a whole number"),
    (["--k", "\u0663"], "--k", "a whole number"),
    (["--schedules", "mindraft"], "--schedules", "did you mean 'minedraft'"),
    (["--schedules", ","], "--schedules", "no schedule", "expected some of ar, sd"),
    (["--schedules", "SD"], "--schedules", "did you mean 'sd'"),
    (["--replications", "0"], "--replications", "0"),
    (["--replications", "two"], "--replications", "found 'two'", "whole number"),
    (["--replications", "1.5"], "--replications", "found '1.5'", "whole number"),
    (["--seed", "-4"], "--seed", "-4"),
    (["--seed", "x"], "--seed", "found 'x'", "whole number"),
    (["--seed", "9" * 5000], "--seed", "999...'", "at most 18 digits"),
    (["--processes", "0"], "--processes", "0", "at least 1"),
    (["--processes", "many"], "--processes", "found 'many'", "whole number"),
    (["--set", "acceptance.alpha=0.5", "--set", "acceptance.alpha=0.6"], "--set", "undoes"),
    (["--set"], "--set", "requires an argument"),
    (["a.yaml", "b.yaml"], "b.yaml"),
    (["--basis", "gpu"], "--basis", "gpus"),
    (["--basis", "Concurency"], "--basis", "did you mean 'concurrency'"),
    (["--format", "xml"], "--format", "xml"),
    (["--format", "JSON"], "--format", "did you mean 'json'"),
    (["--formats", "json"], "--formats"),
    (["none.yaml"], "none.yaml", "no such file"),
    (["--schedules", "minedraft", "--set", "engine.chunked_prefill=true"], "chunked_prefill"),
]


@pytest.mark.parametrize("case", OPTIONS, ids=lambda c: " ".join(c[0])[:50])
def test_bad_option(capsys, case):
    arguments, *words = case
    refused(capsys, [*BASE, *SMALL, *arguments], *words)


FILES = [
    ("empty.yaml", "", "the file is empty"),
    ("list.yaml", "- 1\n- 2\n", "the file is a list"),
    ("text.yaml", "just words", "the file is a text"),
    ("tab.yaml", "name: x\n\ttarget: y\n", "line 2", "is not YAML"),
    ("open.yaml", "target: {config: a\n", "is not YAML"),
    ("twice.yaml", "name: a\nname: b\n", "line 2", "'name' stands twice"),
    ("bad.toml", "name = \n", "is not TOML"),
    ("scenario.txt", "name: a\n", "'.txt'", ".yaml"),
    ("lacking.yaml", "name: a\n", "missing"),
    ("binary.yaml", b"\xff\xfe\x00", "can't be read", "byte 0", "a text file"),
    ("control.yaml", "name: a\x00\n", "line 1", "control character"),
    ("number.yaml", "5\n", "the single value 5"),
    ("two.yaml", "name: a\n---\nname: b\n", "line 2", "another document"),
    ("self.yaml", "name: &a [*a]\n", "line 1", "holds itself"),
    ("deep.yaml", "name: " + "[" * 2000 + "]" * 2000, "nested too deeply"),
    ("deep.toml", "name = " + "[" * 20000 + "]" * 20000, "deep.toml"),
    ("long.toml", "name = " + "9" * 5000, "is not TOML"),
    ("twice.toml", 'name = "a"\nname = "b"\n', "is not TOML", "line 2"),
    ("key.toml", 'name = "a"\nworkloads = 1\n', "unknown key 'workloads'", "'workload'"),
    ("integer.yaml", "1: 2\n", "line 1", "the key '1' is of type int"),
    ("breaks.yaml", '"a\\nb": 3\n', "unknown key 'a b'"),
    ("noending", "name: a\n", "''", ".yaml, .yml or .toml"),
]


@pytest.mark.parametrize("case", FILES, ids=lambda c: c[0])
def test_bad_file(capsys, tmp_path, case):
    name, content, *words = case
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(capsys, [*BASE, path], name, *words)


def test_error_names_file_line_and_key(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    text = builtin_text().replace("alpha: 0.77", "alpha: 7.7")
    path.write_text(text)
    line = next(i for i, row in enumerate(text.splitlines(), 1) if "alpha: 7.7" in row)
    refused(capsys, [*BASE, path], f"mine.yaml: line {line}: acceptance.alpha: found 7.7")


def test_directory_instead_of_a_file(capsys, tmp_path):
    folder = tmp_path / "x.yaml"
    folder.mkdir()
    refused(capsys, [*BASE, folder], "x.yaml")


TRACES = [
    ("", "the file is empty"),
    ("TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:00.0,5,0\r\n", "line 2", "'0'"),
    ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:00.0,5", "line 2", "truncated"),
    (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:00.0,5,5\n16/11/2023,5,5\n",
        "line 3",
        "expected a date",
    ),
]


@pytest.mark.parametrize("case", TRACES, ids=lambda c: c[1])
def test_bad_trace(capsys, tmp_path, case):
    content, *words = case
    path = tmp_path / "trace.csv"
    path.write_bytes(content.encode())
    setting = f"workload={{kind: trace, path: '{path}'}}"
    refused(capsys, [*BASE, "--set", setting], "trace.csv", *words)


def test_nothing_is_left_behind(capsys, tmp_path):
    out = tmp_path / "out.json"
    refused(capsys, [*BASE, "--set", "acceptance.alpha=2", "--output", out], "alpha")
    assert list(tmp_path.iterdir()) == []


def test_output_that_cannot_be_written(capsys, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("x")
    refused(capsys, [*BASE, *SMALL, "--output", blocker / "out.json"], "file")


def test_timeline_and_predict_and_validate_and_init(capsys, tmp_path):
    refused(capsys, ["timeline", "--output", tmp_path / "a.gif"], "--output", ".gif")
    refused(
        capsys, ["timeline", *SMALL, "--start-s", "1e9", "--output", tmp_path / "a.png"], "ends at"
    )
    refused(capsys, ["timeline", "--steps", "0"], "--steps")
    for time in ("-1", "nan", "inf", "soon"):
        refused(capsys, ["timeline", "--start-s", time], "--start-s", f"found '{time}'", "seconds")
    refused(capsys, ["timeline", "--schedule", "mindraft"], "--schedule:", "'minedraft'")
    refused(capsys, ["timeline", "--k", "99"], "--k", "at most 64")
    refused(capsys, ["theory", "--k", "two"], "--k", "found 'two'")
    refused(capsys, ["theory", "--k", "65"], "--k", "at most 64")
    refused(capsys, ["theory", "--explain", "best_kk"], "--explain", "did you mean 'best_k'")
    refused(capsys, ["validate", "--processes", "0"], "--processes", "at least 1")
    refused(capsys, ["schedules", "--gpu"], "--gpu")
    refused(capsys, ["predict", "--schedule", "ar,sd"], "--schedule", "2 schedules")
    refused(capsys, ["validate", "--mutation", "beta"], "--mutation", "'beta'")
    refused(capsys, ["validate", "--families", "jiter"], "--families", "did you mean 'jitter'")
    existing = tmp_path / "mine.yaml"
    existing.write_text("mine")
    refused(capsys, ["init", existing], "the file exists", "--force")
    assert existing.read_text() == "mine"
    refused(capsys, ["init", tmp_path / "mine.txt"], ".txt")
    refused(capsys, ["comparee"], "comparee")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_there_are_enough_of_them():
    assert len(SETTINGS) + len(OPTIONS) + len(FILES) + len(TRACES) >= 80
