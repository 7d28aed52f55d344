"""The JSON Schema says what the parser says: what editors accept loads, and the other way round."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest
import yaml

from psdsim import InputError, Scenario
from psdsim.cli.init import schema_text
from psdsim.cli.main import main
from psdsim.scenario import builtin_text
from psdsim.scenario.yaml_reader import read_yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "scenario.md").read_text(), re.S)


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_builtin_scenario(validator):
    validator.validate(read_yaml(builtin_text(), "x")[0])
    validator.validate(Scenario.builtin().to_dict())


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/*.yaml")), ids=lambda p: p.name)
def test_examples(validator, path):
    validator.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda t: t[:40].replace("\n", " "))
def test_documented_sections(validator, text):
    validator.validate(Scenario.builtin().to_dict() | read_yaml(text, "x")[0])


def test_what_init_writes(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    assert main(["init", str(path)]) == 0
    capsys.readouterr()
    assert Scenario.load(path).to_dict() == Scenario.builtin().to_dict()
    assert (tmp_path / "scenario.schema.json").read_text() == schema_text()
    # Editors find the schema by the first line.
    first, rest = path.read_text().split("\n", 1)
    assert first.endswith("$schema=scenario.schema.json")
    assert rest == builtin_text()


WRONG = [
    ("nam", "x"),
    ("target.gpuu", "x"),
    ("target.n_gpus", 0),
    ("acceptance.alpha", 1.5),
    ("acceptance.alpha", "0.5"),
    ("acceptance.kind", "idd"),
    ("step_time.target.base_s", -1.0),
    ("step_time.target.base", 1.0),
    ("step_time.jitter_cv", 11.0),
    ("workload.n_requests", 0),
    ("workload.output_tokens", 0),
    ("workload.kind", "poisson"),
    ("engine.kv_blocks", "lots"),
    ("engine.kv_blocks", 0),
    ("engine.block_size", 5000),
    ("draft.slow_down", 0.5),
    ("draft.slow_down", {"target": 1.5}),
    ("draft.slow_down", {"target": 1.5, "draft": 0.5}),
    ("step_time.draft_jitter_cv", 11.0),
    ("assumed", {"name": 5}),
]


@pytest.mark.parametrize("path, value", WRONG, ids=str)
def test_both_refuse(validator, path, value):
    data = copy.deepcopy(Scenario.builtin().to_dict())
    *sections, key = path.split(".")
    place = data
    for name in sections:
        place = place[name]
    place[key] = value
    assert not validator.is_valid(data)
    with pytest.raises(InputError):
        Scenario.parse(data)


def test_limits_are_written_in_the_words_of_the_schema():
    """A limit that pydantic can't translate would stand there under its own name."""
    assert not re.search(r'"(gt|ge|lt|le|strict|allow_inf_nan)":', schema_text())
