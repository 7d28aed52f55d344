"""Prompt and output lengths: a constant, a lognormal law, or an empirical table."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

MAX_TOKENS = 1_000_000_000
"""Longest prompt or output taken seriously; anything above is a unit or column mix-up."""

TokenCount = Annotated[int, Field(strict=True, ge=1, le=MAX_TOKENS)]
PositiveFloat = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class LognormalLengths(BaseModel):
    """Lognormal token counts with a stated mean and coefficient of variation.

    A draw is rounded to the nearest whole token, then clipped to ``[1, max]``: the mean and
    CV asked for are those *before* rounding and clipping. With sigma^2 = ln(1 + cv^2) and
    mu = ln(mean) - sigma^2/2 the unclipped mean is exactly ``mean``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["lognormal"] = Field("lognormal", description="Which law of lengths this is.")
    mean: float = Field(
        strict=True,
        ge=1,
        le=MAX_TOKENS,
        allow_inf_nan=False,
        description="Mean length before rounding and clipping, tokens.",
    )
    cv: float = Field(
        strict=True,
        ge=0,
        le=100,
        allow_inf_nan=False,
        description="Standard deviation / mean before rounding and clipping.",
    )
    max: TokenCount | None = Field(
        None, description="Longer draws are cut to this many tokens; null: no limit."
    )

    @model_validator(mode="after")
    def _mean_is_reachable(self) -> LognormalLengths:
        if self.max is not None and self.max < self.mean:
            raise ValueError(f"mean {self.mean:g} is above max {self.max}: no draw could reach it")
        return self


class EmpiricalLengths(BaseModel):
    """Token counts drawn with replacement from a list, with optional weights."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["empirical"] = Field("empirical", description="Which law of lengths this is.")
    values: tuple[TokenCount, ...] = Field(
        min_length=1, description="The lengths that occur, tokens."
    )
    weights: tuple[Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)], ...] | None = (
        Field(None, description="How often each occurs (any positive scale); null: equally often.")
    )

    @model_validator(mode="after")
    def _weights_fit_values(self) -> EmpiricalLengths:
        if self.weights is None:
            return self
        if len(self.weights) != len(self.values):
            raise ValueError(f"{len(self.weights)} weights for {len(self.values)} values")
        total = sum(self.weights)
        if not 0 < total < math.inf:
            raise ValueError(f"the weights add up to {total:g}, which is not a positive number")
        return self


def _length_kind(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("kind"))
    return str(getattr(value, "kind", "constant"))


# A named tag for each branch, so that a wrong value gets one message and not one for each branch.
Lengths = Annotated[
    Annotated[TokenCount, Tag("constant")]
    | Annotated[LognormalLengths, Tag("lognormal")]
    | Annotated[EmpiricalLengths, Tag("empirical")],
    Discriminator(
        _length_kind,
        custom_error_type="length_kind",
        custom_error_message=(
            "expected a whole number of tokens, or a mapping with kind: lognormal or empirical"
        ),
    ),
]
"""An int (constant), :class:`LognormalLengths` or :class:`EmpiricalLengths`."""


def draw_lengths(
    lengths: int | LognormalLengths | EmpiricalLengths, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw ``n`` token counts.

    Parameters
    ----------
    lengths
        The law; see :data:`Lengths`.
    n
        How many, >= 0.
    rng
        Source of randomness; untouched when the length is constant. The first ``m`` of ``n``
        draws are the draws of ``n = m``.

    Returns
    -------
    ndarray of int64, shape (n,)
        Tokens, each at least 1.

    Examples
    --------
    >>> draw_lengths(256, 3, np.random.default_rng(0)).tolist()
    [256, 256, 256]
    >>> draw_lengths(LognormalLengths(mean=100, cv=0.0), 2, np.random.default_rng(0)).tolist()
    [100, 100]
    """
    if isinstance(lengths, LognormalLengths):
        sigma2 = math.log1p(lengths.cv**2)
        mu = math.log(lengths.mean) - sigma2 / 2
        drawn = np.exp(mu + math.sqrt(sigma2) * rng.standard_normal(n))
        upper = MAX_TOKENS if lengths.max is None else lengths.max
        return np.clip(np.rint(drawn), 1, upper).astype(np.int64)
    if isinstance(lengths, EmpiricalLengths):
        values = np.asarray(lengths.values, dtype=np.int64)
        weights = np.ones(len(values)) if lengths.weights is None else np.asarray(lengths.weights)
        edges = np.cumsum(weights / weights.sum())
        index = np.searchsorted(edges, rng.random(n), side="right")
        # Rounding can leave the last edge below 1; a uniform above it belongs to the last
        # value that has any weight.
        last = int(np.flatnonzero(weights)[-1])
        return values[np.minimum(index, last)]
    return np.full(n, lengths, dtype=np.int64)


def length_note(
    name: str, lengths: int | LognormalLengths | EmpiricalLengths, drawn: NDArray[np.int64]
) -> str | None:
    """Say how many lognormal draws were cut at ``max``; ``None`` if there were none."""
    if not isinstance(lengths, LognormalLengths) or lengths.max is None:
        return None
    n_cut = int(np.count_nonzero(drawn == lengths.max))
    if n_cut == 0:
        return None
    return (
        f"{name}: {n_cut} of {len(drawn)} lognormal draws lie at or above max {lengths.max}; "
        f"drawn mean {drawn.mean():.1f}, asked for {lengths.mean:g}"
    )
