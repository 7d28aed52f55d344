"""CPU time in front of a step's first pass, a part of it for each request in the step."""

from __future__ import annotations

import simpy
from simpy.events import Event

from psdsim.commands import Score
from psdsim.engine.devices import Device, Pass
from psdsim.engine.stepbook import StepBook


class StepOverhead:
    """Charges the CPU time of a step once.

    A step counts the requests that it verifies; those that it drafts for, where it verifies
    none; those that it prefills, where it decodes none. Passes that start together are held
    until all of them are known.

    Parameters
    ----------
    env, book
        Clock, records.
    fixed_s, per_seq_s
        Seconds of a step, and for each request in it.
    """

    def __init__(
        self, env: simpy.Environment, book: StepBook, fixed_s: float, per_seq_s: float
    ) -> None:
        self._env = env
        self._book = book
        self._fixed_s = fixed_s
        self._per_seq_s = per_seq_s
        self._ready_at = -1.0
        self.held: list[tuple[Device, Pass, float, int]] = []
        """Passes (device, pass, seconds, requests) of a step whose overhead is not known yet."""

    def open(self) -> None:
        """Begin a step: its first pass will be charged."""
        self._ready_at = -1.0

    def submit(self, device: Device, work: Pass, duration: float, n_seqs: int) -> None:
        """Give a pass to its device, behind the step's overhead."""
        ready_at = self._ready_at
        if ready_at < 0:
            if self._per_seq_s:
                self._book.used = True
                work.event = Event(self._env)
                self.held.append((device, work, duration, n_seqs))
                return
            ready_at = self.not_before(n_seqs)
        device.submit(work, duration, ready_at)

    def release(self) -> None:
        """Let the held passes go: no other will start with them."""
        verified = sum(n for _, work, _, n in self.held if isinstance(work.command, Score))
        drafted = sum(n for _, work, _, n in self.held if not isinstance(work.command, Score))
        not_before = self.not_before(verified or drafted)
        for device, work, duration, _ in self.held:
            device.submit(work, duration, not_before)
        self.held.clear()

    def not_before(self, n_seqs: int) -> float:
        """Return when the step's passes may begin; the first call charges the time."""
        if self._ready_at < 0:
            now, book = self._env.now, self._book
            overhead_s = self._fixed_s
            if self._per_seq_s:
                overhead_s += self._per_seq_s * n_seqs
            self._ready_at = now + overhead_s
            book.used = True
            book.overhead_s = overhead_s
            if book.spans is not None:
                book.span("target", -1, "overhead", now, self._ready_at)
        return self._ready_at
