"""DSI's passes under way: whose drafts each of them tests, and what a rejection makes void."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from psdsim.commands import Cancel, Discard, Handle, Ids, Judge, Score, Start, Verdict, WaitAll
from psdsim.schedules.base import Answered, drop


@dataclass(slots=True, eq=False)
class Chain:
    """What was drafted for one request since its last restart."""

    request: int
    tail: int = 0
    """Drafts behind the last confirmed token."""
    open: int = 0
    """Drafts neither tested nor thrown away."""
    flying: int = 0
    """Those of them that a pass under way tests."""
    fresh: bool = True


@dataclass(slots=True, eq=False)
class Flight:
    """A target pass under way, and the chains and drafts of its rows."""

    score: Handle
    peek: Handle
    target: int
    chains: list[Chain]
    n: list[int]


class Flights:
    """Starts target passes, judges them in order, and throws away what is behind a rejection.

    Parameters
    ----------
    k
        Drafts in a block.
    n_targets
        Copies of the target.
    """

    def __init__(self, k: int, n_targets: int) -> None:
        self._k = k
        self._line = deque(range(n_targets))
        """Copies of the target, the next to be given a pass first."""
        self.of: dict[int, Chain] = {}
        """The chain of each request in flight."""
        self.under_way: deque[Flight] = deque()
        """Passes that are not judged, the oldest first."""
        self._dead: list[Chain] = []

    def launch(self, ids: Ids, chains: list[Chain], peek: Handle) -> Answered:
        """Start the pass that tests the rest of the last block and the first of this one."""
        rest = np.array([0 if c.fresh else self._k - 1 for c in chains], dtype=np.int64)
        target = self._line.popleft()
        self._line.append(target)
        score = yield Start(Score(ids, rest, bonus=False, peek=peek, on=target))
        n = (rest + 1).tolist()
        for chain, tested in zip(chains, n, strict=True):
            chain.flying += tested
            chain.fresh = False
        self.under_way.append(Flight(score, peek, target, chains, n))

    def land(self, ids: Ids) -> Answered:
        """Judge the oldest pass; return who decodes on."""
        flight = self.under_way.popleft()
        yield WaitAll((flight.peek, flight.score))
        for chain, n in zip(flight.chains, flight.n, strict=True):
            chain.flying -= n
            chain.open -= n
        # A restart begins where a pass has just ended.
        self._line.remove(flight.target)
        self._line.appendleft(flight.target)
        alive = [c for c in flight.chains if self.of.get(c.request) is c]
        asked = np.array([c.request for c in alive], dtype=np.intp)
        # Where all count, the executor's own array spares it a new batch.
        kept = None if len(alive) == len(flight.chains) else asked
        verdict: Verdict = yield Judge(flight.score, kept)
        if not alive:
            return ids
        assert verdict.hit is not None
        assert verdict.n_accepted is not None
        stopped = verdict.stopped if verdict.stopped is not None else np.zeros_like(verdict.hit)
        for chain, hit, over, n in zip(
            alive, verdict.hit, stopped, verdict.n_accepted, strict=True
        ):
            if hit and not over:
                chain.tail -= int(n)
                continue
            self._dead.append(chain)
            del self.of[chain.request]
            if not over:
                self.of[chain.request] = Chain(chain.request)
        return drop(ids, asked[stopped])

    def restart(self, drafts: list[Handle], chains: list[Chain]) -> Answered:
        """Take back all that is under way, as no chain is left."""
        for draft in reversed(drafts):
            if not draft.done:
                # Its tokens are taken back or, where it runs, counted as thrown away.
                yield Cancel(draft)
                for chain in chains:
                    chain.open -= 1
        for flight in self.under_way:
            yield Cancel(flight.score)
            for chain in flight.chains:
                chain.flying = 0
                if chain not in self._dead:
                    self._dead.append(chain)
        self.under_way.clear()

    def bury(self) -> Answered:
        """Throw away the drafts of broken chains that no pass under way tests."""
        for chain in self._dead:
            if chain.open > chain.flying:
                yield Discard(np.array([chain.request], dtype=np.intp), chain.open - chain.flying)
                chain.open = chain.flying
        self._dead.clear()
