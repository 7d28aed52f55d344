"""A worker in a process of its own, with its own core or GPU."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

import torch

from realrun.workers.errors import WorkerError
from realrun.workers.messages import Failed, Reply, Work
from realrun.workers.pin import DeviceName, pinned
from realrun.workers.serve import Runner, answer, failed

_CLOSE_TIMEOUT_S = 10.0
_SPIN_S = 0.05


class ProcessWorker:
    """Runs work in a child process (spawned, so that no thread of the parent is copied).

    The child ends by itself when the parent does, however that comes: its pipe breaks.

    Parameters
    ----------
    make_runner
        Builds the runner inside the child; can be pickled.
    device
        Where the child runs.
    name
        For messages.
    """

    def __init__(self, make_runner: Callable[[], Runner], device: DeviceName, name: str) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self.process = context.Process(
            target=_child, args=(make_runner, device, theirs), name=name, daemon=True
        )
        # Ctrl-C goes to the whole group; what becomes of the child, the parent decides.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        theirs.close()

    def ready(self) -> None:
        """Wait until the model is loaded; raise what went wrong."""
        reply = self.receive()
        if isinstance(reply, Failed):
            raise WorkerError(reply.reason, reply.details)

    def send(self, work: Work) -> None:
        """Give it work; it runs pieces in order."""
        try:
            self._connection.send(work)
        except (BrokenPipeError, ConnectionResetError):
            raise WorkerError(self._obituary()) from None

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when a reply is there."""
        return self._connection.fileno()

    def receive(self, *, spin: bool = False) -> Reply | None:
        """Wait for the next reply.

        Parameters
        ----------
        spin
            Watch for it instead of sleeping at first: the caller's core has nothing else to do.

        Raises
        ------
        WorkerError
            If the process is gone.
        """
        try:
            if spin:
                watch(self._connection)
            reply: Reply | None = self._connection.recv()
        except (EOFError, OSError):  # OSError: it died in the middle of a reply
            raise WorkerError(self._obituary()) from None
        return reply

    def close(self) -> None:
        """Let the current piece end, and stop; what does not stop is killed."""
        with suppress(OSError, ValueError):  # it may be gone already
            self._connection.send(None)
        self.process.join(timeout=_CLOSE_TIMEOUT_S)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self._connection.close()

    def _obituary(self) -> str:
        self.process.join(timeout=_CLOSE_TIMEOUT_S)
        code = self.process.exitcode
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            if -code == signal.SIGKILL:
                how += " (out of memory?)"
        else:
            how = f"ended with exit code {code}"
        return f"the {self.name} worker {how}"


def watch(connection: Connection) -> None:
    """Poll for a while: a core that sleeps takes long to wake, above all in a virtual machine."""
    end = time.perf_counter() + _SPIN_S
    while not connection.poll() and time.perf_counter() < end:
        pass


def _child(make_runner: Callable[[], Runner], device: DeviceName, connection: Connection) -> None:
    if device.kind == "cpu":
        torch.set_num_threads(1)
    with pinned(device):
        try:
            runner = make_runner()
        except Exception as error:
            connection.send(failed(error))
            return
        connection.send(None)
        try:
            while True:
                watch(connection)
                work = connection.recv()
                if work is None:
                    return
                connection.send(answer(runner, work))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return  # the parent is gone
