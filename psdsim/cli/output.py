"""Writing results: table, JSON or CSV, to the terminal or whole to a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from psdsim.errors import InputError, did_you_mean
from psdsim.records.files import check_output, commit, write_file, write_text
from psdsim.scenario import Scenario

__all__ = [
    "FORMATS",
    "check_output",
    "choose_format",
    "commit",
    "stamp",
    "to_csv",
    "to_json",
    "write_file",
    "write_text",
]

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
