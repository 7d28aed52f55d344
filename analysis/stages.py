"""E[max(D, V)] of a drafting and a verifying phase that start together.

Jensen's inequality makes every jittered barrier slower than the slower mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betainc, ndtr

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


def _clark(
    mean_a: ArrayLike,
    sd_a: ArrayLike,
    mean_b: ArrayLike,
    sd_b: ArrayLike,
    covariance: ArrayLike,
) -> tuple[FloatArray, ...]:
    """Return means, sds, theta, and (Phi, 1 - Phi, phi) at Clark's (mu_A - mu_B)/theta."""
    a, b = real("mean_a", mean_a), real("mean_b", mean_b)
    s, t = nonnegative("sd_a", sd_a), nonnegative("sd_b", sd_b)
    common = real("covariance", covariance)
    if np.any(np.abs(common) > s * t * (1.0 + 1e-12)):
        raise InputError("covariance is beyond sd_a * sd_b", expected="a possible covariance")
    # (s - t)^2 + 2 (s t - cov) is s^2 + t^2 - 2 cov without cancelling below 0.
    spread = np.sqrt((s - t) ** 2 + 2.0 * np.maximum(s * t - common, 0.0))
    safe = np.where(spread > 0, spread, 1.0)
    # Where nothing varies between them, the greater mean wins (half and half at a tie).
    z = np.where(spread > 0, (a - b) / safe, np.inf * np.sign(a - b + (a == b)))
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return a, s, b, t, spread, ndtr(z), ndtr(-z), density


def expected_max_normal(
    mean_a: ArrayLike,
    sd_a: ArrayLike,
    mean_b: ArrayLike,
    sd_b: ArrayLike,
    covariance: ArrayLike = 0.0,
) -> FloatArray:
    """Return E[max(A, B)] of two normals (Clark 1961, Eq. 2).

    Parameters
    ----------
    mean_a, mean_b
        Means, any real number.
    sd_a, sd_b
        Standard deviations, >= 0.
    covariance
        Of A and B; 0 where they are independent.

    Examples
    --------
    >>> round(float(expected_max_normal(0.0, 1.0, 0.0, 1.0)), 9)   # 1 / sqrt(pi)
    0.564189584
    """
    a, _, b, _, spread, wins, loses, density = _clark(mean_a, sd_a, mean_b, sd_b, covariance)
    return give(a * wins + b * loses + spread * density)


def variance_max_normal(
    mean_a: ArrayLike,
    sd_a: ArrayLike,
    mean_b: ArrayLike,
    sd_b: ArrayLike,
    covariance: ArrayLike = 0.0,
) -> FloatArray:
    """Return Var[max(A, B)] of two normals from Clark's second moment (note 4.2), centred.

    Parameters
    ----------
    mean_a, sd_a, mean_b, sd_b, covariance
        As in `expected_max_normal`.

    Examples
    --------
    >>> round(float(variance_max_normal(0.0, 1.0, 0.0, 1.0)), 9)   # 1 - 1/pi
    0.681690114
    >>> round(float(variance_max_normal(18.0, 3.0, 20.0, 2.0)), 7)
    3.7113852
    """
    a, s, b, t, spread, wins, loses, density = _clark(mean_a, sd_a, mean_b, sd_b, covariance)
    # About the mean of A, so that large means don't cancel.
    gap = b - a
    first = gap * loses + spread * density
    second = s**2 * wins + (gap**2 + t**2) * loses + gap * spread * density
    return give(np.maximum(second - first**2, 0.0))


def expected_max_gamma(
    shape_a: ArrayLike, scale_a: ArrayLike, shape_b: ArrayLike, scale_b: ArrayLike
) -> FloatArray:
    """Return E[max(A, B)] of independent gamma times, exactly.

    E[A; A > B] is the mean of A times P(A' > B) with A' of one more shape (A's size-biased law),
    and P(A' > B) is an incomplete beta function (own derivation).

    Parameters
    ----------
    shape_a, scale_a, shape_b, scale_b
        > 0; they broadcast. A mean is shape times scale.

    Examples
    --------
    >>> float(expected_max_gamma(1.0, 1.0, 1.0, 1.0))   # exponentials
    1.5
    >>> round(float(expected_max_gamma(9.0, 2.0, 16.0, 1.25)), 6)
    22.208189
    """
    a, b = positive("shape_a", shape_a), positive("shape_b", shape_b)
    s, t = positive("scale_a", scale_a), positive("scale_b", scale_b)
    wins = betainc(b, a + 1.0, s / (s + t))
    loses = betainc(a, b + 1.0, t / (s + t))
    return give(a * s * wins + b * t * loses)


def expected_max_uniform(
    low_a: ArrayLike, high_a: ArrayLike, low_b: ArrayLike, high_b: ArrayLike
) -> FloatArray:
    """Return E[max(A, B)] of independent uniform times, exactly (theory note 4.2).

    It is E[A] + E[(B - A)+], the second integral of the joint density: four cubes.

    Parameters
    ----------
    low_a, high_a, low_b, high_b
        Ends, low < high.

    Examples
    --------
    >>> round(float(expected_max_uniform(10.0, 26.0, 15.0, 25.0)), 7)
    21.3854167
    """
    a0, a1 = real("low_a", low_a), real("high_a", high_a)
    b0, b1 = real("low_b", low_b), real("high_b", high_b)
    if np.any(a0 >= a1) or np.any(b0 >= b1):
        raise InputError("an upper end isn't above its lower end", expected="low < high")

    def cube(x: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(x, 0.0) ** 3 / 6.0)

    corners = cube(b1 - a0) - cube(b1 - a1) - cube(b0 - a0) + cube(b0 - a1)
    return give(0.5 * (a0 + a1) + corners / ((a1 - a0) * (b1 - b0)))


def expected_max_empirical(values_a: ArrayLike, values_b: ArrayLike) -> float:
    """Return the mean of max(a, b) over all pairs of measured times, which makes them independent.

    For times that were measured together, take the mean of their maxima instead.

    Parameters
    ----------
    values_a, values_b
        One-dimensional, at least one value each; sorting makes it O(n log n).

    Examples
    --------
    >>> expected_max_empirical([10.0, 30.0], [20.0])
    25.0
    """
    a, b = np.sort(real("values_a", values_a)), np.sort(real("values_b", values_b))
    if a.ndim != 1 or b.ndim != 1 or a.size == 0 or b.size == 0:
        raise InputError("there is no list of values", expected="at least one value each")
    # Of a tie the a counts.
    a_wins = float(a @ np.searchsorted(b, a, side="right"))
    b_wins = float(b @ np.searchsorted(a, b, side="left"))
    return (a_wins + b_wins) / (a.size * b.size)


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
