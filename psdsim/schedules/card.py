"""CARD: the drafter keeps growing a tree of drafts while the target queries it and corrects."""

from __future__ import annotations

import numpy as np

from psdsim.commands import (
    NO_IDS,
    Counts,
    Discard,
    Draft,
    Handle,
    Ids,
    Judge,
    Mask,
    Score,
    Start,
    Verdict,
    WaitAll,
)
from psdsim.errors import InputError
from psdsim.schedules.base import Answered, Program, Schedule, drop
from psdsim.schedules.intake import take_in


class Card(Schedule):
    """Between two exchanges the drafter adds k levels, the target tests the best path it knows.

    Source: CARD (arXiv 2508.04462), the synchronous version of its code; there for one request,
    here with one exchange for all requests of a batch. At an exchange the target's own token is
    looked up in the tree. A hit re-roots the tree there: behind the whole path its greedy
    continuation keeps all levels left, the branch of a second choice a share of them. A miss
    clears it, and the next pass has no path to test and yields the target's own token only.

    Parameters
    ----------
    k, capacity, chunked
        As for every schedule; k is the levels per exchange ("communication ratio").
    width
        Nodes of a level, 1 to 512.
    branch
        Share of the remaining levels that a second choice's branch has, 0 to 1.
    max_depth
        Deepest that a tree grows, k to 64 levels.
    """

    name = "card"
    summary = "the drafter grows a tree all the time; the target tests its best path and re-roots"
    source = "CARD (arXiv 2508.04462)"
    overlaps = True
    min_k = 1
    supports_chunked = False

    def __init__(
        self, k: int, capacity: int, *, chunked: bool = False,
        width: int = 20, branch: float = 1.0, max_depth: int = 50,
    ) -> None:  # fmt: skip
        super().__init__(k, capacity, chunked=chunked)
        if not 1 <= width <= 512:
            raise InputError(f"card has {width} nodes a level", expected="1 to 512")
        if not 0.0 <= branch <= 1.0:
            raise InputError(f"card's branch share is {branch}", expected="0 to 1")
        if not k <= max_depth <= 64:
            raise InputError(f"card's trees are {max_depth} deep", expected=f"k ({k}) to 64 levels")
        self.width, self.branch, self.max_depth = width, branch, max_depth
        self._depth: Counts = np.empty(0, dtype=np.int64)
        self._nodes: Counts = np.empty(0, dtype=np.int64)

    @property
    def rows(self) -> int:
        """The longest path, and the token before it."""
        return self.max_depth + 1

    @property
    def reach(self) -> int:
        """A tree at its deepest."""
        return self.max_depth + self.k

    def run(self) -> Program:
        """Yield the commands of query and correct."""
        ids: Ids = NO_IDS
        while True:
            new: Ids | None = yield from take_in(self.capacity, ids.size)
            if new is None:
                return
            ids = np.concatenate((ids, new))
            none = np.zeros(new.size, dtype=np.int64)
            self._depth = np.concatenate((self._depth, none))
            self._nodes = np.concatenate((self._nodes, none))
            fresh = np.minimum(self.k, self.max_depth - self._depth)
            draft: Handle = yield Start(Draft(ids, fresh, after=self._depth, width=self.width))
            if draft.preempted.size:
                left = drop(ids, draft.preempted)
                here = np.isin(ids, left)
                fresh, self._depth, self._nodes = fresh[here], self._depth[here], self._nodes[here]
                ids = left
                if not ids.size:
                    yield WaitAll((draft,))
                    continue
            score = yield Start(Score(ids, self._depth, ranks=self.width))
            yield WaitAll((draft, score))
            verdict: Verdict = yield Judge(score)
            alive = yield from self._exchange(ids, fresh, verdict)
            ids = ids if alive.all() else ids[alive]

    def _exchange(self, ids: Ids, fresh: Counts, verdict: Verdict) -> Answered:
        """Re-root or clear each tree; return who decodes on."""
        assert verdict.n_accepted is not None
        assert verdict.rank is not None
        alive: Mask = np.ones(ids.size, dtype=np.bool_)
        if verdict.stopped is not None:
            alive = ~verdict.stopped
        rest = self._depth + fresh - verdict.n_accepted - 1
        greedy = (verdict.rank == 1) & (verdict.n_accepted == self._depth)
        # The slack keeps a product that is whole but for rounding from losing a level.
        shallower = np.floor(self.branch * rest + 1e-9).astype(np.int64)
        depth = np.where(greedy, rest, shallower)
        depth = np.where((verdict.rank > 0) & (rest > 0) & alive, depth, 0)
        left = self._nodes + self.width * fresh - self._depth
        # A tested node is on no later path: a branch has no more levels than nodes are left.
        self._depth = np.minimum(depth, left)
        kept = np.minimum(self.width * self._depth, left)
        yield Discard(ids, left - kept)
        self._depth, self._nodes = self._depth[alive], kept[alive]
        return alive
