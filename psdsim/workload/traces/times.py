"""Arrival times of a trace as seconds: dates in all their spellings, or numbers with a unit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from psdsim.errors import InputError
from psdsim.workload.traces.columns import MISSING, TraceColumns

UNITS_PER_S = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""How many of a unit make a second."""
_ZONE = re.compile(r"(?:Z|:[\d.]+[+-]\d{2}(?::?\d{2})?)$")
_EXPECTED = "a date like 2023-11-16 18:17:03.9799600"


def seconds_of_dates(trace: TraceColumns, name: str) -> NDArray[np.float64]:
    """Return ISO 8601 dates as seconds since the earliest one, shape (n,).

    Azure's files have seven fractional digits and no zone (2023), or a zone and a fraction that
    whole seconds drop (2024): both are read. A column that mixes dates with and without zone is
    refused, since their distance is unknown.

    Raises
    ------
    psdsim.errors.InputError
        For the first value that isn't such a date.
    """
    column = trace.column(name)
    stamps = None if isinstance(column, list) else _same_spelling(column)
    if stamps is None:
        stamps = _any_spelling(trace, name)
    return np.asarray((stamps - stamps.min()) / 1e9)


def _same_spelling(column: Any) -> NDArray[np.int64] | None:
    """Return ns since 1970 if all dates have a zone or none has, else None."""
    text = pc.utf8_trim_whitespace(column)
    for zone in (None, "UTC"):
        try:
            stamps = pc.cast(text, pa.timestamp("ns", zone))
        except pa.ArrowInvalid:
            continue
        return np.asarray(pc.cast(stamps, pa.int64()), dtype=np.int64)
    return None


def _any_spelling(trace: TraceColumns, name: str) -> NDArray[np.int64]:
    """Return ns since 1970, or say which row has what is wrong; slower."""
    column = trace.column(name)
    values = column if isinstance(column, list) else column.to_pylist()
    raw = pd.Series(["" if v is MISSING else str(v).strip() for v in values], dtype=object)
    dates = pd.to_datetime(raw, format="ISO8601", utc=True, errors="coerce")
    bad = dates.isna() | raw.str.fullmatch(r"[\d.]+")
    # Nanoseconds in 64 bits reach from 1678 to 2261; a date beyond is a mistake anyway.
    bad |= (dates.dt.year < 1900) | (dates.dt.year > 2200)
    trace.refuse(name, bad.to_numpy(dtype=bool), _EXPECTED)
    zoned = raw.str.contains(_ZONE).to_numpy(dtype=bool)
    if (zoned != zoned[0]).any():
        row = int((zoned != zoned[0]).argmax())
        raise InputError(
            f"{name} is {raw.iloc[row]!r}, and the dates before it "
            + ("have a time zone" if zoned[0] else "have no time zone"),
            expected="all dates with a zone, or none",
            where=trace.where(row),
        )
    return np.asarray(dates.dt.as_unit("ns").astype("int64"), dtype=np.int64)


def seconds_of_numbers(trace: TraceColumns, name: str, unit: str) -> NDArray[np.float64]:
    """Return a numeric column as seconds since its smallest value, shape (n,).

    Raises
    ------
    psdsim.errors.InputError
        For the first value that isn't a number of at least 0.
    """
    numbers = trace.numbers(name)
    trace.refuse(name, numbers < 0, "a time of at least 0")
    # Subtract first: large offsets would cost digits after scaling. Divide, since 1e3 is exact
    # and 1e-3 isn't.
    return np.asarray((numbers - numbers.min()) / UNITS_PER_S[unit])
