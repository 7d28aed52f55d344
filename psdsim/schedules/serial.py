"""Autoregressive decoding and serial speculative decoding: one group, one thing at a time."""

from __future__ import annotations

import numpy as np

from psdsim.commands import (
    NO_IDS,
    Admit,
    Admitted,
    Chunks,
    Draft,
    Handle,
    Ids,
    Judge,
    Prefill,
    Score,
    Verdict,
    WaitArrival,
)
from psdsim.schedules.base import Answered, Program, Schedule, drop


class SpeculativeDecoding(Schedule):
    """Draft k tokens for the whole batch, verify them in one target pass, repeat.

    How a proposal is made (`_propose`), what of it is tested (`_test`) and what is learnt from a
    verdict (`_learn`) is for subclasses to change: another drafter, length policy or selector.

    Source: Leviathan et al. 2023 (arXiv 2211.17192), Chen et al. 2023 (arXiv 2302.01318).
    With k=0 it is autoregressive decoding, exactly.
    """

    name = "sd"
    summary = "draft k tokens, then verify them in one target pass; each waits for the other"
    source = "Leviathan et al. 2023 (arXiv 2211.17192); Chen et al. 2023 (arXiv 2302.01318)"

    def run(self) -> Program:
        """Yield the commands of serial speculative decoding."""
        k = self.k
        ids = NO_IDS
        while True:
            tokens = ids.size * self.rows if self.chunked else None
            admitted: Admitted = yield Admit(self.capacity, tokens)
            if admitted.new.size and not self.chunked:
                first: Verdict = yield Prefill(admitted.new)
                new = admitted.new if first.stopped is None else admitted.new[~first.stopped]
                ids = np.concatenate((ids, new))
                continue
            if not ids.size and admitted.chunks is None:
                if admitted.exhausted:
                    return
                yield WaitArrival()
                continue
            draft = None
            if k and ids.size:
                draft = yield from self._propose(ids)
                if draft is not None and draft.preempted.size:
                    ids = drop(ids, draft.preempted)
            score = yield from self._test(ids, draft, admitted.chunks)
            if score.preempted.size:
                ids = drop(ids, score.preempted)
            verdict: Verdict = yield Judge(score)
            self._learn(ids, draft, verdict)
            if verdict.stopped is not None:
                ids = ids[~verdict.stopped]
            if verdict.joined.size:
                ids = np.concatenate((ids, verdict.joined))

    def _propose(self, ids: Ids) -> Answered:
        """Draft for every request; None proposes nothing this time."""
        return (yield Draft(ids, self.k))

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        """Score the proposal (None: the requests decode plainly)."""
        return (yield Score(ids, self.k, chunks=chunks))

    def _learn(self, ids: Ids, draft: Handle | None, verdict: Verdict) -> None:
        """Take note of what came out."""


class Autoregressive(SpeculativeDecoding):
    """Plain decoding, one token per target pass: serial SD with k=0 and no draft model."""

    name = "ar"
    summary = "no drafting: one token per target pass and request"
    source = "baseline"
    drafts = False

    def __init__(self, k: int, capacity: int, *, chunked: bool = False) -> None:
        super().__init__(0, capacity, chunked=chunked)
