"""Reading scenario files: YAML or TOML, with the line of every key for error messages."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from psdsim.errors import InputError
from psdsim.scenario.yaml_reader import Lines, read_yaml


def read_scenario_file(path: Path) -> tuple[dict[str, Any], Lines]:
    """Return the data of a scenario file and the line number of each key path.

    Raises
    ------
    psdsim.errors.InputError
        If the file can't be read, isn't YAML or TOML, or isn't a mapping.
    """
    where = str(path)
    ending = path.suffix.lower()
    if ending not in {".yaml", ".yml", ".toml"}:
        raise InputError(
            f"has the ending '{path.suffix}'", expected=".yaml, .yml or .toml", where=where
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such file", where=where) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"can't be read: byte {error.start} is no UTF-8 text",
            expected="a text file",
            where=where,
        ) from None
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=where) from None
    if ending != ".toml":
        return parse_yaml(text, where)
    try:
        return tomllib.loads(text), {}
    except RecursionError:
        raise InputError("is nested too deeply", where=where) from None
    except ValueError as error:
        raise InputError(f"is not TOML: {error}", where=where) from None


def parse_yaml(text: str, where: str) -> tuple[dict[str, Any], Lines]:
    """Return the mapping that a YAML text holds and the line of each key path."""
    data, lines = read_yaml(text, where)
    if not isinstance(data, dict):
        raise InputError(f"the file is {_named(data)}", expected="a mapping of keys", where=where)
    return data, lines


def _named(data: object) -> str:
    if data is None:
        return "empty"
    if isinstance(data, list):
        return "a list"
    return "a text" if isinstance(data, str) else f"the single value {data}"


def builtin_text() -> str:
    """Return the commented text of the built-in scenario file."""
    return files("psdsim.scenario").joinpath("qwen3-32b.yaml").read_text(encoding="utf-8")


def builtin_data() -> dict[str, Any]:
    """Return the data of the built-in scenario."""
    return parse_yaml(builtin_text(), "built-in scenario")[0]
