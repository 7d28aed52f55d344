"""A worker in the coordinator's own process: the target's, and both on a single GPU."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from contextlib import nullcontext

from realrun.workers.errors import WorkerError
from realrun.workers.messages import Failed, Reply, Work
from realrun.workers.pin import DeviceName, pinned
from realrun.workers.serve import Runner, answer, failed


class ThreadWorker:
    """Runs work in a thread of its own; waiting for it is waiting for a file descriptor.

    Parameters
    ----------
    make_runner
        Builds the runner inside the thread.
    device
        Where the thread is pinned; None leaves it free.
    name
        ``"target"`` or ``"draft"``, for messages.
    """

    def __init__(
        self, make_runner: Callable[[], Runner], device: DeviceName | None, name: str
    ) -> None:
        self.name = name
        self._make_runner = make_runner
        self._device = device
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[Reply | None] = queue.SimpleQueue()
        self._read, self._write = os.pipe()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ready(self) -> None:
        """Wait until the model is loaded; raise what went wrong."""
        self._error_of(self.receive())

    def send(self, work: Work) -> None:
        """Give it work; it runs pieces in order."""
        self._work.put(work)

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when a reply is there."""
        return self._read

    def receive(self, *, spin: bool = False) -> Reply | None:
        """Wait for the next reply; never by spinning, which would keep the thread from its core."""
        os.read(self._read, 1)
        return self._replies.get()

    def close(self) -> None:
        """Let the current piece end, and stop."""
        self._work.put(None)
        self._thread.join(timeout=60.0)
        if not self._thread.is_alive() and self._read >= 0:
            os.close(self._read)
            os.close(self._write)
            self._read = self._write = -1

    @staticmethod
    def _error_of(reply: Reply | None) -> None:
        if isinstance(reply, Failed):
            raise WorkerError(reply.reason, reply.details)

    def _reply(self, reply: Reply | None) -> None:
        self._replies.put(reply)
        os.write(self._write, b"x")

    def _run(self) -> None:
        with pinned(self._device) if self._device is not None else nullcontext():
            try:
                runner = self._make_runner()
            except Exception as error:
                self._reply(failed(error))
                return
            self._reply(None)
            while (work := self._work.get()) is not None:
                self._reply(answer(runner, work))
