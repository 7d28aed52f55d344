"""What a result is when it is not exact: an approximation or a bound, told by its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from analysis._checks import FloatArray
from psdsim.errors import InputError

Number: TypeAlias = "float | FloatArray"


class AssumptionError(InputError):
    """An assumption that a formula rests on does not hold for its inputs."""


@dataclass(frozen=True)
class Approximation:
    """A value that is near the truth.

    Parameters
    ----------
    value
        The approximate number, or an array of them.
    error
        Size of the error where it is known, relative to the truth; ``None`` where it is not.
    how
        One sentence: what was neglected, and where the approximation is good.

    Examples
    --------
    >>> Approximation(2.0, 0.01, "the tail beyond 40 standard deviations is dropped").value
    2.0
    """

    value: Number
    error: float | None
    how: str


@dataclass(frozen=True)
class Bound:
    """A value that the truth does not pass.

    Parameters
    ----------
    value
        The bound, or an array of bounds.
    kind
        ``"upper"``: the truth is at most ``value``; ``"lower"``: at least.

    Examples
    --------
    >>> Bound(2.0, "upper").kind
    'upper'
    """

    value: Number
    kind: Literal["upper", "lower"]
