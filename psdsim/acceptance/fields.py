"""Field types that the acceptance kinds share, and the check of a draft length."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field

from psdsim.errors import InputError


def _only_numbers(value: object) -> object:
    # True would otherwise pass silently as the number 1.
    if isinstance(value, bool | np.bool_):
        raise ValueError(f"{value} is a truth value where a number is expected")
    # Pydantic would read the number out of a text.
    if isinstance(value, str):
        raise ValueError(f"{value!r} is a text where a number is expected")
    return value


Probability = Annotated[
    float, Field(ge=0.0, le=1.0, allow_inf_nan=False), BeforeValidator(_only_numbers)
]
"""A finite number in [0, 1]; truth values and texts are refused."""

NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False), BeforeValidator(_only_numbers)]
"""A finite number of at least 0."""

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False), BeforeValidator(_only_numbers)]
"""A finite number above 0."""

Count = Annotated[int, Field(ge=0), BeforeValidator(_only_numbers)]
"""A whole number of at least 0."""

DraftLength = Annotated[int, Field(ge=1), BeforeValidator(_only_numbers)]
"""A draft length k at which something was measured, at least 1 token."""


def check_draft_length(k: object, *, least: int = 0) -> None:
    """Refuse anything that is not a whole number of tokens of at least ``least``.

    Parameters
    ----------
    k
        Drafted tokens per round.
    least
        Smallest value allowed (0 where no drafting makes sense, 1 where k divides).

    Raises
    ------
    psdsim.errors.InputError
        If ``k`` is a truth value, not a whole number, or too small.

    Examples
    --------
    >>> check_draft_length(4)
    >>> check_draft_length(-1)
    Traceback (most recent call last):
    ...
    psdsim.errors.InputError: the draft length k is -1; expected a whole number of at least 0
    """
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < least:
        raise InputError(
            f"the draft length k is {k!r}", expected=f"a whole number of at least {least}"
        )
