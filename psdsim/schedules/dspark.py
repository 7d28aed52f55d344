"""DSpark: verify as many drafts of each request as confidences and the engine's speed suggest."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from psdsim.commands import (
    Chances,
    Chunks,
    Confidence,
    Counts,
    Draft,
    Handle,
    Ids,
    Look,
    Score,
    View,
)
from psdsim.errors import InputError
from psdsim.schedules.base import Answered
from psdsim.schedules.serial import SpeculativeDecoding
from psdsim.schedules.tetris import best_drafts


def prefix_budget(
    survival: Chances, pass_s: Callable[[int], float], *, whole_path: bool = False
) -> int:
    """Return how many of the likeliest drafts are worth verifying, over the whole batch.

    One pass over B tokens takes pass_s(B); with the likeliest drafts added one by one, expected
    tokens per second rise and fall. The first draft that does not raise them ends the search,
    which keeps the choice from depending on drafts further on, as losslessness needs (arXiv
    2607.05147, section 3 and appendix A).

    Parameters
    ----------
    survival
        P(the first j drafts are all accepted) as estimated, shape (requests, drafts).
    pass_s
        Seconds of a pass over so many tokens in all.
    whole_path
        Search the whole path for its best point: for speeds that fall in steps.

    Examples
    --------
    >>> slow = {1: 1.0, 2: 2.0, 3: 1 / 0.45}      # appendix A: one draft is too dear, two are not
    >>> prefix_budget(np.array([[0.8, 0.8]]), slow.__getitem__)
    0
    >>> prefix_budget(np.array([[0.8, 0.8]]), slow.__getitem__, whole_path=True)
    2
    """
    tokens = float(survival.shape[0])
    n_rows = survival.shape[0]
    best = tokens / max(pass_s(n_rows), 1e-300)
    taken = 0
    for i, chance in enumerate(np.sort(survival, axis=None)[::-1].tolist(), start=1):
        tokens += chance
        rate = tokens / max(pass_s(n_rows + i), 1e-300)
        if rate > best:
            best, taken = rate, i
        elif not whole_path:
            break
    return taken


class DSpark(SpeculativeDecoding):
    """A block drafter with a light sequential head, and a verifier that knows its load.

    Source: DSpark (arXiv 2607.05147). One pass drafts k tokens for every request (the head's k
    steps are part of the drafting phase's fixed time); the scheduler then verifies the prefixes
    with the most expected tokens per second. In production the number of drafts to verify comes
    from confidences of two steps before, which lets it search the whole path; which drafts these
    are still follows from those of now. Requests without confidences that old count as the mean
    of those that have some; before there are any, all drafts count as sure.

    Parameters
    ----------
    k, capacity, chunked
        As for `Schedule`.
    lag
        Age in steps of the confidences that the budget comes from; 0: those of now, and the search
        ends early.
    fixed_s
        Seconds of a step beside its target pass that count in the engine's speed, >= 0.
    """

    name = "dspark"
    summary = "draft k tokens in one pass; verify the prefixes with the most tokens per second"
    source = "DSpark (arXiv 2607.05147)"
    asks_confidence = True

    def __init__(
        self, k: int, capacity: int, *, chunked: bool = False, lag: int = 0, fixed_s: float = 0.0
    ) -> None:
        super().__init__(k, capacity, chunked=chunked)
        if lag < 0:
            raise InputError(f"dspark has lag={lag}", expected="at least 0 steps", where="lag")
        if not fixed_s >= 0.0:
            raise InputError(f"dspark has fixed_s={fixed_s}", expected="at least 0 s")
        self.lag = lag
        self.fixed_s = fixed_s
        self._past: deque[tuple[Ids, Chances]] = deque(maxlen=max(lag, 1))

    def _propose(self, ids: Ids) -> Answered:
        return (yield Draft(ids, self.k, passes=1))

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        chances: Chances = yield Confidence(draft)
        view: View = yield Look()
        n = self.lengths(ids, chances.cumprod(axis=1), view) if ids.size else draft.lengths
        return (yield Score(ids, n, chunks=chunks, of=draft))

    def lengths(self, ids: Ids, survival: Chances, view: View) -> Counts:
        """Return the drafts to verify of each request, shape (n,).

        Parameters
        ----------
        ids
            Requests, shape (n,), n >= 1.
        survival
            P(the first j drafts are all accepted) as estimated now, shape (n, k).
        view
            Estimates of step times.
        """
        known = survival
        if self.lag:
            known = self._lagged(ids, survival.shape[1])
            self._past.append((ids, survival))

        def pass_s(n_rows: int) -> float:
            return view.target_s(ids.size, n_rows) + self.fixed_s

        budget = prefix_budget(known, pass_s, whole_path=self.lag > 0)
        return best_drafts(survival, budget)

    def _lagged(self, ids: Ids, k: int) -> Chances:
        """Return the survival of `lag` steps ago; 1 where there is none to go by."""
        if len(self._past) < self.lag:
            return np.ones((ids.size, k))
        then, survival = self._past[0]
        place = {request: i for i, request in enumerate(then.tolist())}
        rows = [place.get(request, -1) for request in ids.tolist()]
        old = np.vstack((survival, survival.mean(axis=0)))
        return np.asarray(old[rows])


__all__ = ["DSpark", "prefix_budget"]
