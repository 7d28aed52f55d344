"""A fitted acceptance model, and how much better than one rate it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fit:
    """A model with more than one rate, against one rate for all.

    Parameters
    ----------
    p_value
        Of no difference.
    gain
        In log likelihood.
    n_more
        Parameters beyond the one.
    data
        The section of the scenario.
    """

    p_value: float
    gain: float
    n_more: int
    data: dict[str, Any]
