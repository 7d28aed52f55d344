"""Field types that hardware and latency share: finite numbers that are not truth values."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field


def _no_bool(value: object) -> object:
    # Python counts True as the number 1, so a stray `yes` in a YAML file would pass as 1 second.
    if isinstance(value, bool):
        raise ValueError(f"{value} is a truth value where a number is expected")
    return value


NonNegative = Annotated[float, BeforeValidator(_no_bool), Field(ge=0.0, allow_inf_nan=False)]
"""A finite number of at least 0."""

Positive = Annotated[float, BeforeValidator(_no_bool), Field(gt=0.0, allow_inf_nan=False)]
"""A finite number above 0."""

Efficiency = Annotated[float, BeforeValidator(_no_bool), Field(gt=0.0, le=1.0, allow_inf_nan=False)]
"""A share of a data-sheet figure that is reached, in (0, 1]."""

Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=0)]
"""A whole number of at least 0."""

PositiveCount = Annotated[int, BeforeValidator(_no_bool), Field(ge=1)]
"""A whole number of at least 1."""
