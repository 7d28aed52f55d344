"""Laws of a stage time (a drafting phase, a target pass) as distribution and quantile functions.

Each is a small frozen object with ``cdf(t)``, ``quantile(p)`` and ``tail_quantile(q)``, vectorised;
``breaks`` are the places where its density or the law itself jumps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammainccinv, gammaincinv, ndtr, ndtri

from analysis._checks import FloatArray, nonnegative, positive, probability, real
from psdsim.errors import InputError


def _floats(value: ArrayLike) -> FloatArray:
    return np.asarray(value, dtype=np.float64)


class StageLaw(Protocol):
    """What `analysis.stages_many` asks of a law."""

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Return P(time <= t)."""
        ...

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return the t at which P(time <= t) reaches p."""
        ...

    def tail_quantile(self, q: ArrayLike) -> FloatArray:
        """Return the t beyond which the probability is q; exact for tiny q."""
        ...

    @property
    def breaks(self) -> FloatArray:
        """Return the places where the cdf has a kink or a jump."""
        ...


@dataclass(frozen=True)
class Normal:
    """Normal law of mean ``mean`` and standard deviation ``sd`` > 0.

    Examples
    --------
    >>> float(Normal(2.0, 1.0).cdf(2.0))
    0.5
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        real("mean", self.mean)
        positive("sd", self.sd)

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Return P(time <= t)."""
        return ndtr((_floats(t) - self.mean) / self.sd)

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return the inverse of `cdf`."""
        return np.asarray(self.mean + self.sd * ndtri(_floats(p)))

    def tail_quantile(self, q: ArrayLike) -> FloatArray:
        """Return the t with P(time > t) = q."""
        return np.asarray(self.mean - self.sd * ndtri(_floats(q)))

    @property
    def breaks(self) -> FloatArray:
        """Return nothing: the cdf is smooth."""
        return np.empty(0)


@dataclass(frozen=True)
class Gamma:
    """Gamma law of ``shape`` > 0 and ``scale`` > 0; its mean is their product.

    Examples
    --------
    >>> round(float(Gamma(1.0, 2.0).cdf(2.0)), 9)   # exponential of mean 2: 1 - 1/e
    0.632120559
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        positive("shape", self.shape)
        positive("scale", self.scale)

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Return P(time <= t)."""
        x = np.maximum(_floats(t), 0.0) / self.scale
        return np.asarray(gammainc(self.shape, x))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return the inverse of `cdf`."""
        return np.asarray(self.scale * gammaincinv(self.shape, _floats(p)))

    def tail_quantile(self, q: ArrayLike) -> FloatArray:
        """Return the t with P(time > t) = q."""
        return np.asarray(self.scale * gammainccinv(self.shape, _floats(q)))

    @property
    def breaks(self) -> FloatArray:
        """Return the start of the support."""
        return np.zeros(1)


@dataclass(frozen=True)
class Exponential:
    """Exponential law of mean ``mean`` > 0.

    Examples
    --------
    >>> round(float(Exponential(2.0).cdf(2.0)), 9)   # 1 - 1/e
    0.632120559
    """

    mean: float

    def __post_init__(self) -> None:
        positive("mean", self.mean)

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Return P(time <= t)."""
        x = np.maximum(_floats(t), 0.0)
        return np.asarray(-np.expm1(-x / self.mean))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return the inverse of `cdf`."""
        return np.asarray(-self.mean * np.log1p(-_floats(p)))

    def tail_quantile(self, q: ArrayLike) -> FloatArray:
        """Return the t with P(time > t) = q."""
        return np.asarray(-self.mean * np.log(_floats(q)))

    @property
    def breaks(self) -> FloatArray:
        """Return the start of the support."""
        return np.zeros(1)


@dataclass(frozen=True)
class Uniform:
    """Uniform law on [``low``, ``high``], low < high.

    Examples
    --------
    >>> float(Uniform(10.0, 26.0).cdf(14.0))
    0.25
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not float(real("low", self.low)) < float(real("high", self.high)):
            raise InputError(f"low is {self.low:g} and high {self.high:g}", expected="low < high")

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Return P(time <= t)."""
        share = (_floats(t) - self.low) / (self.high - self.low)
        return np.asarray(np.clip(share, 0.0, 1.0))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return the inverse of `cdf`."""
        return np.asarray(self.low + (self.high - self.low) * _floats(p))

    def tail_quantile(self, q: ArrayLike) -> FloatArray:
        """Return the t with P(time > t) = q."""
        return np.asarray(self.high - (self.high - self.low) * _floats(q))

    @property
    def breaks(self) -> FloatArray:
        """Return both ends."""
        return np.array([self.low, self.high])


@dataclass(frozen=True)
class Empirical:
    """Law on the values that were measured, equally likely unless weighted; one value: constant.

    Parameters
    ----------
    values
        Finite, at least one.
    weights
        As many, >= 0 with a positive sum; equal where they are left out.

    Examples
    --------
    >>> Empirical((10.0, 30.0)).cdf([9.0, 10.0, 30.0]).tolist()
    [0.0, 0.5, 1.0]
    """

    values: tuple[float, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        found = real("values", self.values)
        weight = np.ones(found.size) if self.weights is None else self.weights
        weight = nonnegative("weights", weight)
        if found.size == 0 or found.ndim != 1 or weight.shape != found.shape or weight.sum() <= 0:
            raise InputError(
                f"there are {found.size} values and {weight.size} weights",
                expected="as many weights as values, at least one of them above 0",
            )
        atoms, place = np.unique(found, return_inverse=True)
        mass = np.bincount(place, weights=weight)
        upto = np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])
        upto[-1] = 1.0
        object.__setattr__(self, "_atoms", atoms)
        object.__setattr__(self, "_upto", upto)

    @property
    def breaks(self) -> FloatArray:
        """Return the different values, ascending."""
        return cast("FloatArray", self.__dict__["_atoms"])

    def cdf(self, t: ArrayLike) -> FloatArray:
        """Return P(time <= t)."""
        upto: FloatArray = self.__dict__["_upto"]
        return upto[np.searchsorted(self.breaks, np.asarray(t), side="right")]

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Return the smallest value with P(time <= value) >= p."""
        upto: FloatArray = self.__dict__["_upto"]
        place = np.searchsorted(upto[1:], probability("p", p), side="left")
        return self.breaks[np.minimum(place, self.breaks.size - 1)]

    def tail_quantile(self, q: ArrayLike) -> FloatArray:
        """Return the smallest value with P(time > value) <= q."""
        return self.quantile(1.0 - probability("q", q))
