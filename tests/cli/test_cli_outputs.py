"""Files are written whole or not at all, and never over something that is no file."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os

import pytest

from psdsim import InputError, Scenario
from psdsim.cli.main import main
from psdsim.cli.output import choose_format, to_csv, to_json, write_file, write_text
from psdsim.scenario import builtin_text

SMALL = ["--set", "workload.n_requests=8", "--set", "workload.output_tokens=8"]
QUICK = ["--schedules", "sd", "--k", "2", "--replications", "1"]


def refused(capsys, arguments, *words):
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("psdsim: ")
    assert err.count("\n") == 1
    for word in words:
        assert str(word) in err


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")

    def fail(part):
        part.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"a.json: can't be written: No space left on device"):
        write_file(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_an_interrupted_write_leaves_nothing(tmp_path):
    def interrupt(part):
        part.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "a.json", interrupt)
    assert not list(tmp_path.iterdir())


def test_what_a_link_points_to_is_written(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_pipe_is_not_replaced_by_a_file(capsys, tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    refused(capsys, ["compare", *QUICK, "--output", pipe], "--output", "no ordinary file")
    assert pipe.is_fifo()
    (tmp_path / "link.json").symlink_to(pipe)
    refused(capsys, ["compare", *QUICK, "--output", tmp_path / "link.json"], "no ordinary file")
    assert pipe.is_fifo()


def test_missing_folders_are_made(tmp_path):
    write_text(tmp_path / "a" / "b" / "c.txt", "x")
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "x"


@pytest.mark.parametrize("command", ["compare", "predict", "theory", "validate", "timeline"])
def test_output_that_cannot_be_a_file_is_refused_at_once(capsys, tmp_path, command, monkeypatch):
    """Before the work: no scenario is read, no check is run."""
    monkeypatch.setattr(Scenario, "builtin", pytest.fail)
    monkeypatch.setattr(importlib.import_module("psdsim.api.validate"), "validate", pytest.fail)
    folder = tmp_path / "folder.png"
    folder.mkdir()
    refused(capsys, [command, "--output", folder], "--output", folder, "is a folder")
    (tmp_path / "file").write_text("x")
    below = tmp_path / "file" / "x.png"
    refused(capsys, [command, "--output", below], "--output", "file is a file")
    assert (tmp_path / "file").read_text() == "x"
    assert not list(folder.iterdir())


def test_a_folder_that_may_not_be_written_to(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(os, "access", lambda *_: False)
    refused(capsys, ["compare", "--output", tmp_path / "a.json"], "closed to writing")


def test_timeline_checks_the_trace_file_as_well(capsys, tmp_path):
    (tmp_path / "t.trace.json").mkdir()
    refused(capsys, ["timeline", *SMALL, "--output", tmp_path / "t.png"], "t.trace.json")
    assert [p.name for p in tmp_path.iterdir()] == ["t.trace.json"]


def test_the_scenario_is_not_written_over(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(builtin_text())
    for command in (["compare", *QUICK], ["predict"], ["theory"]):
        refused(capsys, [*command, path, "--output", path], "--output", "is the scenario")
    assert path.read_text() == builtin_text()


def test_records_and_output_are_two_files(capsys, tmp_path):
    path = tmp_path / "a.csv"
    refused(capsys, ["predict", "--output", path, "--records", path], "--records", "--output")
    folder = tmp_path / "b.csv"
    folder.mkdir()
    refused(capsys, ["predict", "--records", folder], "--records", "is a folder")
    assert [p.name for p in tmp_path.iterdir()] == ["b.csv"]


def test_init_spares_what_is_not_its_own(capsys, tmp_path):
    schema = tmp_path / "scenario.schema.json"
    schema.write_text("{}")
    refused(capsys, ["init", tmp_path / "a.yaml"], "scenario.schema.json", "no schema of psdsim")
    assert schema.read_text() == "{}"
    assert not (tmp_path / "a.yaml").exists()
    assert main(["init", str(tmp_path / "a.yaml"), "--force"]) == 0
    # A second scenario beside it takes the schema that is there.
    assert main(["init", str(tmp_path / "b.yml")]) == 0
    capsys.readouterr()
    (tmp_path / "c.yaml").mkdir()
    refused(capsys, ["init", "--force", tmp_path / "c.yaml"], "c.yaml", "is a folder")


@pytest.mark.parametrize(
    "text, name, kind",
    [
        (None, None, "table"),
        (None, "a.json", "json"),
        (None, "a.csv", "csv"),
        (None, "a.txt", "table"),
        ("csv", "a.json", "csv"),
        ("table", "a.json", "table"),
    ],
)
def test_format(tmp_path, text, name, kind):
    assert choose_format(text, None if name is None else tmp_path / name) == kind


def test_strict_json():
    import numpy as np

    text = to_json(
        {
            "a": float("nan"),
            "b": [float("inf"), np.float64(1.5), np.int64(2), np.bool_(True)],
            "c": (1, None),
            3: "x",
        }
    )
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": None,
        "b": [None, 1.5, 2, True],
        "c": [1, None],
        "3": "x",
    }


def test_csv():
    rows = [
        {"x_ci": [1.0, 2.0], "omits": ["a", "b"], "why": 'says "so", twice'},
        {"x_ci": None, "omits": [], "why": None},
    ]
    first, second = csv.DictReader(io.StringIO(to_csv(rows)))
    assert first == {"x_ci_low": "1.0", "x_ci_high": "2.0", "omits": "a; b", "why": rows[0]["why"]}
    assert second == {"x_ci_low": "", "x_ci_high": "", "omits": "", "why": ""}


def test_json_of_every_command_is_strict(capsys):
    for arguments in (
        ["compare", *SMALL, *QUICK],
        ["predict", *SMALL, "--schedule", "ar", "--replications", "1"],
        ["theory"],
    ):
        assert main([*arguments, "--format", "json"]) == 0
        json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_csv_has_the_keys_of_the_json(capsys):
    arguments = ["compare", *SMALL, *QUICK, "--format"]
    main([*arguments, "json"])
    keys = json.loads(capsys.readouterr().out)["rows"][0].keys()
    main([*arguments, "csv"])
    columns = next(csv.reader(io.StringIO(capsys.readouterr().out)))
    flat = [c.removesuffix("_low") for c in columns if not c.endswith("_ci_high")]
    assert flat == list(keys)
