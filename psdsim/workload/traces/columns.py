"""Columns of a trace file as text, with the line each value came from."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from psdsim.errors import InputError, did_you_mean


@dataclass(frozen=True)
class TraceColumns:
    """A trace before it is understood.

    Parameters
    ----------
    path
        The file, for messages.
    values
        Column name to values (text in a CSV, JSON values in JSON lines), shape (n,).
    lines
        Line number of each row, shape (n,).
    """

    path: Path
    values: dict[str, Sequence[Any]]
    lines: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.lines.size)

    def where(self, row: int) -> str:
        """Return the place of a row, for messages."""
        return f"{self.path}: line {self.lines[row]}"

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as finite numbers.

        Raises
        ------
        psdsim.errors.InputError
            For the first value that isn't one.
        """
        raw = self._column(name)
        found = pd.to_numeric(pd.Series(raw, dtype=object), errors="coerce")
        numbers = found.to_numpy(dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(numbers))
        if bad.size:
            raise InputError(
                f"{name} is {raw[int(bad[0])]!r}",
                expected="a number",
                where=self.where(int(bad[0])),
            )
        return numbers

    def tokens(self, name: str, *, least: int) -> NDArray[np.int64]:
        """Return a column as whole numbers of at least `least`."""
        numbers = self.numbers(name)
        bad = np.flatnonzero((numbers != np.floor(numbers)) | (numbers < least))
        if bad.size:
            row = int(bad[0])
            raise InputError(
                f"{name} is {self._column(name)[row]!r}",
                expected=f"a whole number of at least {least}",
                where=self.where(row),
            )
        return numbers.astype(np.int64)

    def _column(self, name: str) -> Sequence[Any]:
        if name not in self.values:
            raise InputError(
                f"the column '{name}' is missing{did_you_mean(name, self.values)}",
                where=f"{self.path}: line 1",
            )
        return self.values[name]

    def drop(self, gone: NDArray[np.bool_]) -> TraceColumns:
        """Return the rows that are not in `gone`."""
        keep = np.flatnonzero(~gone).tolist()
        values: dict[str, Sequence[Any]] = {
            name: [column[i] for i in keep] for name, column in self.values.items()
        }
        return TraceColumns(self.path, values, self.lines[keep])


def open_text(path: Path) -> TextIO:
    """Open a trace, unpacked if it ends in .gz."""
    try:
        if path.suffix == ".gz":
            return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
        return path.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", where=str(path)) from None


def read_csv(path: Path, n_rows: int | None) -> TraceColumns:
    """Read a CSV file by its header, blank lines left out.

    Raises
    ------
    psdsim.errors.InputError
        If it is empty, not text, or a line has more or fewer fields than the header.
    """
    rows: list[list[str]] = []
    lines: list[int] = []
    with open_text(path) as file:
        try:
            reader = csv.reader(file)
            header = next(reader, None)
            if header is None:
                raise InputError("the file is empty", where=str(path))
            names = [name.strip() for name in header]
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(names):
                    raise InputError(
                        f"has {len(cells)} fields (is the file truncated?)",
                        expected=f"{len(names)} as in the header",
                        where=f"{path}: line {reader.line_num}",
                    )
                rows.append(cells)
                lines.append(reader.line_num)
                if n_rows is not None and len(rows) == n_rows:
                    break
        except (UnicodeDecodeError, csv.Error, EOFError, gzip.BadGzipFile) as error:
            raise InputError(f"can't be read: {error}", where=str(path)) from None
    if not rows:
        raise InputError("the file has a header and no rows", where=str(path))
    columns = list(zip(*rows, strict=True))
    return TraceColumns(path, dict(zip(names, columns, strict=True)), np.array(lines))


def read_jsonl(path: Path, n_rows: int | None) -> TraceColumns:
    """Read JSON lines; every line must have the keys of the first.

    Raises
    ------
    psdsim.errors.InputError
        If it is empty, or a line isn't a JSON object or lacks a key.
    """
    names: list[str] = []
    values: list[list[Any]] = []
    lines: list[int] = []
    with open_text(path) as file:
        try:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                record = _object(line, f"{path}: line {number}")
                if not names:
                    names = list(record)
                    values = [[] for _ in names]
                try:
                    for name, column in zip(names, values, strict=True):
                        column.append(record[name])
                except KeyError as error:
                    raise InputError(
                        f"the key {error} is missing",
                        expected="the keys of the first line",
                        where=f"{path}: line {number}",
                    ) from None
                lines.append(number)
                if n_rows is not None and len(lines) == n_rows:
                    break
        except (UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
            raise InputError(f"can't be read: {error}", where=str(path)) from None
    if not lines:
        raise InputError("the file is empty", where=str(path))
    return TraceColumns(path, dict(zip(names, values, strict=True)), np.array(lines))


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line, parse_constant=lambda _: math.nan)
    except json.JSONDecodeError as error:
        raise InputError(
            f"is not JSON (is the file truncated?): {error.msg}", where=where
        ) from None
    if not isinstance(record, dict):
        raise InputError(f"is a {type(record).__name__}", expected="a JSON object", where=where)
    return record
