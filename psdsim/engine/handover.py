"""The price of handing drafts from one device to the other."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy
from simpy.events import Event

from psdsim.engine.devices import Pass
from psdsim.engine.stepbook import StepBook


class Handover:
    """Charges a barrier that ends a drafting phase on a device of its own.

    Parameters
    ----------
    env
        Clock.
    book
        Where the cost is recorded.
    sync_s, per_token_s
        Seconds of a barrier, and for each drafted token handed over.
    """

    def __init__(
        self, env: simpy.Environment, book: StepBook, sync_s: float, per_token_s: float
    ) -> None:
        self._env = env
        self._book = book
        self._sync_s = sync_s
        self._per_token_s = per_token_s
        self.open: list[Pass] = []
        """Drafting phases whose tokens have not been handed over; stays empty on one device."""

    def forget(self, work: Pass) -> None:
        """Leave out a phase that was cancelled."""
        self.open = [other for other in self.open if other is not work]

    def pay(self, handles: tuple[Any, ...]) -> Generator[Event, Any, None]:
        """Spend the time, if one of these passes is a drafting phase that has ended.

        What was drafted before it and has not been handed over comes with it.
        """
        if not any(work.done and work in handles for work in self.open):
            return
        over = [work for work in self.open if work.done]
        self.open = [work for work in self.open if not work.done]
        cost = self._sync_s + self._per_token_s * sum(work.n_tokens for work in over)
        if cost > 0:
            start = self._env.now
            yield self._env.timeout(cost)
            self._book.sync_s += cost
            self._book.span("target", -1, "sync", start, self._env.now)
            self._book.span("draft", -1, "sync", start, self._env.now)
