"""Columns of a trace file, checked as they are asked for; a bad value is told by its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from psdsim.errors import InputError, did_you_mean
from psdsim.workload.lengths import MAX_TOKENS

USED = frozenset(
    {
        "TIMESTAMP", "ContextTokens", "GeneratedTokens",  # Azure
        "Timestamp", "Request tokens", "Response tokens",  # BurstGPT
        "arrived_at", "num_prefill_tokens", "num_decode_tokens",  # Vidur
        "timestamp", "input_length", "output_length", "hash_ids",  # Mooncake, Bailian, timed
        "timestamp_s", "timestamp_ms", "timestamp_us", "timestamp_ns",  # timed JSON lines
        "arrival_time_ns", "input_toks", "output_toks",  # LLMServingSim
    }
)  # fmt: skip
"""Columns that some layout reads; all others are skipped, so they cost no memory."""

MISSING = object()
"""Stands for a key that one line of a JSON-lines file lacks."""


@dataclass(frozen=True)
class TraceColumns:
    """A trace before it is understood.

    Parameters
    ----------
    path
        The file, for messages.
    names
        All column names, in the order of the file.
    values
        The columns of :data:`USED` that are there: a pyarrow array of text (CSV), or a list of
        JSON values (JSON lines).
    n_rows
        How many rows there are, >= 1.
    line_of
        Line of a row counted from 0. Only a message needs it, so it is found by reading the
        file once more.
    """

    path: Path
    names: tuple[str, ...]
    values: dict[str, Any]
    n_rows: int
    line_of: Callable[[int], int]

    def where(self, row: int) -> str:
        """Return the place of a row, for messages."""
        return f"{self.path}: line {self.line_of(row)}"

    def column(self, name: str) -> Any:
        """Return a column as it is in the file.

        Raises
        ------
        psdsim.errors.InputError
            If there is none of this name; the closest name is told.
        """
        if name not in self.values:
            raise InputError(
                f"the column '{name}' is missing{did_you_mean(name, self.names)}",
                where=f"{self.path}: line {self.line_of(-1)}",
            )
        return self.values[name]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as finite numbers, shape (n,).

        Raises
        ------
        psdsim.errors.InputError
            For the first value that isn't one.
        """
        numbers = _numbers(self.column(name))
        self.refuse(name, ~np.isfinite(numbers), "a number")
        return numbers

    def tokens(self, name: str, *, least: int = 1) -> NDArray[np.int64]:
        """Return a column as whole numbers from `least` to :data:`MAX_TOKENS`, shape (n,).

        Raises
        ------
        psdsim.errors.InputError
            For the first value that isn't such a number.
        """
        numbers = self.numbers(name)
        bad = (numbers != np.floor(numbers)) | (numbers < least) | (numbers > MAX_TOKENS)
        self.refuse(name, bad, f"a whole number of at least {least} and at most {MAX_TOKENS:.0e}")
        return numbers.astype(np.int64)

    def refuse(self, name: str, bad: NDArray[np.bool_], expected: str) -> None:
        """Raise an InputError for the first row that is `bad`, if there is one."""
        if not bad.any():
            return
        row = int(bad.argmax())
        value = self.column(name)[row]
        if value is MISSING:
            raise InputError(
                f"the key '{name}' is missing",
                expected="the keys of the first line",
                where=self.where(row),
            )
        text = repr(value.as_py() if isinstance(value, pa.Scalar) else value)
        if len(text) > 60:
            text = text[:57] + "..."
        raise InputError(f"{name} is {text}", expected=expected, where=self.where(row))


def _numbers(column: Any) -> NDArray[np.float64]:
    """Return a column as numbers, nan where a value isn't one."""
    if isinstance(column, list):
        return np.array([_of_json(value) for value in column], dtype=np.float64)
    column = pc.utf8_trim_whitespace(column)
    try:
        return np.asarray(pc.cast(column, pa.float64()), dtype=np.float64)
    except pa.ArrowInvalid:
        # Something isn't a number: look at each value, so that the first one can be named.
        return np.array([_of_text(text) for text in column.to_pylist()], dtype=np.float64)


def _of_text(text: str) -> float:
    try:
        # Python would take 1_000 as a thousand; a trace that has it is something else.
        return float("nan" if "_" in text or not text.isascii() else text)
    except ValueError:
        return float("nan")


def _of_json(value: Any) -> float:
    # By exact type: true is an int to Python, and "7" is text.
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return float("inf")
    return float("nan")
