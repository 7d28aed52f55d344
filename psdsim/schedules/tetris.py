"""TETRIS: draft more than is verified, and verify the drafts of the batch that look best."""

from __future__ import annotations

import numpy as np

from psdsim.commands import (
    MAX_K,
    NO_IDS,
    Chances,
    Chunks,
    Confidence,
    Counts,
    Handle,
    Ids,
    Score,
)
from psdsim.errors import InputError
from psdsim.schedules.base import Answered, Program
from psdsim.schedules.minedraft import MineDraft
from psdsim.schedules.serial import SpeculativeDecoding


def best_drafts(survival: Chances, n: int) -> Counts:
    """Return how many drafts of each request are among the n likeliest of the batch.

    Survival probabilities fall along a row, so these are prefixes; of equal ones the earlier
    draft comes first, then the earlier request.

    Parameters
    ----------
    survival
        P(the first j drafts are all accepted) as estimated, shape (requests, drafts).
    n
        Drafts to take, >= 0.

    Examples
    --------
    >>> best_drafts(np.cumprod([[0.9] * 6, [0.5] * 6], axis=1), 6).tolist()
    [6, 0]
    """
    n_seqs, k = survival.shape
    if n >= n_seqs * k:
        return np.full(n_seqs, k, dtype=np.int64)
    draft, request = np.tile(np.arange(k), n_seqs), np.repeat(np.arange(n_seqs), k)
    order = np.lexsort((request, draft, -survival.ravel()))[:n]
    return np.bincount(request[order], minlength=n_seqs).astype(np.int64)


def _with_extra(name: str, k: int, extra: int) -> int:
    """Return drafted tokens per round and request, k + extra."""
    if not 0 <= extra <= MAX_K - k:
        raise InputError(
            f"{name} was asked for {extra} drafts beyond k={k}",
            expected=f"a whole number from 0 to {MAX_K - k}",
            where="extra",
        )
    return k + extra


class Tetris(SpeculativeDecoding):
    """Draft k + extra tokens for each request; verify the best k * batch of all of them.

    Source: TETRIS (Wu et al. 2025) and its code: the drafts with the largest cumulative draft
    probability, over the whole batch, which is optimal for a step if these are P(accepted).
    What is not chosen was drafted in vain (dropped).

    Parameters
    ----------
    k, capacity, chunked
        As for `Schedule`; k is what is verified of each request in the mean.
    extra
        Tokens drafted beyond that, >= 0.
    """

    name = "tetris"
    summary = "draft k + e tokens and verify the k * batch likeliest of the whole batch"
    source = "TETRIS (Wu et al. 2025), code ZhaoxuanWu/Tetris"
    asks_confidence = True
    min_k = 1

    def __init__(self, k: int, capacity: int, *, chunked: bool = False, extra: int = 1) -> None:
        super().__init__(k, capacity, chunked=chunked)
        self.budget = k
        self.k = _with_extra(self.name, k, extra)

    @property
    def rows(self) -> int:
        """Tokens that a request feeds to a target pass, in the mean over the batch at most."""
        return self.budget + 1

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        chances: Chances = yield Confidence(draft)
        n = best_drafts(chances.cumprod(axis=1), self.budget * ids.size)
        return (yield Score(ids, n, chunks=chunks, of=draft))


class MineDraftTetris(MineDraft):
    """MineDraft whose target pass verifies the likeliest k * batch drafts of its half.

    Source: MineDraft (arXiv 2603.18016), which runs TETRIS within the verified sub-batch. The
    choice is made as soon as the half's drafts are there; a request that loses its KV between
    drafting and verifying takes its share with it.

    Parameters
    ----------
    k, capacity, chunked, extra
        As for `Tetris`.
    """

    name = "minedraft+tetris"
    summary = "MineDraft that drafts k + e tokens and verifies the half's k * batch likeliest"
    source = "MineDraft (arXiv 2603.18016); TETRIS (Wu et al. 2025)"
    asks_confidence = True

    def __init__(self, k: int, capacity: int, *, chunked: bool = False, extra: int = 1) -> None:
        super().__init__(k, capacity, chunked=chunked)
        self.budget = k
        self.k = _with_extra(self.name, k, extra)

    @property
    def rows(self) -> int:
        """Tokens that a request feeds to a target pass, in the mean over its half at most."""
        return self.budget + 1

    def run(self) -> Program:
        """Yield MineDraft's commands."""
        self._drafts: list[Handle | None] = [None, None]
        self._chosen: list[tuple[Ids, Counts]] = [(NO_IDS, np.empty(0, dtype=np.int64))] * 2
        yield from super().run()

    def _drafted(self, half: int, draft: Handle) -> Program:
        n = np.empty(0, dtype=np.int64)
        if draft.ids.size:
            chances: Chances = yield Confidence(draft)
            n = best_drafts(chances.cumprod(axis=1), self.budget * draft.ids.size)
        self._drafts[half] = draft
        self._chosen[half] = (draft.ids, n)

    def _score(self, ids: Ids, half: int) -> Score:
        chosen, n = self._chosen[half]
        if ids.size != chosen.size:
            n = n[np.isin(chosen, ids)]
        return Score(ids, n, group=half, of=self._drafts[half])


__all__ = ["MineDraftTetris", "Tetris", "best_drafts"]
