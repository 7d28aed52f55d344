"""Serial SD whose requests stop drafting early, by confidences or by a classifier of blocks."""

from __future__ import annotations

import numpy as np

from psdsim.commands import Chances, Chunks, Confidence, Counts, Draft, Handle, Ids, Score
from psdsim.errors import InputError
from psdsim.schedules.base import Answered
from psdsim.schedules.serial import SpeculativeDecoding


class StopByThreshold(SpeculativeDecoding):
    """Draft on while P(some draft so far will be rejected) is at most a threshold; k at most.

    Source: SpecDec++ (Huang et al. 2024), where the best policy of a Markov decision process has
    this form. A token's confidence is known once it is drafted, so the token that passes the
    threshold is drafted and verified, too. Requests of a batch stop one by one; forwards go on
    for the others.

    Parameters
    ----------
    k, capacity, chunked
        As for `Schedule`; k is the longest draft.
    threshold
        In [0, 1]; 1 never stops (serial SD).
    """

    name = "specdec++"
    summary = "stop drafting once P(a rejection among the drafts) exceeds a threshold"
    source = "SpecDec++ (Huang et al. 2024, arXiv 2405.19715)"

    def __init__(
        self, k: int, capacity: int, *, chunked: bool = False, threshold: float = 0.5
    ) -> None:
        super().__init__(k, capacity, chunked=chunked)
        if not 0.0 <= threshold <= 1.0:
            raise InputError(
                f"specdec++ was asked for a threshold of {threshold}",
                expected="a number from 0 to 1",
                where="threshold",
            )
        self.threshold = threshold

    def lengths(self, chances: Chances) -> Counts:
        """Return where each request stops: the first draft whose survival is too low.

        Parameters
        ----------
        chances
            Confidences, shape (requests, k).
        """
        doubtful = 1.0 - np.cumprod(chances, axis=1) > self.threshold
        first: Counts = doubtful.argmax(axis=1) + 1
        first[~doubtful.any(axis=1)] = chances.shape[1]
        return first

    def _propose(self, ids: Ids) -> Answered:
        return (yield Draft(ids, self.k, stop=self.lengths))

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        return (yield Score(ids, draft.lengths, chunks=chunks, of=draft))


class StopByBlock(SpeculativeDecoding):
    """Draft block by block while a pre-verifier says yes to each; k tokens at most.

    Source: PACER (arXiv 2602.01274). The pre-verifier answers 1 for every draft of a block it
    lets pass and 0 for one it doesn't (`psdsim.verdict.Classifier`).

    Parameters
    ----------
    k, capacity, chunked
        As for `Schedule`; k is the longest draft.
    block
        Tokens drafted between two answers, >= 1.
    send_failed
        Whether the block that failed is verified, too; else it was drafted in vain.
    """

    name = "pacer"
    summary = "draft in blocks until a pre-verifier on the draft's side says no to one"
    source = "PACER (arXiv 2602.01274)"
    asks_confidence = True

    def __init__(
        self,
        k: int,
        capacity: int,
        *,
        chunked: bool = False,
        block: int = 4,
        send_failed: bool = True,
    ) -> None:
        super().__init__(k, capacity, chunked=chunked)
        if block < 1:
            raise InputError(
                f"pacer was asked for blocks of {block} tokens",
                expected="at least 1 token",
                where="block",
            )
        self.block = block
        self.send_failed = send_failed

    def lengths(self, chances: Chances) -> Counts:
        """Return what each request drafts: up to the end of the first block that fails.

        Parameters
        ----------
        chances
            The pre-verifier's answers, 1 or 0, shape (requests, k).
        """
        k = chances.shape[1]
        failed = chances < 0.5
        end: Counts = (failed.argmax(axis=1) // self.block + 1) * self.block
        end[~failed.any(axis=1)] = k
        return np.minimum(end, k)

    def _propose(self, ids: Ids) -> Answered:
        return (yield Draft(ids, self.k, stop=self.lengths))

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        n = draft.lengths
        if not self.send_failed and ids.size:
            answers = yield Confidence(draft)
            last = answers[np.arange(ids.size), n - 1]
            n = np.where(last < 0.5, (n - 1) // self.block * self.block, n)
        return (yield Score(ids, n, chunks=chunks, of=draft))


__all__ = ["StopByBlock", "StopByThreshold"]
