"""What calibrate can't use gets one sentence, and nothing is written then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from measured import measure, profile, truth

from psdsim.cli.main import main


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    cases = (("ar", 0), ("sd", 4), ("pearl", 4))
    runs = {name: measure(folder / f"{name}.jsonl", truth(), name, k) for name, k in cases}
    return runs | {"profile": profile(folder / "p.json")}


def refused(capsys, *arguments: object) -> str:
    assert main(["calibrate", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def changed(path: Path, to: Path, change) -> Path:
    """Copy a run with its metadata changed."""
    first, rest = path.read_text().split("\n", 1)
    data = json.loads(first)
    change(data["metadata"])
    to.write_text(json.dumps(data) + "\n" + rest)
    return to


METADATA = [
    (lambda m: m.pop("schedule"), "the key 'schedule' is missing"),
    (lambda m: m.pop("k"), "the key 'k' is missing"),
    (lambda m: m.update(schedule="sdd"), "no schedule 'sdd'; did you mean 'sd'"),
    (lambda m: m.update(k=1.5), "k is 1.5; expected a whole number 0 to 64"),
    (lambda m: m.pop("max_num_seqs"), "no run's metadata has max_num_seqs"),
]


@pytest.mark.parametrize("change, words", METADATA, ids=[words[:40] for _, words in METADATA])
def test_metadata(good, tmp_path, capsys, change, words):
    run = changed(good["sd"], tmp_path / "run.jsonl", change)
    out = tmp_path / "new" / "out.yaml"
    assert words in refused(capsys, run, good["profile"], "--output", out)
    assert not out.parent.exists()


def rows(data):
    return data["rows"]


PROFILES = [
    (lambda d: d.pop("rows"), "the key 'rows' holds no rows"),
    (lambda d: d.pop("models"), "the key 'models' is missing"),
    (lambda d: d["models"].pop("target"), "the key 'target' is missing"),
    (lambda d: d["models"]["target"].update(config=None), "the target has no config"),
    (lambda d: d["models"].pop("draft"), "the runs draft and the profile has no draft model"),
    (lambda d: d.update(rows=[r for r in rows(d) if r["model"] == "draft"]), "the target's decode"),
    (lambda d: d.update(rows=[r for r in rows(d) if r["model"] != "draft"]), "the draft's decode"),
    (lambda d: rows(d).pop(0), "the target's decode passes: the step-time table has no row at"),
    (lambda d: rows(d).append(rows(d)[0]), "has two rows at"),
    (lambda d: rows(d)[0].update(median_s=0.0), "rows[0]: median_s is 0"),
    (lambda d: rows(d)[1].update(n_seqs="1"), "rows[1]: n_seqs is 1; expected a number"),
    (lambda d: rows(d)[1].update(n_seqs=0), "rows[1]: n_seqs is 0; expected at least 1"),
    (lambda d: rows(d)[2].update(phase="verify"), "rows[2]: phase is 'verify'"),
    (lambda d: rows(d)[2].update(busy=1), "rows[2]: busy is neither true nor false"),
    (lambda d: d["models"]["target"].update(config={"model_type": "x"}), "target"),
]


@pytest.mark.parametrize("change, words", PROFILES, ids=[words[:40] for _, words in PROFILES])
def test_profiles(good, tmp_path, capsys, change, words):
    data = json.loads(good["profile"].read_text())
    change(data)
    path = tmp_path / "p.json"
    path.write_text(json.dumps(data))
    out = tmp_path / "new" / "out.yaml"
    assert words in refused(capsys, good["ar"], good["sd"], path, "--output", out)
    assert not out.parent.exists()


def test_too_little_to_fit_on(good, tmp_path, capsys):
    out = ["--output", tmp_path / "out.yaml"]
    words = refused(capsys, good["pearl"], good["profile"], *out)
    assert "the runs have 0 decode steps of ar or sd to fit the target's passes on" in words
    words = refused(capsys, good["ar"], good["pearl"], good["profile"], *out)
    assert "the runs have 0 drafting steps of sd" in words
    short = truth(**{"workload.output_tokens": 12, "workload.n_requests": 4})
    run = measure(tmp_path / "short.jsonl", short, "ar", 0)
    assert "the runs have 11 decode steps" in refused(capsys, run, good["profile"], *out)


def test_rounds_and_forced_acceptance(good, tmp_path, capsys):
    out = tmp_path / "out.yaml"
    lines = [json.loads(line) for line in good["sd"].read_text().splitlines()]
    bare = tmp_path / "bare.jsonl"
    for row in lines:
        row.pop("tested", None), row.pop("accepted", None)
    bare.write_text("\n".join(json.dumps(row) for row in lines))
    assert "no run has rounds" in refused(capsys, bare, good["profile"], "--output", out)
    forced = [
        changed(good["sd"], tmp_path / f"{i}.jsonl",
                lambda m, a=a: m.update(acceptance={"kind": "iid", "alpha": a}))
        for i, a in enumerate((0.7, 0.8))
    ]  # fmt: skip
    words = refused(capsys, *forced, good["profile"], "--output", out)
    assert "forced to different acceptance models" in words
    assert main(["calibrate", str(forced[0]), str(good["profile"]), "--output", str(out)]) == 0
    text = out.read_text()
    assert "acceptance: {kind: iid, alpha: 0.7}" in text
    assert "forced on the runs, not measured" in text


def test_files_and_output(good, tmp_path, capsys):
    sd, p = good["sd"], good["profile"]
    (tmp_path / "folder.yaml").mkdir()
    assert "is a folder" in refused(capsys, sd, p, "--output", tmp_path / "folder.yaml")
    assert "is no YAML file" in refused(capsys, sd, p, "--output", tmp_path / "out.json")
    assert "the last file is" in refused(capsys, p, sd, "--output", tmp_path / "out.yaml")
    assert "one file is named" in refused(capsys, p, "--output", tmp_path / "out.yaml")
    clash = tmp_path / "out-target.json"
    clash.write_text(p.read_text())
    before = clash.read_text()
    words = refused(capsys, sd, clash, "--output", tmp_path / "out.yaml")
    assert "would be written over" in words
    assert clash.read_text() == before
    gone = tmp_path / "no.json"
    assert "can't be read" in refused(capsys, sd, gone, "--output", tmp_path / "o.yaml")


def test_names_that_were_read_stay_text(good, tmp_path, capsys):
    """Nothing in a profile or a run becomes a key of the scenario."""
    data = json.loads(good["profile"].read_text())
    data["models"]["target"]["name"] = 'a "name": {x: 1}\nengine: 5'
    data["hardware"] = {"cpu": "two\nlines: here"}
    data["models"]["draft"] |= {"kind": "ngram", "config": None, "device": "cpu:0"}
    path = tmp_path / "p.json"
    path.write_text(json.dumps(data))
    out = tmp_path / "out.yaml"
    assert main(["calibrate", str(good["sd"]), str(path), "--output", str(out)]) == 0
    from psdsim import Scenario

    scenario = Scenario.load(out)
    assert scenario.name.startswith('a "name": {x: 1}\nengine: 5 with')
    assert scenario.draft.shared  # both on one device
    assert not (tmp_path / "out-draft.json").exists()
    capsys.readouterr()
