"""Files of recorded rounds: JSON, JSON lines and CSV, told apart by their ending."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from psdsim.errors import InputError

Rounds = tuple[tuple[int, ...], ...]
_Named = tuple[object, tuple[int, ...], str]
"""(name of the request or None, accepted drafts of its rounds, where that was read)."""


def read_rounds(path: Path, k: int) -> Rounds:
    """Return the accepted drafts of every round, one tuple a request.

    ``.json`` holds a list and ``.jsonl`` one entry a line; an entry is a list of counts, or an
    object with the key ``accepted`` (such a list) and, if wanted, ``request``. ``.csv`` has the
    columns ``request`` and ``accepted`` and one row a round. Requests come in ascending order
    where all are named by whole numbers, else as the file has them. The JSON lines of a run
    (`psdsim.records.jsonl`) are read, too: its requests count, the rest is passed over.

    Parameters
    ----------
    path
        The file, UTF-8.
    k
        Drafted tokens per round; no count may exceed it.

    Raises
    ------
    psdsim.errors.InputError
        If the file can't be read, or holds anything else; file and line (or entry) are named.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"can't be read: {reason}", where=str(path)) from None
    ending = path.suffix.lower()
    if ending == ".csv":
        return _in_order(_csv_requests(text, k, str(path)))
    if ending == ".jsonl":
        lines = ((f"{path}: line {i}", line) for i, line in enumerate(text.split("\n"), 1))
        entries = ((_parse(line, where), where) for where, line in lines if line.strip())
        return _in_order(_entry(value, k, where) for value, where in entries if _is_entry(value))
    if ending == ".json":
        data = _parse(text, str(path))
        if not isinstance(data, list):
            raise InputError("the file is not a list", expected="a list of lists", where=str(path))
        return _in_order(_entry(value, k, f"{path}: entry {i}") for i, value in enumerate(data))
    raise InputError(
        f"has the ending '{path.suffix}'", expected=".json, .jsonl or .csv", where=str(path)
    )


def _in_order(requests: Iterable[_Named]) -> Rounds:
    seen: dict[object, tuple[int, ...]] = {}
    rows: list[tuple[object, tuple[int, ...]]] = []
    for name, row, where in requests:
        if name is not None and name in seen:
            raise InputError(f"request {name} stands twice", where=where)
        seen[name] = row
        rows.append((name, row))
    numbers = [name for name, _ in rows if isinstance(name, int)]
    if len(numbers) == len(rows):
        return tuple(row for _, row in sorted(zip(numbers, (r for _, r in rows), strict=True)))
    return tuple(row for _, row in rows)


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", where=where) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets without end
        raise InputError("is not JSON that can be read", where=where) from None


def _is_entry(value: Any) -> bool:
    """Say whether a line speaks of a request, not of a run, a step or a bar of its timeline."""
    if not isinstance(value, dict):
        return True
    return "metadata" not in value and value.get("type") not in ("Step", "Span")


def _entry(value: Any, k: int, where: str) -> _Named:
    name: object = None
    if isinstance(value, dict):
        own = "request_id" if value.get("type") == "Request" else "request"
        name, value = value.get(own), value.get("accepted")
        if isinstance(name, bool) or not isinstance(name, int | str | None):
            raise InputError(
                f"request is {str(name)[:60]}", expected="a whole number or a name", where=where
            )
    if not isinstance(value, list) or not all(type(x) is int and 0 <= x <= k for x in value):
        found = "no list of accepted drafts" if value is None else str(value)[:60]
        raise InputError(
            f"found {found}", expected=f"a list of whole numbers 0 to {k}", where=where
        )
    return name, tuple(value), where


def _csv_requests(text: str, k: int, path: str) -> Iterator[_Named]:
    rows: dict[int | str, list[int]] = {}
    try:
        for request, accepted, where in _csv_rows(text, path):
            value = _digits(accepted)
            if value is None or value > k:
                raise InputError(
                    f"accepted is {accepted!r}", expected=f"a whole number 0 to {k}", where=where
                )
            name = _digits(request)
            rows.setdefault(request if name is None else name, []).append(value)
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", where=path) from None
    for key, counts in rows.items():
        yield key, tuple(counts), path


def _csv_rows(text: str, path: str) -> Iterator[tuple[str, str, str]]:
    reader = csv.reader(text.replace("\r\n", "\n").split("\n"), strict=True)
    header = [name.strip() for name in next(reader, [])]
    for name in ("request", "accepted"):
        if header.count(name) != 1:
            problem = "is missing" if name not in header else "stands twice"
            raise InputError(f"the column '{name}' {problem}", where=f"{path}: line 1")
    for cells in reader:
        where = f"{path}: line {reader.line_num}"
        if not cells:
            continue
        if len(cells) != len(header):
            raise InputError(
                f"has {len(cells)} fields", expected=f"{len(header)} as in the header", where=where
            )
        record = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
        if not record["request"]:
            raise InputError("request is empty", expected="a number or a name", where=where)
        yield record["request"], record["accepted"], where


def _digits(text: str) -> int | None:
    # isdigit alone also takes superscripts; 15 digits keep int() clear of its length limit.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None
