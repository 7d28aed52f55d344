"""What a drafter is: keeps texts by slot, is told what changed, proposes what may follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realrun.workers.messages import Done, DraftWork, Ints, TargetWork

Probabilities = NDArray[np.float32] | None


@dataclass(slots=True)
class Drafted:
    """What a drafter proposes.

    Parameters
    ----------
    tokens
        Shape (n, max(counts)).
    laws
        The distributions they were drawn from, shape (n, max(counts), vocab); None: proposed for
        certain.
    confidences
        How probable it found each of them, shape (n, max(counts)), 0 beyond a request's count;
        None: not asked for, or it has none.
    """

    tokens: Ints
    laws: Probabilities = None
    confidences: Probabilities = None


class Drafter(ABC):
    """Texts of every slot, and the bookkeeping that all drafters share.

    Parameters
    ----------
    n_slots, max_length
        Requests held, tokens of each.
    """

    def __init__(self, n_slots: int, max_length: int) -> None:
        self.texts = np.zeros((n_slots, max_length), dtype=np.int64)
        self.known = np.zeros(n_slots, dtype=np.int64)
        """Tokens of each slot's text."""

    def run(self, work: TargetWork | DraftWork) -> Done:
        """Bring the texts up to date and draft."""
        assert isinstance(work, DraftWork)
        start = self.clock()
        at = 0
        for slot, keep, length in zip(
            work.slots.tolist(), work.keep.tolist(), work.lengths.tolist(), strict=True
        ):
            self.texts[slot, keep : keep + length] = work.tokens[at : at + length]
            self.known[slot] = keep + length
            at += length
        self.changed(work.slots, work.keep)
        found = self.draft(work.requests, work.slots, work.counts, confidences=work.confidences)
        return Done(start, self.clock(), found.tokens, found.laws, found.confidences)

    @abstractmethod
    def clock(self) -> float:
        """Return the time when all work given to the device has ended, s."""

    @abstractmethod
    def changed(self, slots: Ints, keep: Ints) -> None:
        """Hear that only the first `keep` tokens of these texts are as they were."""

    @abstractmethod
    def draft(
        self, requests: Ints, slots: Ints, counts: Ints, *, confidences: bool = False
    ) -> Drafted:
        """Draft `counts` tokens for each; counts of 0 only read the texts (prefill).

        The texts grow by what was drafted.
        """
