"""What every acceptance model offers: the law of one serial round, and a way to sample it."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from psdsim.acceptance.fields import check_draft_length
from psdsim.acceptance.law import (
    BoolArray,
    FloatArray,
    IntArray,
    invert,
    mean_of,
    pmf_from_conditional,
    var_of,
)
from psdsim.errors import InputError

JudgedBy = Literal["tape", "position", "rounds", "replay"]
"""How an engine decides a verdict.

``tape``: a bit per request and output position, the same under every schedule.
``position``: a rate per position in the round. ``rounds``: such a rate, by whether the round
before was fully accepted. ``replay``: recorded counts.
"""

UNPAIRED = (
    "verdicts depend on where rounds start, so schedules share only the uniforms, not the text"
)
"""The note of every model for which schedules can't be paired exactly."""


def extension_note(k: int, k_measured: int) -> list[str]:
    """Say in words how a table measured at ``k_measured`` came to serve a round of ``k``."""
    if k > k_measured:
        return [
            f"measured at k={k_measured}, used at k={k}: "
            f"the conditional rate of position {k_measured} is repeated beyond it (extend: last)"
        ]
    if k < k_measured:
        return [
            f"measured at k={k_measured}, used at k={k}: "
            "early positions are assumed to keep their rates in a shorter round"
        ]
    return []


class AcceptanceModel(BaseModel):
    """Frozen parameters of an acceptance process, with the law that serial SD sees.

    L is the number of accepted drafts in one stationary round of k drafts, 0..k; a round
    emits L + 1 tokens (the corrected or the bonus token is the +1).

    Subclasses give `conditional_rates`; those that aren't independent between rounds also
    give their own `sample`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    judged_by: ClassVar[JudgedBy]

    @property
    def paired(self) -> bool:
        """Whether every schedule sees the same verdict at the same output position."""
        return self.judged_by == "tape"

    @abstractmethod
    def conditional_rates(self, k: int) -> FloatArray:
        """Return P(draft i accepted | all before it in the round were) in a stationary round.

        Parameters
        ----------
        k
            Drafted tokens per round, >= 0.

        Returns
        -------
        numpy.ndarray
            Shape (k,), in [0, 1]. The rate of a position that is never reached has no effect.

        Raises
        ------
        psdsim.errors.InputError
            If the model wasn't measured at this k and names no rule to extend it.
        """

    def check_k(self, k: int) -> None:
        """Refuse a draft length that the model can't speak about.

        Raises
        ------
        psdsim.errors.InputError
            If ``k`` is negative or not whole, or beyond what was measured.
        """
        check_draft_length(k)

    def notes(self, k: int) -> list[str]:
        """Return what was assumed, extended or lost to use this model at ``k``, one a line."""
        self.check_k(k)
        return []

    def pmf(self, k: int) -> FloatArray:
        """Return the stationary law of accepted drafts in one serial round.

        Parameters
        ----------
        k
            Drafted tokens per round, >= 0.

        Returns
        -------
        numpy.ndarray
            Shape (k+1,): P(L = j), j = 0..k; sums to 1.
        """
        return pmf_from_conditional(self.conditional_rates(k))

    def mean_accepted(self, k: int) -> float:
        """Return E[L], accepted drafts per serial round, in [0, k] tokens."""
        return float(np.cumprod(self.conditional_rates(k)).sum())

    def var_accepted(self, k: int) -> float:
        """Return Var[L], tokens squared, of one stationary serial round."""
        return var_of(self.pmf(k))

    def acceptance_length(self, k: int) -> float:
        """Return E[L] + 1, tokens emitted per serial round, in [1, k+1] (Leviathan Eq. 1)."""
        return 1.0 + self.mean_accepted(k)

    def pooled_acceptance_length(self, k: int) -> float:
        """Return total tokens over total rounds of many requests of one output length.

        Equal to `acceptance_length` where requests are alike; where they differ, slow requests
        take more rounds, and this is the harmonic mean of the requests' own lengths.
        """
        return self.acceptance_length(k)

    def sample(self, k: int, size: int, rng: np.random.Generator) -> IntArray:
        """Draw accepted drafts of successive stationary serial rounds.

        Parameters
        ----------
        k
            Drafted tokens per round, >= 0.
        size
            Rounds to draw, >= 0.
        rng
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Shape (size,), int64, in 0..k.
        """
        return invert(self.pmf(k), rng.random(checked_size(size)))

    def sample_requests(
        self, k: int, n_requests: int, n_rounds: int, rng: np.random.Generator
    ) -> IntArray:
        """Draw successive rounds of many requests, with what the rounds of one share.

        Requests are independent of each other. Each column follows `pmf`.

        Parameters
        ----------
        k
            Drafted tokens per round, >= 0.
        n_requests, n_rounds
            Requests to draw and rounds of each, >= 0.
        rng
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Shape (n_requests, n_rounds), int64, in 0..k.
        """
        out = np.empty((checked_size(n_requests), checked_size(n_rounds)), dtype=np.int64)
        for row in out:
            row[:] = self.sample(k, n_rounds, rng)
        return out


class TapeModel(AcceptanceModel):
    """A model whose verdict at an output position is the same under every schedule."""

    judged_by: ClassVar[JudgedBy] = "tape"

    @abstractmethod
    def accept_bits(self, u: FloatArray, row_start: IntArray, request_u: FloatArray) -> BoolArray:
        """Say for each output position whether a draft placed there would be accepted.

        Parameters
        ----------
        u
            Shape (n,), in [0, 1): one uniform per output position, requests one after another.
        row_start
            Shape (r,), int64: where each request's row begins in ``u``, sorted, first 0; a row
            ends where the next begins.
        request_u
            Shape (r,), in [0, 1): one uniform per request (its own level, where it has one).

        Returns
        -------
        numpy.ndarray
            Shape (n,), bool.
        """

    @property
    def n_variants(self) -> int:
        """Drafters that the model tells apart, >= 1; one, unless a subclass has several."""
        return 1

    def variant_bits(
        self,
        variant: int,
        u: FloatArray,
        row_start: IntArray,
        request_u: FloatArray,
        hidden_u: FloatArray,
    ) -> BoolArray:
        """Return `accept_bits` of one of several drafters on the same text.

        Parameters
        ----------
        variant
            Which drafter, 0 to n_variants - 1.
        u, row_start, request_u
            As for `accept_bits`; the same for all drafters.
        hidden_u
            Shape (n,), in [0, 1): for what is hidden in the text.
        """
        if variant:
            raise InputError(f"there is no drafter {variant}", expected="0")
        return self.accept_bits(u, row_start, request_u)


def checked_size(size: object) -> int:
    """Return ``size`` if it is a whole number of at least 0, else raise InputError."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise InputError(f"the sample size is {size!r}", expected="a whole number of at least 0")
    return int(size)


__all__ = [
    "UNPAIRED",
    "AcceptanceModel",
    "JudgedBy",
    "TapeModel",
    "checked_size",
    "extension_note",
    "mean_of",
]
