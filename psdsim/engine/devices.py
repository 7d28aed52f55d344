"""Devices run passes one at a time, in the order they were given."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import simpy
from simpy.events import Event, Timeout

from psdsim.commands import NO_IDS, Counts, Draft, Ids, Score


class Pass:
    """A draft phase, target pass or prefill on its way through a device (the engine's `Handle`).

    `command` is what the schedule asked for, `ids` who is in it after preemption. Values that
    most passes never change live on the class: thousands of passes a second are made.
    """

    preempted: Ids = NO_IDS
    done = False
    cancelled = False
    n_tokens = 0
    start = 0.0
    end = 0.0
    duration = 0.0
    left = 0.0
    not_before = 0.0
    chunk_ids: Ids = NO_IDS
    chunk_joined: Ids = NO_IDS
    event: Event | None = None
    device: Device | None = None
    n_each: int | Counts = 0
    """Drafted tokens of each request of a draft; tested ones of a score."""

    def __init__(self, command: Draft | Score | None, ids: Ids, order: int) -> None:
        self.command = command
        self.ids = ids
        self.order = order

    @property
    def lengths(self) -> Counts:
        """Drafted tokens of each request, shape (n,)."""
        return np.broadcast_to(np.asarray(self.n_each, dtype=np.int64), self.ids.shape)


class Device:
    """A first-in first-out server: a group of GPUs that works on one pass at a time.

    Parameters
    ----------
    env
        The simulation clock.
    name
        ``"target"`` or ``"draft"``; also the lane of the timeline.
    index
        Breaks ties: among passes that end together, the lower index comes first.
    """

    def __init__(self, env: simpy.Environment, name: str, index: int) -> None:
        self.env = env
        self.name = name
        self.index = index
        self.running: Pass | None = None
        self.queue: deque[Pass] = deque()
        self.busy_s = 0.0

    def submit(self, work: Pass, duration: float, not_before: float) -> None:
        """Put a pass in line.

        Parameters
        ----------
        work
            The pass; its `event` fires when it ends.
        duration
            Seconds it takes alone on the device.
        not_before
            Time before which it can't start (the step's CPU overhead).
        """
        work.device = self
        work.duration = duration
        work.not_before = not_before
        if self.running is None:
            self._begin(work)
        else:
            work.event = Event(self.env)
            self.queue.append(work)

    def cancel(self, work: Pass) -> bool:
        """Take a pass out of the line; return False if it had started."""
        work.cancelled = True
        if work not in self.queue:
            return False
        self.queue.remove(work)
        work.done = True
        assert work.event is not None
        work.event.succeed()
        return True

    def _begin(self, work: Pass) -> None:
        self.running = work
        env = self.env
        now = env.now
        start = work.not_before if work.not_before > now else now
        work.start = start
        timeout = Timeout(env, start + work.duration - now)
        # The device hears of the end before whoever waits for it.
        timeout.callbacks.append(self._ended)
        if work.event is None:
            work.event = timeout

    def _ended(self, event: Event) -> None:
        work = self.running
        assert work is not None
        work.end = self.env.now
        work.done = True
        self.busy_s += work.end - work.start
        self.running = None
        if work.event is not event:
            assert work.event is not None
            work.event.succeed()
        if self.queue:
            self._begin(self.queue.popleft())


def by_device_and_order(passes: list[Pass]) -> list[Pass]:
    """Sort finished passes: by device, then by the order in which they were started."""

    def key(work: Pass) -> tuple[int, int]:
        return (0 if work.device is None else work.device.index, work.order)

    return sorted(passes, key=key)


def token_total(n: int | np.ndarray[Any, Any], n_ids: int) -> int:
    """Return the sum of a per-request count given as one number or as an array."""
    return n * n_ids if isinstance(n, int) else int(n.sum())


def largest(n: int | np.ndarray[Any, Any]) -> int:
    """Return the largest of a per-request count given as one number or as an array."""
    return n if isinstance(n, int) else int(n.max(initial=0))
