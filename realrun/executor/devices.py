"""Passes on their way through a worker: one at a time, in the order they were given."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from psdsim.commands import NO_IDS, Counts, Draft, Ids, Score
from realrun.executor.texts import Block
from realrun.workers import Done, Failed, Work, Worker, WorkerError

Make = Callable[[], Work]
"""Builds the work when the worker is free for it: what it depends on is known then."""


class Pass:
    """A draft phase, target pass or prefill (the executor's `psdsim.commands.Handle`).

    Parameters
    ----------
    command
        What the schedule asked for; None for a prefill.
    ids
        Who is in it.
    order
        Counts passes in the order they were started.
    """

    preempted: Ids = NO_IDS  # slots are reserved at admission: nobody is ever preempted

    def __init__(self, command: Draft | Score | None, ids: Ids, order: int) -> None:
        self.command = command
        self.ids = ids
        self.order = order
        self.device: Device | None = None
        self.done = False
        self.void = False
        self.result: Done | None = None
        self.info: Any = None
        """What the executor needs to make sense of the result."""
        self.blocks: dict[int, Block] = {}
        """Of a finished drafting phase: what it drafted for each request."""

    @property
    def lengths(self) -> Counts:
        """Drafted tokens of each request, shape (n,)."""
        n = 0 if self.command is None else self.command.n
        return np.broadcast_to(np.asarray(n, dtype=np.int64), self.ids.shape)


class Device:
    """The coordinator's end of a worker.

    Parameters
    ----------
    worker
        A thread or a process.
    name
        ``"target"`` or ``"draft"``; the lane of the timeline.
    index
        Breaks ties among passes that are found finished together.
    on_done
        Told of every finished pass.
    """

    def __init__(
        self, worker: Worker, name: str, index: int, on_done: Callable[[Pass], None]
    ) -> None:
        self.worker = worker
        self.name = name
        self.index = index
        self.running: Pass | None = None
        self._queue: deque[tuple[Pass, Make]] = deque()
        self._on_done = on_done

    @property
    def queued(self) -> bool:
        """Whether a pass waits behind the running one."""
        return bool(self._queue)

    def submit(self, work: Pass, make: Make) -> None:
        """Give it a pass; it starts at once if nothing else runs."""
        work.device = self
        if self.running is None:
            self._begin(work, make)
        else:
            self._queue.append((work, make))

    def cancel(self, work: Pass) -> bool:
        """Take a pass out of the line; one that runs goes on and its result is void."""
        work.void = True
        for entry in self._queue:
            if entry[0] is work:
                self._queue.remove(entry)
                work.done = True
                return True
        return False

    def finish_one(self, *, spin: bool = False) -> None:
        """Wait for the running pass and begin the next.

        Parameters
        ----------
        spin
            Whether this thread's core has nothing else to do meanwhile.

        Raises
        ------
        realrun.workers.WorkerError
            If the worker failed or died.
        """
        reply = self.worker.receive(spin=spin)
        if isinstance(reply, Failed):
            raise WorkerError(f"the {self.name} worker failed: {reply.reason}", reply.details)
        assert reply is not None
        work = self.running
        assert work is not None
        work.result = reply
        work.done = True
        self.running = None
        if self._queue:
            self._begin(*self._queue.popleft())
        self._on_done(work)

    def _begin(self, work: Pass, make: Make) -> None:
        self.running = work
        self.worker.send(make())


class Devices:
    """All devices, and the waiting for them.

    Parameters
    ----------
    target, draft
        Workers; `draft` is None where nothing drafts.
    on_done
        Told of every finished pass.
    """

    def __init__(
        self, target: Worker, draft: Worker | None, on_done: Callable[[Pass], None]
    ) -> None:
        self.target = Device(target, "target", 0, on_done)
        self.draft = None if draft is None else Device(draft, "draft", 1, on_done)
        self._all = [self.target] + ([] if self.draft is None else [self.draft])
        self._orders = itertools.count(1)

    def new_pass(self, command: Draft | Score | None, ids: Ids) -> Pass:
        """Return a pass with the next order number."""
        return Pass(command, ids, next(self._orders))

    def wait_all(self, passes: list[Pass]) -> None:
        """Wait until all are finished."""
        for work in passes:
            while not work.done:
                if any(device.queued for device in self._all):
                    self._pump()
                else:
                    # One wake-up less: nothing can start before this one ends.
                    assert work.device is not None
                    work.device.finish_one(spin=self.target.running is None)

    def wait_any(self, passes: list[Pass]) -> list[Pass]:
        """Wait until at least one is finished; return these by device, then by start."""
        while not any(work.done for work in passes):
            self._pump()
        self._drain()
        finished = [work for work in passes if work.done]
        return sorted(finished, key=lambda work: (work.device.index, work.order))  # type: ignore[union-attr]

    def _pump(self, timeout: float | None = None) -> None:
        busy = {device.worker.fileno(): device for device in self._all if device.running}
        for ready in wait(list(busy), timeout):
            busy[ready].finish_one()  # type: ignore[index]

    def _drain(self) -> None:
        """Take in what has finished meanwhile, so that ties are broken by device, not by luck."""
        self._pump(0.0)

    def settle(self) -> None:
        """Wait for what still runs (after a cancel), so that no reply is left over."""
        while any(device.running for device in self._all):
            self._pump()
