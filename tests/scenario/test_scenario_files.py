"""Scenario files: documented examples parse, formats agree, changes are checked anew."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from psdsim import InputError, Scenario, simulate
from psdsim.cli.init import schema_text
from psdsim.run.notes import assumed_notes
from psdsim.scenario import builtin_text, parse_assignment

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "scenario.md").read_text(), re.S)


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda t: t[:40].replace("\n", " "))
def test_documented_examples_are_valid(text):
    part = yaml.safe_load(text)
    base = Scenario.builtin().to_dict()
    if "target" in part or "acceptance" in part or "step_time" in part:
        base["assumed"] = {}
    scenario = Scenario.parse(base | part)
    for name in part:
        assert getattr(scenario, name) is not None


def test_every_kind_is_documented():
    text = "\n".join(EXAMPLES)
    schema = json.loads(schema_text())
    kinds = {
        definition["properties"]["kind"]["const"]
        for definition in schema["$defs"].values()
        if "kind" in definition.get("properties", {})
    }
    assert kinds >= {"iid", "table", "trace", "lognormal"}
    missing = {kind for kind in kinds if f"kind: {kind}" not in text}
    assert not missing


def test_every_key_is_explained():
    text = (ROOT / "docs" / "scenario.md").read_text()
    schema = json.loads(schema_text())
    keys = {
        key
        for definition in (schema, *schema["$defs"].values())
        for key in definition.get("properties", {})
    }
    assert len(keys) > 60
    assert not {key for key in keys if not re.search(rf"\b{key}\b", text)}


def test_published_schema_is_up_to_date():
    """Written by: psdsim init (docs/scenario.schema.json is its scenario.schema.json)."""
    assert (ROOT / "docs" / "scenario.schema.json").read_text() == schema_text()


def test_every_key_has_a_description_in_the_schema():
    schema = json.loads(schema_text())
    bare = [
        f"{name}.{key}"
        for name, definition in schema["$defs"].items()
        for key, field in definition.get("properties", {}).items()
        if "description" not in field
    ]
    assert not bare


def test_builtin_is_the_commented_file():
    scenario = Scenario.builtin()
    data = yaml.safe_load(builtin_text())
    assert scenario.to_dict()["engine"]["max_num_seqs"] == data["engine"]["max_num_seqs"]
    assert (scenario.target.n_gpus, scenario.draft.n_gpus) == (4, 1)
    for path in scenario.assumed:
        assert any(path in note and "ASSUMED" in note for note in assumed_notes(scenario))


TOML = """
name = "small"
[target]
config = "Qwen/Qwen3-8B"
gpu = "H100-SXM"
n_gpus = 1
[step_time]
target = {kind = "constant", time_s = 0.01}
[workload]
kind = "batch"
n_requests = 4
prompt_tokens = 8
output_tokens = 8
[engine]
max_num_seqs = 2
"""
YAML = """
name: small
target: {config: Qwen/Qwen3-8B, gpu: H100-SXM, n_gpus: 1}
step_time: {target: {kind: constant, time_s: 0.01}}
workload: {kind: batch, n_requests: 4, prompt_tokens: 8, output_tokens: 8}
engine: {max_num_seqs: 2}
"""


def test_yaml_and_toml_say_the_same(tmp_path):
    (tmp_path / "a.toml").write_text(TOML)
    (tmp_path / "a.yaml").write_bytes(YAML.replace("\n", "\r\n").encode())
    a, b = Scenario.load(tmp_path / "a.toml"), Scenario.load(tmp_path / "a.yaml")
    assert a.to_dict() == b.to_dict()


def test_without_draft_only_ar_runs(tmp_path):
    from psdsim import simulate

    path = tmp_path / "a.yaml"
    path.write_text(YAML)
    scenario = Scenario.load(path)
    assert simulate(scenario, "ar").metrics["n_requests"] == 4
    with pytest.raises(InputError, match=r"a.yaml: schedule 'sd' drafts"):
        simulate(scenario, "sd", 2)


def test_round_trip_through_plain_data():
    scenario = Scenario.builtin({"acceptance": {"kind": "beta", "a": 4.0, "b": 1.0}})
    again = Scenario.parse(json.loads(json.dumps(scenario.to_dict())))
    assert again.to_dict() == scenario.to_dict()
    assert again.acceptance == scenario.acceptance


def test_set_states_a_figure_and_takes_its_mark_away():
    scenario = Scenario.builtin()
    changed = scenario.set({"acceptance.alpha": 0.9, "step_time.target.base_s": 0.02})
    assert changed.acceptance.alpha == 0.9
    assert "acceptance.alpha" not in changed.assumed
    assert scenario.acceptance.alpha == 0.77
    assert scenario.assumed.keys() - changed.assumed.keys() >= {"acceptance.alpha"}
    with pytest.raises(InputError, match=r"acceptance.alpha: found 2"):
        scenario.set({"acceptance.alpha": 2})


def test_files_are_relative_to_the_scenario(tmp_path):
    (tmp_path / "table.csv").write_text("n_seqs,time_ms\n1,10\n8,12\n")
    (tmp_path / "rounds.jsonl").write_text("[1, 2, 0]\n[2, 2]\n")
    data = Scenario.builtin().to_dict() | {"assumed": {}}
    data["step_time"]["target"] = {"kind": "table", "path": "table.csv"}
    data["acceptance"] = {"kind": "replay", "k": 2, "path": "rounds.jsonl"}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(data))
    scenario = Scenario.load(path)
    assert scenario.timers()["target"](8, 8, 0) == 0.012
    assert scenario.acceptance.rounds == ((1, 2, 0), (2, 2))
    # What was read in survives a change of another key.
    assert scenario.set({"engine.max_num_seqs": 8}).acceptance.rounds == ((1, 2, 0), (2, 2))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a.b=1", ("a.b", 1)),
        ("a=2e-5", ("a", 2e-5)),
        ("a=1:30", ("a", "1:30")),
        ("a='2'", ("a", "2")),
        ("a=2020-01-01", ("a", "2020-01-01")),
        ("a=.inf", ("a", float("inf"))),
        ("a=-7", ("a", -7)),
        ("a=yes", ("a", True)),
        (" a.b = x ", ("a.b", "x")),
        ("a=2.0e-5", ("a", 2e-5)),
        ("a=null", ("a", None)),
        ("a={x: [1, 2]}", ("a", {"x": [1, 2]})),
        ("a=b=c", ("a", "b=c")),
    ],
)
def test_assignments(text, expected):
    assert parse_assignment(text) == expected


def test_measured_stands_for_hardware_without_a_data_sheet():
    """The figures are those of a listed GPU where nothing asks its data sheet."""
    stated = {"engine.kv_blocks": "unlimited", "workload.n_requests": 8}
    listed = Scenario.builtin(stated)
    measured = listed.set({"target.gpu": "measured", "draft.gpu": "measured"})
    assert measured.target_placement.gpu is None
    for schedule in ("sd", "minedraft"):
        assert simulate(measured, schedule, 2).metrics == simulate(listed, schedule, 2).metrics
