"""Acceptance with memory: a chain over output positions, or from round to round."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from psdsim.acceptance.base import (
    UNPAIRED,
    AcceptanceModel,
    JudgedBy,
    TapeModel,
    checked_size,
    extension_note,
)
from psdsim.acceptance.fields import Probability, check_draft_length
from psdsim.acceptance.law import (
    BoolArray,
    FloatArray,
    IntArray,
    pmf_from_conditional,
    sample_rounds,
    two_state_path,
)
from psdsim.acceptance.position import Extend
from psdsim.errors import InputError


class MarkovAcceptance(TapeModel):
    """Two-state chain over output positions: with after_accept > after_reject, rejections cluster.

    Each output position is easy or hard for the drafter; a bit says whether a draft placed there
    would be accepted, and depends on the bit before it. The position of a corrected token has
    bit 0; that of a bonus token has a bit of its own, which nobody sees.

    Examples
    --------
    >>> round(MarkovAcceptance(after_accept=0.8, after_reject=0.8).acceptance_length(4), 10)
    3.3616
    """

    kind: Literal["markov"] = Field("markov", description="Two-state chain over positions.")
    after_accept: Probability = Field(description="P(accept | the position before accepts).")
    after_reject: Probability = Field(description="P(accept | the position before rejects).")

    @model_validator(mode="after")
    def _mixes(self) -> Self:
        if self.after_accept == 1.0 and self.after_reject == 0.0:
            raise ValueError(
                "after_accept is 1 and after_reject is 0: the chain never leaves a state"
            )
        return self

    @property
    def stationary(self) -> float:
        """P(accept) of a position far from the start."""
        return self.after_reject / (1.0 - self.after_accept + self.after_reject)

    def _start(self, k: int) -> float:
        """Return P(the position before a round's start accepts), rounds being stationary."""
        a1, a0 = self.after_accept, self.after_reject
        if k == 0:
            return self.stationary
        full_0, full_1 = a0 * a1 ** (k - 1), a1**k
        # A full round leaves the bonus position behind, whose bit is 1 with a1.
        return full_0 * a1 / (1.0 - a1 * (full_1 - full_0))

    def conditional_rates(self, k: int) -> FloatArray:
        """Return the rates of a stationary serial round, shape (k,); only the first differs."""
        check_draft_length(k)
        rates = np.full(k, self.after_accept)
        if k:
            after = self._start(k)
            rates[0] = after * self.after_accept + (1.0 - after) * self.after_reject
        return rates

    def accept_bits(self, u: FloatArray, row_start: IntArray, request_u: FloatArray) -> BoolArray:
        """Follow the chain along each row, started in stationarity."""
        after_true = u < self.after_accept
        after_false = u < self.after_reject
        first = u[row_start] < self.stationary
        after_true[row_start] = first
        after_false[row_start] = first
        return two_state_path(after_false, after_true)

    def sample(self, k: int, size: int, rng: np.random.Generator) -> IntArray:
        """Draw successive rounds with their memory, shape (size,)."""
        check_draft_length(k)
        size = checked_size(size)
        if k == 0:
            return np.zeros(size, dtype=np.int64)
        a1, a0 = self.after_accept, self.after_reject
        rates = np.full((2, k), a1)
        rates[:, 0] = (a0, a1)
        u = rng.random(2 * size + 1)
        return sample_rounds(pmf_from_conditional(rates), (a1, a1), self._start(k), u)


class MarkovRoundsAcceptance(AcceptanceModel):
    """Rates by position, and by whether the round before was fully accepted.

    Examples
    --------
    >>> model = MarkovRoundsAcceptance(after_full=(0.9,), otherwise=(0.6,))
    >>> round(model.acceptance_length(1), 10)   # full share 0.6 / (1 - 0.9 + 0.6)
    1.8571428571
    """

    judged_by: ClassVar[JudgedBy] = "rounds"

    kind: Literal["markov_rounds"] = Field(
        "markov_rounds", description="Conditional rates by the fate of the round before."
    )
    after_full: tuple[Probability, ...] = Field(
        min_length=1, description="Rates after a fully accepted round."
    )
    otherwise: tuple[Probability, ...] = Field(min_length=1, description="Rates after any other.")
    extend: Extend = Field("refuse", description="Rule for a k beyond the measured one.")

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if len(self.after_full) != len(self.otherwise):
            raise ValueError(
                f"after_full has {len(self.after_full)} rates and otherwise {len(self.otherwise)}"
            )
        return self

    def check_k(self, k: int) -> None:
        """Refuse a k beyond what was measured, unless a rule to extend is named."""
        super().check_k(k)
        n = len(self.otherwise)
        if k > n and self.extend == "refuse":
            raise InputError(
                f"acceptance was measured at k={n} and k={k} is asked for",
                expected=f"k of at most {n}, or extend: last",
                where="acceptance.extend",
            )

    def conditional_rates_after(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Return the rates (after a full round, after any other), shape (k,) each."""
        self.check_k(k)

        def cut(rates: tuple[float, ...]) -> FloatArray:
            values = np.array(rates[:k], dtype=np.float64)
            return np.concatenate([values, np.full(k - values.size, rates[-1])])

        return cut(self.after_full), cut(self.otherwise)

    def _share_after_full(self, k: int) -> float:
        full, other = (float(np.prod(rates)) for rates in self.conditional_rates_after(k))
        if full == 1.0 and other == 0.0:
            raise InputError("the chain of rounds never leaves a state", where="acceptance")
        return other / (1.0 - full + other)

    def conditional_rates(self, k: int) -> FloatArray:
        """Return the rates of a stationary round, shape (k,)."""
        full, other = self.conditional_rates_after(k)
        share = self._share_after_full(k) if k else 0.0
        reach = share * np.cumprod(full) + (1.0 - share) * np.cumprod(other)
        before = np.concatenate([[1.0], reach])[:k]
        return np.asarray(np.divide(reach, before, out=np.zeros(k), where=before > 0.0))

    def sample(self, k: int, size: int, rng: np.random.Generator) -> IntArray:
        """Draw successive rounds with their memory, shape (size,)."""
        self.check_k(k)
        size = checked_size(size)
        if k == 0:
            return np.zeros(size, dtype=np.int64)
        full, other = self.conditional_rates_after(k)
        pmf = pmf_from_conditional(np.stack([other, full]))
        start = self._share_after_full(k)
        return sample_rounds(pmf, (1.0, 1.0), start, rng.random(2 * size + 1))

    def notes(self, k: int) -> list[str]:
        """Say how the table was extended and that runs are not paired."""
        self.check_k(k)
        return [*extension_note(k, len(self.otherwise)), UNPAIRED]
