"""Several drafters on one text that is, from stretch to stretch, easy for one or for the other."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from psdsim.acceptance.base import TapeModel
from psdsim.acceptance.fields import Positive, Probability, check_draft_length
from psdsim.acceptance.law import BoolArray, FloatArray, IntArray, two_state_path
from psdsim.errors import InputError

StateRates = tuple[Probability, Probability]


class EnsembleAcceptance(TapeModel):
    """Acceptance rates by drafter and by a hidden two-state chain over output positions (TABED).

    All drafters see the same state and the same uniform at a position, so one with higher rates
    accepts whatever one with lower rates does. A mixture of drafters is one more drafter. What
    the tape gives to schedules that know of one drafter only is drafter 0.

    Examples
    --------
    >>> model = EnsembleAcceptance(rates=((0.8, 0.2), (0.5, 0.5)), second_share=0.25, mean_run=8.0)
    >>> model.n_variants, round(float(model.variant_rates(1, 1)[0]), 12)
    (2, 0.5)
    """

    kind: Literal["ensemble"] = Field("ensemble", description="Several drafters, hidden text.")
    rates: Annotated[tuple[StateRates, ...], Field(min_length=2)] = Field(
        description="Of each drafter (two at least): P(accept) in the first and second state."
    )
    second_share: Probability = Field(description="Share of positions in the second state.")
    mean_run: Positive = Field(
        description="Mean positions that a stretch of the rarer state lasts, >= 1."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.mean_run < 1.0:
            raise ValueError(f"mean_run is {self.mean_run:g}; expected at least 1 position")
        return self

    @property
    def n_variants(self) -> int:
        """Drafters."""
        return len(self.rates)

    @property
    def transition(self) -> FloatArray:
        """P(state of the next position | state), shape (2, 2)."""
        share = self.second_share
        rarer = min(share, 1.0 - share)
        if rarer == 0.0:
            return np.tile([1.0 - share, share], (2, 1))
        # The rarer state is left at 1 / mean_run, the other as often as balance asks.
        leave = np.array([share, 1.0 - share]) / (self.mean_run * (1.0 - rarer))
        return np.array([[1.0 - leave[0], leave[0]], [leave[1], 1.0 - leave[1]]])

    def accept_bits(self, u: FloatArray, row_start: IntArray, request_u: FloatArray) -> BoolArray:
        """Refuse: the state of a position needs uniforms of its own."""
        raise NotImplementedError("use variant_bits")

    def variant_bits(
        self,
        variant: int,
        u: FloatArray,
        row_start: IntArray,
        request_u: FloatArray,
        hidden_u: FloatArray,
    ) -> BoolArray:
        """Compare the uniforms with the rate of the state that the text is in, shape (n,)."""
        second = self.states(row_start, hidden_u)
        first_rate, second_rate = self._of(variant)
        return np.asarray(u < np.where(second, second_rate, first_rate))

    def states(self, row_start: IntArray, hidden_u: FloatArray) -> BoolArray:
        """Return which positions are in the second state; rows start in stationarity."""
        transition = self.transition
        after_first = hidden_u < transition[0, 1]
        after_second = hidden_u < transition[1, 1]
        start = hidden_u[row_start] < self.second_share
        after_first[row_start] = start
        after_second[row_start] = start
        return two_state_path(after_first, after_second)

    def variant_rates(self, variant: int, k: int) -> FloatArray:
        """Return the conditional rates of a stationary serial round of one drafter, shape (k,).

        Rounds do not start in the chain's stationary state: a round of accepted drafts spends
        more positions than one that is rejected at once. With D the rates and T the transition,
        the state at the next start follows sum_j<k (D T)^j (1 - D) T + (D T)^k T.
        """
        check_draft_length(k)
        rates, transition = np.array(self._of(variant)), self.transition
        step = rates[:, None] * transition
        power = np.eye(2)
        kernel = np.zeros((2, 2))
        for _ in range(k):
            kernel += power @ ((1.0 - rates)[:, None] * transition)
            power = power @ step
        kernel += power @ transition
        # Of a two-state chain the stationary law is the ratio of its ways out.
        out = kernel[0, 1] + kernel[1, 0]
        share = kernel[0, 1] / out if out > 0.0 else self.second_share
        here = np.array([1.0 - share, share])
        reach = np.ones(k + 1)
        for i in range(k):
            here = here * rates
            reach[i + 1] = here.sum()
            here = here @ transition
        return np.divide(reach[1:], reach[:-1], out=np.zeros(k), where=reach[:-1] > 0.0)

    def conditional_rates(self, k: int) -> FloatArray:
        """Return those of drafter 0."""
        return self.variant_rates(0, k)

    def variant_length(self, variant: int, k: int) -> float:
        """Return the acceptance length of one drafter alone, bonus included, in [1, k + 1]."""
        return 1.0 + float(np.cumprod(self.variant_rates(variant, k)).sum())

    def _of(self, variant: int) -> StateRates:
        if not 0 <= variant < self.n_variants:
            raise InputError(f"there is no drafter {variant}", expected=f"0 to {self.n_variants}")
        return self.rates[variant]
