"""A sliding window over the logits of a diffusion model, verified pass by pass (PoE-Bridge)."""

from __future__ import annotations

import numpy as np

from psdsim.commands import Chunks, Draft, Handle, Ids, Score, Verdict
from psdsim.schedules.base import Answered
from psdsim.schedules.block import BlockDecoding
from psdsim.schedules.remembered import Remembered


class SlidingWindow(BlockDecoding):
    """One drafter pass fills all masks; windows of k tokens slide over it while all is accepted.

    Source: PoE-Bridge (arXiv 2606.08048). A window that is accepted whole is followed by the next
    one from the same logits, without a drafter pass; a rejection emits a residual token and makes
    them void. There is no bonus token. In a batch one pass serves everybody: it runs as soon as
    one request needs it, and then gives fresh logits to all.

    Parameters
    ----------
    k, capacity, chunked, passes, candidates
        See `BlockDecoding`; k is the window.
    """

    name = "sliding-window"
    summary = "one drafter pass, then windows of it are verified for as long as all is accepted"
    source = "PoE-Bridge (arXiv 2606.08048)"
    bonus = False
    min_k = 1
    supports_chunked = False

    def __init__(
        self,
        k: int,
        capacity: int,
        *,
        chunked: bool = False,
        passes: int = 1,
        candidates: int = 1,
    ) -> None:
        super().__init__(k, capacity, chunked=chunked, passes=passes, candidates=candidates)
        self._slides = Remembered(np.array(False))

    @property
    def rows(self) -> int:
        """Most tokens that one request feeds: every candidate, whose last token is not read."""
        return self.k * self.candidates

    def _propose(self, ids: Ids) -> Answered:
        """Read the next windows off the logits, or run the drafter."""
        passes = 0 if self._slides[ids].all() else self.passes
        draft: Handle = yield Draft(ids, self.k, passes=passes, candidates=self.candidates)
        self._slides.forget(draft.preempted)
        return draft

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        """Score every candidate of the window."""
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        return (yield Score(ids, self.k, bonus=False, of=draft, chunks=chunks))

    def _learn(self, ids: Ids, draft: Handle | None, verdict: Verdict) -> None:
        """Remember whose window was accepted whole."""
        hit = verdict.hit
        if hit is not None:
            self._slides[ids] = hit
