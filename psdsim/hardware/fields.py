"""Field types that hardware and latency share: finite numbers that are not truth values."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field


def _only_numbers(value: object) -> object:
    # Python counts True as the number 1, so a stray `yes` in a YAML file would pass as 1 second.
    if isinstance(value, bool):
        raise ValueError(f"{value} is a truth value where a number is expected")
    # Pydantic would read the number out of a text.
    if isinstance(value, str):
        raise ValueError(f"{value!r} is a text where a number is expected")
    return value


Number = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_only_numbers)]
"""A finite number."""

NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False), BeforeValidator(_only_numbers)]
"""A finite number of at least 0."""

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False), BeforeValidator(_only_numbers)]
"""A finite number above 0."""

Efficiency = Annotated[
    float, Field(gt=0.0, le=1.0, allow_inf_nan=False), BeforeValidator(_only_numbers)
]
"""A share of a data-sheet figure that is reached, in (0, 1]."""

SlowDownFactor = Annotated[
    float, Field(ge=1.0, le=100.0, allow_inf_nan=False), BeforeValidator(_only_numbers)
]
"""A factor by which something takes longer, in [1, 100]."""

Variation = Annotated[
    float, Field(ge=0.0, le=10.0, allow_inf_nan=False), BeforeValidator(_only_numbers)
]
"""A coefficient of variation, in [0, 10]."""

Count = Annotated[int, Field(ge=0), BeforeValidator(_only_numbers)]
"""A whole number of at least 0."""

PositiveCount = Annotated[int, Field(ge=1), BeforeValidator(_only_numbers)]
"""A whole number of at least 1."""
