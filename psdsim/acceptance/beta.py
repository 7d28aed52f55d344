"""Requests differ: each has an acceptance rate of its own, drawn from a Beta distribution."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.linalg import eigh_tridiagonal
from scipy.special import betaincinv

from psdsim.acceptance.base import TapeModel, checked_size
from psdsim.acceptance.fields import Positive, Probability, check_draft_length
from psdsim.acceptance.law import BoolArray, FloatArray, IntArray

_NODES = 200
_LEAST, _MOST = 1e-12, 1e12  # shape parameters that float arithmetic can resolve


class BetaAcceptance(TapeModel):
    """alpha of a request ~ Beta(a, b), the same for all its tokens.

    Give `a` and `b`, or `mean` = a/(a+b) and `concentration` = a+b. `conditional_rates` and `pmf`
    weigh requests equally; where requests have one output length, hard ones take more rounds:
    see `pooled_acceptance_length`.

    Examples
    --------
    >>> model = BetaAcceptance(a=4.0, b=1.0)
    >>> round(model.acceptance_length(5), 7)
    3.9825397
    >>> BetaAcceptance(mean=0.8, concentration=5.0).shape
    (4.0, 1.0)
    """

    kind: Literal["beta"] = Field("beta", description="One rate per request, Beta distributed.")
    a: Positive | None = Field(None, description="First shape parameter.")
    b: Positive | None = Field(None, description="Second shape parameter.")
    mean: Probability | None = Field(None, description="a / (a + b), strictly between 0 and 1.")
    concentration: Positive | None = Field(
        None, description="a + b; the larger, the more alike requests are."
    )

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        shape = self.a is not None and self.b is not None
        moments = self.mean is not None and self.concentration is not None
        names = ("a", "b", "mean", "concentration")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 2 or not (shape or moments):
            found = ", ".join(given) or "neither"
            raise ValueError(f"found {found}; expected a and b, or mean and concentration")
        if moments and self.mean in (0.0, 1.0):
            raise ValueError(f"mean is {self.mean:g}; expected a number strictly between 0 and 1")
        for name, value in zip("ab", self.shape, strict=True):
            if not _LEAST <= value <= _MOST:
                raise ValueError(
                    f"the shape parameter {name} is {value:g}; expected {_LEAST:g} to {_MOST:g} "
                    "(beyond that requests are all alike or all of rate 0 or 1)"
                )
        return self

    @property
    def shape(self) -> tuple[float, float]:
        """The shape parameters (a, b)."""
        if self.a is not None and self.b is not None:
            return self.a, self.b
        assert self.mean is not None
        assert self.concentration is not None
        a = self.mean * self.concentration
        return a, self.concentration - a

    def conditional_rates(self, k: int) -> FloatArray:
        """Return E[alpha^i] / E[alpha^(i-1)] = (a + i - 1) / (a + b + i - 1), shape (k,)."""
        check_draft_length(k)
        a, b = self.shape
        i = np.arange(k)
        return np.asarray((a + i) / (a + b + i))

    def pooled_acceptance_length(self, k: int) -> float:
        """Return 1 / E[1 / E[N | alpha]]: tokens over rounds of equally long requests."""
        check_draft_length(k)
        a, b = self.shape
        alpha, weights = _beta_quadrature(a, b)
        length = np.sum(alpha[:, None] ** np.arange(k + 1), axis=1)
        return float(1.0 / (weights @ (1.0 / length)))

    def sample(self, k: int, size: int, rng: np.random.Generator) -> IntArray:
        """Draw one round of each of ``size`` requests, shape (size,), independent of each other.

        Rounds of one request share its rate: see `sample_requests`.
        """
        return super().sample(k, size, rng)

    def sample_requests(
        self, k: int, n_requests: int, n_rounds: int, rng: np.random.Generator
    ) -> IntArray:
        """Draw a rate for each request and rounds at it, shape (n_requests, n_rounds)."""
        check_draft_length(k)
        shape = (checked_size(n_requests), checked_size(n_rounds))
        alpha = rng.beta(*self.shape, size=shape[0])
        accepted = rng.random((*shape, k)) < alpha[:, None, None]
        return np.asarray(np.cumprod(accepted, axis=-1, dtype=np.int64).sum(axis=-1))

    def accept_bits(self, u: FloatArray, row_start: IntArray, request_u: FloatArray) -> BoolArray:
        """Compare each position with its request's own rate."""
        a, b = self.shape
        alpha = betaincinv(a, b, request_u)
        lengths = np.diff(np.append(row_start, u.size))
        return np.asarray(u < np.repeat(alpha, lengths))

    def notes(self, k: int) -> list[str]:
        """Say which mean acceptance length is meant."""
        self.check_k(k)
        return [
            "acceptance differs between requests: the pooled acceptance length "
            f"({self.pooled_acceptance_length(k):.4g} at k={k}) is below the mean of the "
            f"requests' own ({self.acceptance_length(k):.4g})"
        ]


def _beta_quadrature(a: float, b: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes in [0, 1] and weights (sum 1) for means under Beta(a, b).

    Gauss-Jacobi by the eigenvalues of its recurrence (Golub and Welsch 1969). It never forms
    the Beta function, so it holds for narrow densities, where `scipy.special.roots_jacobi`
    overflows, and for a + b = 1, where that divides by zero.
    """
    n = np.arange(1.0, _NODES)
    s = a + b + 2.0 * n - 2.0
    diagonal = np.concatenate([[(a - b) / (a + b)], (a - b) * (a + b - 2.0) / (s * (s + 2.0))])
    # The general term is 0/0 at n = 1 and a + b = 1; this is its limit.
    first = 4.0 * a * b / ((a + b) ** 2 * (a + b + 1.0))
    m, t = n[1:], s[1:]
    rest = 4.0 * m * (m + b - 1.0) * (m + a - 1.0) * (m + a + b - 2.0)
    rest /= t**2 * (t + 1.0) * (t - 1.0)
    nodes, vectors = eigh_tridiagonal(diagonal, np.sqrt(np.concatenate([[first], rest])))
    alpha = np.clip((nodes + 1.0) / 2.0, 0.0, 1.0)
    return np.asarray(alpha), np.asarray(vectors[0] ** 2)
