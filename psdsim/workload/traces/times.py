"""Arrival times of a trace as seconds: dates in all their spellings, or numbers with a unit."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from psdsim.errors import InputError
from psdsim.workload.traces.columns import TraceColumns

UNIT_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Seconds per unit."""
_ZONE = re.compile(r"(?:Z|[+-]\d{2}:?\d{2})$")


def seconds_of_dates(trace: TraceColumns, name: str) -> NDArray[np.float64]:
    """Return ISO 8601 dates as seconds since the first row's.

    Azure's files have seven fractional digits and no zone (2023), or a zone and a fraction that
    whole seconds drop (2024): both are read. A column that mixes dates with and without zone is
    refused, since their distance is unknown.

    Raises
    ------
    psdsim.errors.InputError
        For the first value that isn't such a date.
    """
    raw = pd.Series(trace.values[name], dtype=object).astype(str).str.strip()
    zoned = raw.str.contains(_ZONE).to_numpy()
    mixed = np.flatnonzero(zoned != zoned[0])
    dates = pd.to_datetime(raw, format="ISO8601", utc=True, errors="coerce")
    bad = np.flatnonzero(dates.isna().to_numpy() | raw.str.fullmatch(r"[\d.]+").to_numpy())
    if bad.size:
        row = int(bad[0])
        raise InputError(
            f"{name} is {raw.iloc[row]!r}",
            expected="a date like 2023-11-16 18:17:03.9799600",
            where=trace.where(row),
        )
    if mixed.size:
        raise InputError(
            f"{name} is {raw.iloc[int(mixed[0])]!r}, and dates before it "
            + ("have" if zoned[0] else "have no")
            + " time zone",
            expected="all dates with a zone, or none",
            where=trace.where(int(mixed[0])),
        )
    nanoseconds = dates.dt.as_unit("ns").astype("int64").to_numpy()
    return np.asarray((nanoseconds - nanoseconds.min()) / 1e9)


def seconds_of_numbers(trace: TraceColumns, name: str, unit: str) -> NDArray[np.float64]:
    """Return a numeric column as seconds since its smallest value."""
    numbers = trace.numbers(name)
    # Subtract first: large offsets would cost digits after scaling.
    return np.asarray((numbers - numbers.min()) * UNIT_S[unit])
