"""Writing results: table, JSON or CSV, to the terminal or whole to a file."""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from psdsim.errors import InputError
from psdsim.scenario import Scenario

FORMATS = ("table", "json", "csv")


def choose_format(text: str | None, output: Path | None) -> str:
    """Return the format: as asked, else by the ending of the file, else a table."""
    if text is not None:
        if text not in FORMATS:
            raise InputError(
                f"'{text}' is not a format", expected="table, json or csv", where="--format"
            )
        return text
    if output is not None and output.suffix in {".json", ".csv"}:
        return output.suffix[1:]
    return "table"


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place whole.

    Raises
    ------
    psdsim.errors.InputError
        If the folder doesn't exist or can't be written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent
        )
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror}", where=str(path)) from None
    os.close(handle)
    part = Path(name)
    try:
        write(part)
        part.chmod(0o644)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_file(path, lambda part: part.write_text(text, encoding="utf-8"))


@cache
def commit() -> str | None:
    """Return the commit of the source tree this package runs from, if it runs from one."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True, text=True, check=True, timeout=5,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def stamp(scenario: Scenario, **more: Any) -> dict[str, Any]:
    """Return what is needed to run a result again."""
    from psdsim import __version__

    return {
        "psdsim_version": __version__,
        "commit": commit(),
        "scenario": scenario.to_dict(),
        **more,
    }


def to_json(data: Any) -> str:
    """Return strict JSON (NaN and infinities become null)."""
    return json.dumps(_strict(data), indent=2, allow_nan=False) + "\n"


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV; a two-number interval becomes two columns."""
    import pandas as pd

    flat = []
    for row in rows:
        out: dict[str, Any] = {}
        for key, value in row.items():
            if key.endswith("_ci"):
                out[f"{key}_low"], out[f"{key}_high"] = value if value else (None, None)
            elif isinstance(value, list | tuple):
                out[key] = "; ".join(str(item) for item in value)
            else:
                out[key] = value
        flat.append(out)
    return pd.DataFrame(flat).to_csv(index=False)
