"""E[max(D, V)] of a drafting and a verifying phase that start together.

Jensen's inequality makes every jittered barrier slower than the slower mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import ndtr

from analysis._checks import FloatArray, give, nonnegative, positive, real
from psdsim.errors import InputError

Law = Literal["lognormal", "exponential"]


def expected_max_exponential(mean_a: ArrayLike, mean_b: ArrayLike) -> FloatArray:
    """Return E[max(A, B)] of independent exponentials: a + b - ab/(a + b).

    Examples
    --------
    >>> float(expected_max_exponential(1.0, 1.0))
    1.5
    """
    a, b = positive("mean_a", mean_a), positive("mean_b", mean_b)
    return give(a + b - a * b / (a + b))


def expected_max_normal(
    mean_a: ArrayLike, sd_a: ArrayLike, mean_b: ArrayLike, sd_b: ArrayLike
) -> FloatArray:
    """Return E[max(A, B)] of independent normals (Clark 1961, Eq. 2).

    Examples
    --------
    >>> round(float(expected_max_normal(0.0, 1.0, 0.0, 1.0)), 9)   # 1 / sqrt(pi)
    0.564189584
    """
    a, b = real("mean_a", mean_a), real("mean_b", mean_b)
    spread = np.hypot(nonnegative("sd_a", sd_a), nonnegative("sd_b", sd_b))
    safe = np.where(spread > 0, spread, 1.0)
    z = (a - b) / safe
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    mixed = a * ndtr(z) + b * ndtr(-z) + spread * density
    return give(np.where(spread > 0, mixed, np.maximum(a, b)))


def expected_max_lognormal(mean_a: float, cv_a: float, mean_b: float, cv_b: float) -> float:
    """Return E[max(A, B)] of independent lognormals, exactly.

    E[A; A > B] is the mean of A times P(A > B) under A's size-biased law, which shifts ln A by
    its variance; so both halves are normal probabilities.

    Parameters
    ----------
    mean_a, mean_b
        Means, > 0.
    cv_a, cv_b
        Coefficients of variation, >= 0.

    Examples
    --------
    >>> expected_max_lognormal(2.0, 0.0, 1.0, 0.0)
    2.0
    >>> round(expected_max_lognormal(1.0, 0.5, 1.0, 0.5), 6)
    1.261638
    """
    a, b = float(positive("mean_a", mean_a)), float(positive("mean_b", mean_b))
    var_a = float(np.log1p(nonnegative("cv_a", cv_a) ** 2))
    var_b = float(np.log1p(nonnegative("cv_b", cv_b) ** 2))
    spread = float(np.sqrt(var_a + var_b))
    if spread == 0.0:
        return max(a, b)
    # ln A - ln B is normal with this mean; size-biasing A adds var_a, size-biasing B takes var_b.
    gap = np.log(a) - 0.5 * var_a - np.log(b) + 0.5 * var_b
    return float(a * ndtr((gap + var_a) / spread) + b * ndtr(-(gap - var_b) / spread))


def expected_max(
    mean_a: float, cv_a: float, mean_b: float, cv_b: float, law: Law = "lognormal"
) -> float:
    """Return E[max(A, B)] for the jitter laws that a scenario can have.

    Parameters
    ----------
    mean_a, mean_b
        Means, s, >= 0.
    cv_a, cv_b
        Coefficients of variation, >= 0; 0 or 1 where the law is exponential.
    law
        Of both phases.

    Examples
    --------
    >>> expected_max(1.0, 1.0, 1.0, 1.0, "exponential")
    1.5
    >>> expected_max(0.0, 0.0, 2.0, 0.3)
    2.0
    """
    if mean_a == 0.0 or mean_b == 0.0:
        return max(mean_a, mean_b)
    if law == "lognormal":
        return expected_max_lognormal(mean_a, cv_a, mean_b, cv_b)
    for name, cv in (("cv_a", cv_a), ("cv_b", cv_b)):
        if cv not in (0.0, 1.0):
            raise InputError(f"{name} of an exponential is {cv:g}", expected="0 or 1")
    if cv_a and cv_b:
        return float(expected_max_exponential(mean_a, mean_b))
    if not cv_a and not cv_b:
        return max(mean_a, mean_b)
    # One is a constant c: E[max(X, c)] = c + E[(X - c)+] = c + mean exp(-c/mean).
    mean, constant = (mean_a, mean_b) if cv_a else (mean_b, mean_a)
    return float(constant + mean * np.exp(-constant / mean))


def expected_max_by_quadrature(
    survival_a: Callable[[float], float], survival_b: Callable[[float], float], upper: float
) -> tuple[float, float]:
    """Return (E[max], error bound) of independent non-negative times from survival functions.

    E[max] = integral of 1 - F_A F_B over [0, upper]; the slow check of the closed forms.

    Parameters
    ----------
    survival_a, survival_b
        t -> P(time > t).
    upper
        Beyond it both survival functions are negligible.
    """

    def tail(t: float) -> float:
        return 1.0 - (1.0 - survival_a(t)) * (1.0 - survival_b(t))

    value, error = quad(tail, 0.0, upper, limit=500)
    return float(value), float(error)
