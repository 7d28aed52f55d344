"""Prompt lookup: propose what followed the last words the last time they stood in the text."""

from __future__ import annotations

import time

import numpy as np

from realrun.drafters.base import Drafted, Drafter
from realrun.workers.messages import Ints


class NgramDrafter(Drafter):
    """Looks for the longest recent suffix that occurred before and copies what came next.

    Source: prompt lookup decoding (Saxena 2023), vLLM's ``ngram`` drafter. Where nothing
    matches, or the copy ends at the text's end, the last token is repeated: such drafts are
    counted like any other and mostly rejected. It proposes for certain, so under sampling its
    draft distribution is a point mass, and it has no confidence to tell.

    Parameters
    ----------
    n_slots, max_length
        See `Drafter`.
    longest, shortest
        Suffix lengths tried, tokens; the longest that matches wins, then the latest place.
    """

    def __init__(
        self, n_slots: int, max_length: int, *, longest: int = 3, shortest: int = 1
    ) -> None:
        super().__init__(n_slots, max_length)
        self._longest = longest
        self._shortest = shortest

    def clock(self) -> float:
        """Return the time."""
        return time.perf_counter()

    def changed(self, slots: Ints, keep: Ints) -> None:
        """Nothing is remembered but the texts."""

    def draft(
        self, requests: Ints, slots: Ints, counts: Ints, *, confidences: bool = False
    ) -> Drafted:
        """Return what followed: no distribution, no confidences."""
        out = np.zeros((slots.size, int(counts.max(initial=0))), dtype=np.int64)
        for i, (slot, count) in enumerate(zip(slots.tolist(), counts.tolist(), strict=True)):
            if count:
                known = int(self.known[slot])
                out[i, :count] = self._continuation(self.texts[slot, :known], count)
                self.texts[slot, known : known + count] = out[i, :count]
                self.known[slot] = known + count
        return Drafted(out)

    def _continuation(self, text: Ints, count: int) -> Ints:
        proposal = np.full(count, text[-1])
        for n in range(min(self._longest, text.size - 1), self._shortest - 1, -1):
            match = np.ones(text.size - n, dtype=np.bool_)
            for j in range(n):
                match &= text[j : j + match.size] == text[text.size - n + j]
            places = np.flatnonzero(match)
            if places.size:
                begin = int(places[-1]) + n
                copied = text[begin : begin + count]
                proposal[: copied.size] = copied
                break
        return proposal
