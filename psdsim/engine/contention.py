"""Two lanes that share GPUs or bandwidth: while both are busy, each runs slower by a factor."""

from __future__ import annotations

import simpy
from simpy.events import Event, Timeout

from psdsim.engine.devices import Device, Pass


class SharedLane(Device):
    """One of two streams that take something from each other.

    Work is seconds alone; while the other lane runs too, it is done at rate 1/slow_down.
    With slow_down = 2 for both, the pair is as fast as running one after the other; below 2
    the overlap gains something.
    """

    def __init__(self, env: simpy.Environment, name: str, index: int, slow_down: float) -> None:
        super().__init__(env, name, index)
        self.rate_together = 1.0 / slow_down
        self.peer: SharedLane | None = None
        self._since = 0.0
        self._rate = 1.0
        self._version = 0
        self._active = False

    def _begin(self, work: Pass) -> None:
        self.running = work
        if work.event is None:
            work.event = Event(self.env)
        wait = work.not_before - self.env.now
        if wait > 0:
            Timeout(self.env, wait).callbacks.append(lambda _: self._activate(work))
        else:
            self._activate(work)

    def _activate(self, work: Pass) -> None:
        work.start = self.env.now
        work.left = work.duration
        self._active = True
        self._since = self.env.now
        self._replan()

    def _replan(self) -> None:
        """Settle and reschedule both lanes, since one of them began or ended."""
        for lane in (self, self.peer):
            if lane is not None:
                lane._settle()
        for lane in (self, self.peer):
            if lane is not None:
                lane._schedule()

    def _settle(self) -> None:
        if self._active and self.running is not None:
            self.running.left -= (self.env.now - self._since) * self._rate
        self._since = self.env.now

    def _schedule(self) -> None:
        if not self._active or self.running is None:
            return
        together = self.peer is not None and self.peer._active
        self._rate = self.rate_together if together else 1.0
        self._version += 1
        version = self._version
        # Rounding may leave a hair below zero.
        delay = max(self.running.left, 0.0) / self._rate
        Timeout(self.env, delay).callbacks.append(lambda event: self._maybe_end(event, version))

    def _maybe_end(self, event: Event, version: int) -> None:
        if version != self._version or not self._active:
            return
        self._active = False
        self._replan()
        self._ended(event)


def shared_pair(
    env: simpy.Environment, slow_down: tuple[float, float]
) -> tuple[SharedLane, SharedLane]:
    """Return (target lane, draft lane) with a slow-down each."""
    target = SharedLane(env, "target", 0, slow_down[0])
    draft = SharedLane(env, "draft", 1, slow_down[1])
    target.peer, draft.peer = draft, target
    return target, draft
