"""Domain checks shared by the closed forms: arrays in, arrays out, one clear sentence on error."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psdsim.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def _array(name: str, value: ArrayLike) -> NDArray[Any]:
    found = np.asarray(value)
    if found.dtype == np.bool_ or not np.issubdtype(found.dtype, np.number):
        raise InputError(f"{name} is {value!r}", expected="a number")
    if np.iscomplexobj(found):
        raise InputError(f"{name} is complex", expected="a real number")
    return found


def real(name: str, value: ArrayLike) -> FloatArray:
    """Return ``value`` as finite float64."""
    found = _array(name, value).astype(np.float64)
    if not np.all(np.isfinite(found)):
        raise InputError(f"{name} is not finite", expected="a finite number")
    return found


def between(
    name: str, value: ArrayLike, low: float, high: float, *, open_low: bool = False
) -> FloatArray:
    """Return ``value`` as float64 inside ``[low, high]`` (``(low, high]`` if ``open_low``)."""
    found = real(name, value)
    too_low = found <= low if open_low else found < low
    if np.any(too_low | (found > high)):
        bad = found[too_low | (found > high)].flat[0]
        left = "(" if open_low else "["
        raise InputError(f"{name} is {bad:g}", expected=f"a number in {left}{low:g}, {high:g}]")
    return found


def probability(name: str, value: ArrayLike) -> FloatArray:
    """Return ``value`` as float64 inside [0, 1]."""
    return between(name, value, 0.0, 1.0)


def nonnegative(name: str, value: ArrayLike) -> FloatArray:
    """Return ``value`` as float64, at least 0."""
    found = real(name, value)
    if np.any(found < 0):
        raise InputError(f"{name} is {found[found < 0].flat[0]:g}", expected="at least 0")
    return found


def positive(name: str, value: ArrayLike) -> FloatArray:
    """Return ``value`` as float64, above 0."""
    found = real(name, value)
    if np.any(found <= 0):
        raise InputError(f"{name} is {found[found <= 0].flat[0]:g}", expected="a number above 0")
    return found


def count(name: str, value: ArrayLike, minimum: int = 0) -> IntArray:
    """Return ``value`` as int64, whole and at least ``minimum``."""
    found = real(name, value)
    wrong = (found != np.floor(found)) | (found < minimum)
    if np.any(wrong):
        raise InputError(
            f"{name} is {found[wrong].flat[0]:g}",
            expected=f"a whole number of at least {minimum}",
        )
    return found.astype(np.int64)


def one_count(name: str, value: int, minimum: int = 0) -> int:
    """Return a single whole number of at least ``minimum``."""
    found = count(name, value, minimum)
    if found.ndim:
        raise InputError(f"{name} is an array", expected="a single whole number")
    return int(found)


def law(name: str, value: ArrayLike) -> FloatArray:
    """Return ``value`` as a one-dimensional probability mass function."""
    found = probability(name, value)
    if found.ndim != 1 or found.size == 0:
        raise InputError(f"{name} has shape {found.shape}", expected="a one-dimensional law")
    if abs(float(found.sum()) - 1.0) > 1e-9:
        raise InputError(
            f"{name} sums to {found.sum():.12g}", expected="probabilities that sum to 1"
        )
    return found


def give(value: Any) -> FloatArray:
    """Return arrays as they are and zero-dimensional ones as NumPy scalars."""
    return cast("FloatArray", np.asarray(value)[()])


def give_counts(value: Any) -> IntArray:
    """Return whole numbers like `give`."""
    return cast("IntArray", np.asarray(value)[()])


def chain_rates(
    alpha: float, alpha_after_reject: float | None, alpha_at_start: float | None
) -> tuple[float, float, float]:
    """Return P(accept) after an accepted token, after a rejected one (None: the same) and first.

    None at the start is as after a rejection.
    """
    a = float(probability("alpha", alpha))
    after = a if alpha_after_reject is None else alpha_after_reject
    a0 = float(probability("alpha_after_reject", after))
    first = a0 if alpha_at_start is None else float(probability("alpha_at_start", alpha_at_start))
    return a, a0, first
