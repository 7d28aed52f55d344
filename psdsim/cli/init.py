"""`psdsim init`: a commented scenario file to edit, and its JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from psdsim.cli.output import check_output, write_text
from psdsim.errors import InputError
from psdsim.scenario import Scenario, builtin_text

SCHEMA_NAME = "scenario.schema.json"
_TITLE = "psdsim scenario"


def schema_text() -> str:
    """Return the JSON Schema of scenario files."""
    schema = Scenario.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = _TITLE
    return json.dumps(schema, indent=2) + "\n"


def init_command(
    path: Annotated[Path, typer.Argument(help="File to write.")] = Path("scenario.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented scenario file and its JSON Schema."""
    if path.suffix.lower() not in {".yaml", ".yml"}:
        raise InputError(f"'{path}' has the ending '{path.suffix}'", expected=".yaml or .yml")
    schema = path.parent / SCHEMA_NAME
    for file in (path, schema):
        check_output(file)
    if path.exists() and not force:
        raise InputError("the file exists", expected="another name, or --force", where=str(path))
    if schema.exists() and not force and _TITLE.encode() not in schema.read_bytes():
        raise InputError(
            "the file exists and is no schema of psdsim",
            expected="another folder, or --force",
            where=str(schema),
        )
    write_text(path, f"# yaml-language-server: $schema={SCHEMA_NAME}\n" + builtin_text())
    write_text(schema, schema_text())
    typer.echo(f"written: {path} and {schema}")
