"""Field types that the acceptance kinds share, and the check of a draft length."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field

from psdsim.errors import InputError


def _no_bool(value: object) -> object:
    # True would otherwise pass silently as the number 1.
    if isinstance(value, bool | np.bool_):
        raise ValueError(f"{value} is a truth value where a number is expected")
    return value


Probability = Annotated[
    float, BeforeValidator(_no_bool), Field(ge=0.0, le=1.0, allow_inf_nan=False)
]
"""A finite number in [0, 1]; ``True`` and ``False`` are refused."""

NonNegative = Annotated[float, BeforeValidator(_no_bool), Field(ge=0.0, allow_inf_nan=False)]
"""A finite number of at least 0."""

Positive = Annotated[float, BeforeValidator(_no_bool), Field(gt=0.0, allow_inf_nan=False)]
"""A finite number above 0."""

Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=0)]
"""A whole number of at least 0."""

DraftLength = Annotated[int, BeforeValidator(_no_bool), Field(ge=1)]
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
