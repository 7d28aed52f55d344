"""From a CSV or JSON-lines file, packed or not, to columns."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import pyarrow as pa
import pyarrow.csv as pa_csv

from psdsim.errors import InputError
from psdsim.workload.traces.columns import MISSING, USED, TraceColumns


@contextmanager
def _bytes_of(path: Path) -> Iterator[BinaryIO]:
    """Open a file, unpacked if it ends in .gz; what goes wrong while reading names the file."""
    try:
        with path.open("rb") as file:
            if path.suffix.lower() == ".gz":
                with gzip.open(file) as unpacked:
                    yield cast(BinaryIO, unpacked)
            else:
                yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"can't be unpacked: {error}", where=str(path)) from None
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", where=str(path)) from None
    except csv.Error as error:
        raise InputError(f"can't be read: {error}", where=str(path)) from None


@contextmanager
def _text_of(path: Path) -> Iterator[TextIO]:
    # utf-8-sig: spreadsheets put a byte-order mark in front, which is no part of the first name.
    # Columns that nobody reads may be in any encoding; pyarrow refuses those that are read.
    with (
        _bytes_of(path) as file,
        io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="") as text,
    ):
        yield text


def read_csv(path: Path, n_rows: int | None) -> TraceColumns:
    """Read a CSV file by its header, blank lines left out.

    Parameters
    ----------
    path
        The file.
    n_rows
        Read at most this many rows from the top; None: all. What comes after isn't looked at.

    Raises
    ------
    psdsim.errors.InputError
        If it is empty, not text, has a column twice, or a line has more or fewer fields than
        the header.
    """
    with _text_of(path) as text:
        names, header_line = _header(path, text)
    with _bytes_of(path) as file:
        source: BinaryIO = file
        if n_rows is not None:
            body = (line for line in file if line.strip(b"\r\n"))
            source = io.BytesIO(b"".join(itertools.islice(body, n_rows + 1)))
        wanted = [name for name in names if name in USED]
        try:
            table = pa_csv.read_csv(
                source,
                # One thread: the simulator may fork its workers after this.
                read_options=pa_csv.ReadOptions(
                    use_threads=False,
                    column_names=list(names),
                    skip_rows=1 if n_rows is not None else header_line,
                ),
                convert_options=pa_csv.ConvertOptions(
                    include_columns=wanted or list(names[:1]),
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            _find_ragged_line(path, len(names))
            raise InputError(f"can't be read: {error}", where=str(path)) from None
    if table.num_rows == 0:
        raise InputError("the file has a header and no rows", where=str(path))
    return TraceColumns(
        path,
        names,
        {name: table.column(name) for name in wanted},
        table.num_rows,
        partial(_csv_line, path),
    )


def _header(path: Path, text: TextIO) -> tuple[tuple[str, ...], int]:
    reader = csv.reader(text)
    cells = next((row for row in reader if row), None)
    if cells is None:
        raise InputError("the file is empty", where=str(path))
    names = tuple(cell.strip() for cell in cells)
    if any("\N{REPLACEMENT CHARACTER}" in name or "\0" in name for name in names):
        raise InputError("can't be read: the first line is not UTF-8 text", where=str(path))
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(
            f"the column '{twice[0]}' is there {names.count(twice[0])} times",
            expected="each column once",
            where=f"{path}: line {reader.line_num}",
        )
    return names, reader.line_num


def _find_ragged_line(path: Path, n_columns: int) -> None:
    with _text_of(path) as text:
        reader = csv.reader(text)
        for cells in reader:
            if cells and len(cells) != n_columns:
                raise InputError(
                    f"has {len(cells)} fields (is the file truncated?)",
                    expected=f"{n_columns} as in the header",
                    where=f"{path}: line {reader.line_num}",
                )


def _csv_line(path: Path, row: int) -> int:
    with _text_of(path) as text:
        reader = csv.reader(text)
        seen = itertools.islice((reader.line_num for cells in reader if cells), row + 1, None)
        return next(seen)


def read_jsonl(path: Path, n_rows: int | None) -> TraceColumns:
    """Read JSON lines; the first line tells the keys, blank lines are left out.

    Of ``hash_ids`` only the number of blocks is kept.

    Parameters
    ----------
    path
        The file.
    n_rows
        Read at most this many rows from the top; None: all. What comes after isn't looked at.

    Raises
    ------
    psdsim.errors.InputError
        If it is empty, or a line isn't a JSON object.
    """
    names: tuple[str, ...] = ()
    values: dict[str, list[Any]] = {}
    count = 0
    with _bytes_of(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            record = _object(line, path, number)
            if not names:
                names = tuple(record)
                values = {name: [] for name in names if name in USED}
            for name, column in values.items():
                value = record.get(name, MISSING)
                column.append(len(value) if name == "hash_ids" and _is_list(value) else value)
            count += 1
            if count == n_rows:
                break
    if not count:
        raise InputError("the file is empty", where=str(path))
    return TraceColumns(path, names, values, count, partial(_jsonl_line, path))


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _jsonl_line(path: Path, row: int) -> int:
    with _bytes_of(path) as file:
        filled = (number for number, line in enumerate(file, 1) if line.strip())
        # Row -1 is the header of a CSV file; here the first line has the names.
        return next(itertools.islice(filled, max(row, 0), None))


def _object(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(
            f"is not JSON (is the file truncated?): {error.msg}", where=f"{path}: line {number}"
        ) from None
    except (RecursionError, ValueError) as error:
        # Nested without end, a number of thousands of digits, or not UTF-8.
        raise InputError(f"can't be read: {error}", where=f"{path}: line {number}") from None
    if not isinstance(record, dict):
        raise InputError(
            f"is a {type(record).__name__}",
            expected="a JSON object",
            where=f"{path}: line {number}",
        )
    return record
