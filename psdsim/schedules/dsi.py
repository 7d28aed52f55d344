"""DSI: one drafter runs on while verifications of its blocks run on several target servers."""

from __future__ import annotations

import numpy as np

from psdsim.commands import (
    NO_IDS,
    Draft,
    Handle,
    Ids,
    Start,
    WaitAll,
    WaitAny,
)
from psdsim.errors import InputError
from psdsim.schedules.base import Answered, Program, Schedule, drop
from psdsim.schedules.dsi_flights import Chain, Flights
from psdsim.schedules.intake import take_in


class Dsi(Schedule):
    """Draft block after block of k; each starts a target pass, which no verdict is awaited for.

    Source: DSI (arXiv 2405.14105), with k the lookahead; there for one request. A restart gives
    a target the confirmed prefix at once, to test the first draft (`Score.peek`) while it is
    made; each later pass tests the rest of a block and the first draft of the next. A rejection
    makes everything behind it void. Then, if no request of the batch has a chain left, the
    drafts in line are taken back and all restart at once; else the request waits for the next
    block, and the rows of its old chain are paid for and left out (own extension to batches).
    A drafting block is k single forwards, so that a restart waits for one forward at most.

    Different from the published simulator: its rejected threads end at once, here passes and
    forwards that run come to their end and keep their devices busy. A restart goes to the target
    that has just found the rejection, so that this delays none by itself. With one request and
    time for k + 1 draft forwards in a target pass it is never slower than plain decoding.

    Parameters
    ----------
    k, capacity, chunked
        As for every schedule; k is the lookahead.
    n_targets
        Copies of the target, 1 to 64; at most so many passes are awaited.
    """

    name = "dsi"
    summary = "the drafter never waits; its blocks are verified on several copies of the target"
    source = "DSI (arXiv 2405.14105), Algorithm 1 with lookahead"
    overlaps = True
    bonus = False
    min_k = 1
    supports_chunked = False

    def __init__(self, k: int, capacity: int, *, chunked: bool = False, n_targets: int = 2) -> None:
        super().__init__(k, capacity, chunked=chunked)
        if not 1 <= n_targets <= 64:
            raise InputError(f"dsi has {n_targets} targets", expected="1 to 64")
        self._n_targets = n_targets
        self._flights = Flights(k, n_targets)

    @property
    def n_targets(self) -> int:
        """Copies of the target that passes are given to."""
        return self._n_targets

    @property
    def reach(self) -> int:
        """Blocks that all targets test, and the one being drafted."""
        return (self.n_targets + 1) * self.k

    def run(self) -> Program:
        """Yield the commands of speculation parallelism."""
        ids: Ids = NO_IDS
        while True:
            new: Ids | None = yield from take_in(self.capacity, ids.size)
            if new is None:
                return
            self._flights.of |= {r: Chain(r) for r in new.tolist()}
            ids = yield from self._block(np.concatenate((ids, new)))

    def _block(self, ids: Ids) -> Answered:
        """Draft a block and test what can be; return who decodes on."""
        flights = self._flights
        drafts: list[Handle] = []
        lost = False
        for _ in range(self.k):
            tails = np.array([flights.of[r].tail for r in ids.tolist()], dtype=np.int64)
            draft: Handle = yield Start(Draft(ids, 1, after=tails))
            drafts.append(draft)
            for r in draft.preempted.tolist():
                # The executor has given up its drafts.
                del flights.of[r]
                lost = True
            ids = drop(ids, draft.preempted)
            for r in ids.tolist():
                flights.of[r].tail += 1
                flights.of[r].open += 1
        chains = [flights.of[r] for r in ids.tolist()]
        if chains:
            yield from flights.launch(ids, chains, drafts[0])
        # A request that lost its memory may come back: its old rows must be gone by then.
        most = 1 if lost else self.n_targets
        while not drafts[-1].done or len(flights.under_way) >= most:
            oldest = [flights.under_way[0].score] if flights.under_way else []
            last = [] if drafts[-1].done else [drafts[-1]]
            yield WaitAny((*last, *oldest))
            while flights.under_way and flights.under_way[0].score.done:
                ids = yield from flights.land(ids)
            if all(flights.of[r].fresh for r in ids.tolist()):
                yield from flights.restart([] if lost else drafts, chains)
                if not lost:
                    drafts = []
                break
        yield WaitAll(tuple(drafts))
        yield from flights.bury()
        return ids
