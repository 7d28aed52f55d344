"""Independent acceptance with one rate: stated, or solved from a mean acceptance length."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from psdsim.acceptance.base import TapeModel
from psdsim.acceptance.convert import alpha_from_acceptance_length
from psdsim.acceptance.fields import DraftLength, NonNegative, Probability, check_draft_length
from psdsim.acceptance.law import BoolArray, FloatArray, IntArray


class IidAcceptance(TapeModel):
    """Every draft is accepted with probability alpha, whatever came before (Leviathan 2023).

    Examples
    --------
    >>> model = IidAcceptance(alpha=0.5)
    >>> model.acceptance_length(2), model.pmf(2).tolist()
    (1.75, [0.5, 0.25, 0.25])
    """

    kind: Literal["iid"] = Field("iid", description="Independent drafts of one rate.")
    alpha: Probability = Field(description="P(a draft is accepted, given that all before it were).")

    def conditional_rates(self, k: int) -> FloatArray:
        """Return alpha k times, shape (k,)."""
        check_draft_length(k)
        return np.full(k, self.alpha)

    def accept_bits(self, u: FloatArray, row_start: IntArray, request_u: FloatArray) -> BoolArray:
        """Return u < alpha."""
        return np.asarray(u < self.alpha)


class MeanLengthAcceptance(TapeModel):
    """The i.i.d. model whose mean acceptance length at a stated k is the measured one.

    Examples
    --------
    >>> model = MeanLengthAcceptance(length=3.3616, k=4, includes_bonus=True)
    >>> round(model.alpha, 9)
    0.8
    """

    kind: Literal["mean_length"] = Field(
        "mean_length", description="Solved from a mean acceptance length."
    )
    length: NonNegative = Field(description="Mean tokens per round.")
    k: DraftLength = Field(description="Drafted tokens per round when it was measured.")
    includes_bonus: Annotated[bool, Field(strict=True)] = Field(
        description="Whether the length counts the corrected or bonus token (vLLM: yes; "
        "vLLM before 0.9: no)."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        low, high = (1, self.k + 1) if self.includes_bonus else (0, self.k)
        if not low <= self.length <= high:
            raise ValueError(
                f"length is {self.length:g}, which k={self.k} can't give; expected {low} to {high}"
                + ("" if self.includes_bonus else " without the bonus token")
            )
        return self

    @cached_property
    def alpha(self) -> float:
        """The per-test rate that gives this length at this k."""
        return alpha_from_acceptance_length(self.length + (not self.includes_bonus), self.k)

    def conditional_rates(self, k: int) -> FloatArray:
        """Return alpha k times, shape (k,)."""
        check_draft_length(k)
        return np.full(k, self.alpha)

    def accept_bits(self, u: FloatArray, row_start: IntArray, request_u: FloatArray) -> BoolArray:
        """Return u < alpha."""
        return np.asarray(u < self.alpha)

    def notes(self, k: int) -> list[str]:
        """Say what a mean alone doesn't tell."""
        self.check_k(k)
        text = (
            f"acceptance: i.i.d. alpha = {self.alpha:.4f} solved from a mean length at k={self.k}"
        )
        if k != self.k:
            text += f"; at k={k} it is a guess (position dependence and clustering are lost)"
        return [text]
