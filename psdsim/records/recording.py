"""A run read back from its file: simulated or measured, with whatever parts it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from psdsim.errors import InputError
from psdsim.records.columns import REQUEST_COLUMNS, STEP_COLUMNS
from psdsim.records.rounds import Rounds
from psdsim.records.spans import Span, SpanKind

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Recording:
    """One run.

    Parameters
    ----------
    metadata
        What was run, and on what.
    steps, requests
        `STEP_COLUMNS` and `REQUEST_COLUMNS`, shape (n,) each.
    rounds
        Drafts tested and accepted, in the order of `requests`; None where the file has none.
    spans
        Timeline; empty where the file has none.
    """

    metadata: dict[str, Any]
    steps: Columns
    requests: Columns
    rounds: Rounds | None
    spans: tuple[Span, ...]

    @property
    def partial(self) -> bool:
        """Whether the run was cut short: its requests may lack tokens and finish times."""
        return bool(self.metadata.get("partial", False))


def read_recording(path: Path) -> Recording:
    """Read the JSON lines of a run (`psdsim.records.jsonl.to_lines`).

    Parameters
    ----------
    path
        The file, UTF-8: a line with ``metadata``, then lines of type Step, Request and Span.

    Raises
    ------
    psdsim.errors.InputError
        If it can't be read, or a line is not JSON, lacks a column or holds something else than
        it should; the line is named.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"can't be read: {reason}", where=str(path)) from None
    metadata: dict[str, Any] = {}
    rows: dict[str, list[dict[str, Any]]] = {"Step": [], "Request": [], "Span": []}
    places: dict[str, list[str]] = {"Step": [], "Request": [], "Span": []}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        record = _parse(line, where)
        if "metadata" in record:
            metadata = record["metadata"]
            if not isinstance(metadata, dict):
                raise InputError("metadata is no object", where=where)
            continue
        kind = record.get("type")
        if kind not in rows:
            raise InputError(
                f"type is {kind!r}", expected="'Step', 'Request' or 'Span'", where=where
            )
        missing = [name for name in _WANTED[kind] if name not in record]
        if missing:
            raise InputError(f"the key '{missing[0]}' is missing", where=where)
        rows[kind].append(record)
        places[kind].append(where)
    return Recording(
        metadata,
        _columns(rows["Step"], STEP_COLUMNS, places["Step"]),
        _columns(rows["Request"], REQUEST_COLUMNS, places["Request"]),
        _rounds(rows["Request"], places["Request"]),
        tuple(map(_span, rows["Span"], places["Span"])),
    )


_SPAN_FIELDS = tuple(field.name for field in fields(Span))
_WANTED: dict[str, tuple[str, ...]] = {
    "Step": tuple(STEP_COLUMNS),
    "Request": tuple(REQUEST_COLUMNS),
    "Span": _SPAN_FIELDS,
}


def _parse(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", where=where) from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON that can be read", where=where) from None
    if not isinstance(record, dict):
        raise InputError("is no JSON object", where=where)
    return record


def _number(value: Any, name: str, where: str) -> float | int:
    # null stands for a time that never came.
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name} is {str(value)[:60]!r}", expected="a number", where=where)
    return value


def _columns(rows: list[dict[str, Any]], columns: Mapping[str, str], places: list[str]) -> Columns:
    out: Columns = {}
    for name, dtype in columns.items():
        values = [_number(row[name], name, at) for row, at in zip(rows, places, strict=True)]
        if not dtype.startswith("float"):
            for value, at in zip(values, places, strict=True):
                if value != value or value != int(value) or abs(value) > np.iinfo(dtype).max:
                    raise InputError(f"{name} is {value}", expected="a whole number", where=at)
        out[name] = np.array(values, dtype=dtype)
    return out


def _rounds(rows: list[dict[str, Any]], places: list[str]) -> Rounds | None:
    have = [("tested" in row) + ("accepted" in row) for row in rows]
    if not any(have):
        return None
    tested, accepted = [], []
    for row, n, at in zip(rows, have, places, strict=True):
        if n != 2:
            raise InputError(
                "tested and accepted are not both there",
                expected="both in every Request line, or in none",
                where=at,
            )
        both = [_counts(row[name], name, at) for name in ("tested", "accepted")]
        if both[0].size != both[1].size:
            raise InputError(
                f"tested has {both[0].size} rounds and accepted {both[1].size}", where=at
            )
        if (both[1] > both[0]).any():
            raise InputError("more drafts are accepted than tested in a round", where=at)
        tested.append(both[0])
        accepted.append(both[1])
    return Rounds(tuple(tested), tuple(accepted))


def _counts(value: Any, name: str, where: str) -> NDArray[np.int64]:
    if not isinstance(value, list) or not all(type(x) is int and 0 <= x < 2**31 for x in value):
        raise InputError(
            f"{name} is {str(value)[:60]}", expected="a list of whole numbers", where=where
        )
    return np.array(value, dtype=np.int64)


def _span(row: dict[str, Any], where: str) -> Span:
    if row["kind"] not in get_args(SpanKind):
        raise InputError(
            f"kind is {row['kind']!r}",
            expected="one of " + ", ".join(get_args(SpanKind)),
            where=where,
        )
    for name in _SPAN_FIELDS:
        if name not in ("device", "kind"):
            _number(row[name], name, where)
    return Span(**{name: row[name] for name in _SPAN_FIELDS})
