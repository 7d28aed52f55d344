"""Several inputs of one drafter side by side, and the one that has done best so far (TABED)."""

from __future__ import annotations

import numpy as np

from psdsim.commands import Chunks, Counts, Draft, Handle, Ids, Score, Verdict
from psdsim.errors import InputError
from psdsim.schedules.base import Answered
from psdsim.schedules.remembered import Remembered
from psdsim.schedules.serial import SpeculativeDecoding


class EnsembleDrafting(SpeculativeDecoding):
    """Every forward reads n variants of the input; a request drafts with the arm that leads.

    Source: TABED (arXiv 2601.20357). Arms are the variants alone and, after them, their mixtures;
    all are read off the same batched forward, so which one is taken costs nothing. The leader is
    the arm with the most accepted drafts per round in the request's past, once each has been
    tried; the last arm comes first. The published system can tell from one verification how every
    weight would have fared; here only the arm that was taken is heard of.

    Parameters
    ----------
    k, capacity, chunked
        See `Schedule`.
    inputs
        Variants of the input per forward, >= 1.
    arms
        Drafters to choose from, >= 1.
    arm
        The one that is always taken; None: the leader.
    tries
        Rounds that each arm gets before a leader is followed, >= 1.
    """

    name = "ensemble"
    summary = "draft from several inputs in one batched forward, with the weights that did best"
    source = "TABED (arXiv 2601.20357)"

    def __init__(
        self,
        k: int,
        capacity: int,
        *,
        chunked: bool = False,
        inputs: int = 2,
        arms: int = 3,
        arm: int | None = None,
        tries: int = 1,
    ) -> None:
        super().__init__(k, capacity, chunked=chunked)
        if inputs < 1 or arms < 1 or tries < 1 or not (arm is None or 0 <= arm < arms):
            raise InputError(
                f"an ensemble has {inputs} inputs, {arms} arms, arm {arm}, {tries} tries",
                expected="at least 1 of each, and one of the arms or none",
            )
        self.inputs, self.arms, self.arm, self.tries = inputs, arms, arm, tries
        # Accepted drafts and rounds of each arm.
        self._past = Remembered(np.zeros((2, arms)))

    def _leaders(self, ids: Ids) -> Counts:
        """Return each request's arm; an arm that was not tried enough comes before all others."""
        if self.arm is not None:
            return np.full(ids.size, self.arm, dtype=np.int64)
        accepted, rounds = self._past[ids].swapaxes(0, 1)[:, :, ::-1]
        mean = accepted / np.maximum(rounds, 1.0)
        last_first = np.where(rounds < self.tries, np.inf, mean).argmax(axis=1)
        return np.asarray(self.arms - 1 - last_first, dtype=np.int64)

    def _propose(self, ids: Ids) -> Answered:
        """Draft for each request with the arm that leads."""
        return (yield Draft(ids, self.k, inputs=self.inputs, variant=self._leaders(ids)))

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        """Score the chain."""
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        return (yield Score(ids, self.k, of=draft, chunks=chunks))

    def _learn(self, ids: Ids, draft: Handle | None, verdict: Verdict) -> None:
        """Add the round to the past of the arm that was taken."""
        if verdict.n_accepted is None:
            return
        past, arm = self._past[ids], self._leaders(ids)
        row = np.arange(ids.size)
        past[row, 0, arm] += verdict.n_accepted
        past[row, 1, arm] += 1.0
        self._past[ids] = past
