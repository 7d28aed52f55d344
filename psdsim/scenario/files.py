"""Reading scenario files: YAML or TOML, with the line of every key for error messages."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from psdsim.errors import InputError
from psdsim.scenario.overrides import Lines


def read_scenario_file(path: Path) -> tuple[dict[str, Any], Lines]:
    """Return the data of a scenario file and the line number of each key path.

    Raises
    ------
    psdsim.errors.InputError
        If the file can't be read, isn't YAML or TOML, or isn't a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such file", where=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't be read: {error}", where=str(path)) from None
    if path.suffix.lower() == ".toml":
        try:
            return tomllib.loads(text), {}
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"is not TOML: {error}", where=str(path)) from None
    if path.suffix.lower() not in {".yaml", ".yml"}:
        raise InputError(
            f"has the ending '{path.suffix}'", expected=".yaml, .yml or .toml", where=str(path)
        )
    return parse_yaml(text, str(path))


def parse_yaml(text: str, where: str) -> tuple[dict[str, Any], Lines]:
    """Return the mapping that a YAML text holds and the line of each key path."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: Lines = {}
        if node is not None:
            _collect(node, (), lines, where)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}" if mark is not None else "somewhere"
        raise InputError(f"is not YAML: {error.problem}", where=f"{where}: {line}") from None
    except yaml.YAMLError as error:
        raise InputError(f"is not YAML: {error}", where=where) from None
    if not isinstance(data, dict):
        found = "empty" if data is None else f"a {type(data).__name__}"
        raise InputError(f"the file is {found}", expected="a mapping of keys", where=where)
    return data, lines


def _collect(node: yaml.Node, path: tuple[str | int, ...], lines: Lines, where: str) -> None:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                raise InputError(
                    f"the key '{name}' stands twice", where=f"{where}: line {_line(key)}"
                )
            seen.add(name)
            _collect(value, (*path, name), lines, where)
            lines[(*path, name)] = _line(key)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _collect(value, (*path, index), lines, where)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def builtin_text() -> str:
    """Return the commented text of the built-in scenario file."""
    return files("psdsim.scenario").joinpath("qwen3-32b.yaml").read_text(encoding="utf-8")


def builtin_data() -> dict[str, Any]:
    """Return the data of the built-in scenario."""
    return parse_yaml(builtin_text(), "built-in scenario")[0]
