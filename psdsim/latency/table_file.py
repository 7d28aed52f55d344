"""Step-time tables as CSV files, read by column name."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from psdsim.errors import InputError, did_you_mean

AXES = ("n_seqs", "query_length", "context")
"""Columns of a table: sequences, new tokens a sequence, cached tokens a sequence."""
_TIMES = {"time_s": 1.0, "time_ms": 1e-3, "time_us": 1e-6}


def read_table(path: Path) -> list[tuple[float, float, float, float]]:
    """Return the rows (n_seqs, query_length, context, time_s) of a CSV file.

    Parameters
    ----------
    path
        CSV with a header; ``query_length`` (default 1) and ``context`` (default 0) may be
        missing, the time is ``time_s``, ``time_ms`` or ``time_us``. Other columns are refused
        unless they start with ``note``. Lines that start with # are comments.

    Raises
    ------
    psdsim.errors.InputError
        With file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"can't be read: {reason}", where=str(path)) from None
    lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = [(i, line) for i, line in lines if not line.lstrip().startswith("#")]
    if not lines:
        raise InputError("the file is empty", expected="a header and rows", where=str(path))
    number, first = lines[0]
    header = [name.strip() for name in _cells(first, f"{path}: line {number}")]
    time_column = _check_header(header, f"{path}: line {number}")
    if len(lines) == 1:
        raise InputError("the file has a header and no rows", where=str(path))
    rows = []
    for number, line in lines[1:]:
        where = f"{path}: line {number}"
        cells = _cells(line, where)
        if len(cells) != len(header):
            raise InputError(
                f"has {len(cells)} fields", expected=f"{len(header)} as in the header", where=where
            )
        record = dict(zip(header, cells, strict=True))
        n_seqs = _number(record, "n_seqs", where, 1.0)
        query = _number(record, "query_length", where, 1.0, default=1.0)
        context = _number(record, "context", where, 0.0, default=0.0)
        time_s = _number(record, time_column, where, 0.0) * _TIMES[time_column]
        if time_s <= 0:
            raise InputError(
                f"{time_column} is {record[time_column]}", expected="above 0", where=where
            )
        rows.append((n_seqs, query, context, time_s))
    return rows


def _cells(line: str, where: str) -> list[str]:
    # Line by line: no cell of a table of numbers holds a line break.
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", where=where) from None


def _check_header(header: list[str], where: str) -> str:
    known = [*AXES, *_TIMES]
    for name in header:
        if header.count(name) > 1:
            raise InputError(f"the column '{name}' stands twice", where=where)
        if name not in known and not name.startswith("note"):
            raise InputError(
                f"unknown column '{name}'{did_you_mean(name, known)}",
                expected="one of " + ", ".join(known),
                where=where,
            )
    if "n_seqs" not in header:
        raise InputError("the column 'n_seqs' is missing", where=where)
    times = [name for name in header if name in _TIMES]
    if len(times) != 1:
        raise InputError(
            f"there are {len(times)} time columns", expected="one of time_s, time_ms, time_us",
            where=where,
        )  # fmt: skip
    return times[0]


def _number(
    record: dict[str, str], name: str, where: str, least: float, default: float | None = None
) -> float:
    text = record.get(name)
    if text is None and default is not None:
        return default
    try:
        value = float(str(text))
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < least:
        raise InputError(
            f"{name} is {text!r}", expected=f"a number of at least {least:g}", where=where
        )
    return value
