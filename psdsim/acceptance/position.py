"""Acceptance by position in the drafted block: a table of rates, or a histogram of rounds."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from psdsim.acceptance.base import UNPAIRED, AcceptanceModel, JudgedBy, extension_note
from psdsim.acceptance.convert import conditional_from_unconditional
from psdsim.acceptance.counts import MOST_ROUNDS, unconditional_from_histogram
from psdsim.acceptance.fields import Count, Probability
from psdsim.acceptance.law import FloatArray
from psdsim.errors import InputError

Extend = Literal["refuse", "last"]
"""What to do beyond the measured k: refuse, or repeat the last conditional rate (flagged)."""


class _ByPosition(AcceptanceModel):
    """Shared by the two: conditional rates of the measured positions, and a rule beyond them."""

    judged_by: ClassVar[JudgedBy] = "position"

    extend: Extend = Field("refuse", description="Rule for a k beyond the measured one.")

    def _measured(self) -> FloatArray:
        """Return the conditional rates that were measured, shape (k_measured,)."""
        raise NotImplementedError

    def check_k(self, k: int) -> None:
        """Refuse a k beyond what was measured, unless a rule to extend is named."""
        super().check_k(k)
        n = self._measured().size
        if k > n and self.extend == "refuse":
            raise InputError(
                f"acceptance was measured at k={n} and k={k} is asked for",
                expected=f"k of at most {n}, or extend: last",
                where="acceptance.extend",
            )

    def conditional_rates(self, k: int) -> FloatArray:
        """Return the rates of the first k positions, shape (k,)."""
        self.check_k(k)
        rates = self._measured()
        if k <= rates.size:
            return rates[:k]
        return np.concatenate([rates, np.full(k - rates.size, rates[-1])])

    def notes(self, k: int) -> list[str]:
        """Say how the table was extended and that runs are not paired."""
        self.check_k(k)
        return [*extension_note(k, self._measured().size), UNPAIRED]


class PositionAcceptance(_ByPosition):
    """A rate per position, conditional or unconditional; which one must be said.

    Examples
    --------
    >>> vllm = PositionAcceptance(rates=(0.8, 0.4, 0.3), convention="unconditional")
    >>> vllm.conditional_rates(2).tolist(), round(vllm.acceptance_length(3), 12)
    ([0.8, 0.5], 2.5)
    """

    kind: Literal["position"] = Field("position", description="A rate per drafted position.")
    rates: tuple[Probability, ...] = Field(
        min_length=1, description="Rates of positions 1, 2, ..., k."
    )
    convention: Literal["conditional", "unconditional"] = Field(
        description="conditional: given that all before were accepted; unconditional: accepted "
        "together with all before (vLLM's per-position acceptance rate)."
    )

    @model_validator(mode="after")
    def _non_increasing(self) -> Self:
        if self.convention == "unconditional":
            try:
                conditional_from_unconditional(self.rates)
            except InputError as error:
                raise ValueError(str(error)) from None
        return self

    def _measured(self) -> FloatArray:
        rates = np.array(self.rates, dtype=np.float64)
        return rates if self.convention == "conditional" else conditional_from_unconditional(rates)


class HistogramAcceptance(_ByPosition):
    """Counts of rounds by accepted drafts 0, 1, ..., k.

    Examples
    --------
    >>> HistogramAcceptance(counts=(5, 1, 2, 2)).pmf(3).round(12).tolist()
    [0.5, 0.1, 0.2, 0.2]
    """

    kind: Literal["histogram"] = Field("histogram", description="Rounds by accepted drafts.")
    counts: tuple[Count, ...] = Field(
        min_length=2, description="Rounds with 0, 1, ..., k accepted drafts."
    )

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not sum(self.counts):
            raise ValueError("all counts are 0")
        if sum(self.counts) > MOST_ROUNDS:
            raise ValueError(f"the counts sum to {sum(self.counts):.3g}; expected at most 2^53")
        return self

    def _measured(self) -> FloatArray:
        return conditional_from_unconditional(unconditional_from_histogram(self.counts))
