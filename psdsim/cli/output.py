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

from psdsim.errors import InputError, did_you_mean
from psdsim.scenario import Scenario

FORMATS = ("table", "json", "csv")


def choose_format(text: str | None, output: Path | None) -> str:
    """Return the format: as asked, else by the ending of the file, else a table.

    Raises
    ------
    psdsim.errors.InputError
        If there is no such format, or the output can't be a file.
    """
    if output is not None:
        check_output(output, "--output")
    if text is not None:
        if text not in FORMATS:
            raise InputError(
                f"found '{text}'{did_you_mean(text, FORMATS)}",
                expected="table, json or csv",
                where="--format",
            )
        return text
    if output is not None and output.suffix in {".json", ".csv"}:
        return output.suffix[1:]
    return "table"


def check_output(path: Path, where: str | None = None) -> None:
    """Refuse, before any work is done, a path at which no file can stand.

    A folder, a device or a pipe is refused: the finished file takes the place of what is there.
    """
    place = path.resolve()
    if place.exists() and not place.is_file():
        kind = "a folder" if place.is_dir() else "no ordinary file"
        raise InputError(f"'{path}' is {kind}", expected="the name of a file", where=where)
    above = next(p for p in place.parents if p.exists())
    if not above.is_dir():
        raise InputError(
            f"'{path}' can't be written: {above} is a file", expected="a folder there", where=where
        )
    if not os.access(above, os.W_OK):
        raise InputError(
            f"'{path}' can't be written: {above} is closed to writing",
            expected="another folder",
            where=where,
        )


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place whole.

    Folders that are missing are made; of a link, what it points to is written.

    Raises
    ------
    psdsim.errors.InputError
        If it can't be written; no part of the file is left behind then.
    """
    check_output(path)
    place = path.resolve()
    part: Path | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".{place.stem[:40]}-", suffix=place.suffix, dir=place.parent
        )
        os.close(handle)
        part = Path(name)
        write(part)
        part.chmod(0o644)
        part.replace(place)
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", where=str(path)) from None
    finally:
        if part is not None:
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
