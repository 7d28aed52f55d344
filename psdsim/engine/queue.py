"""Where requests wait: fed by a list of arrivals, by a closed loop, or by a router."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

import simpy
from simpy.events import Event

from psdsim.commands import Ids
from psdsim.engine.state import RequestState


class WaitingQueue(ABC):
    """First come first served; preempted requests go back to the front (vLLM's order)."""

    def __init__(self, env: simpy.Environment, state: RequestState) -> None:
        self.env = env
        self.state = state
        self.front: deque[int] = deque()

    @abstractmethod
    def update(self) -> None:
        """Let in what has arrived by now."""

    @property
    @abstractmethod
    def n_waiting(self) -> int:
        """Requests that wait."""

    @property
    @abstractmethod
    def exhausted(self) -> bool:
        """Nothing waits and nothing will ever arrive."""

    @abstractmethod
    def peek(self) -> int:
        """Return who is next in line."""

    @abstractmethod
    def pop(self) -> None:
        """Take the next one out of the line."""

    @abstractmethod
    def arrival(self) -> Event | None:
        """Return an event that fires when somebody is waiting; None if it is so already."""

    def finished(self, n: int) -> None:  # noqa: B027 (most queues don't care)
        """Hear that n requests have left."""


class StaticQueue(WaitingQueue):
    """Requests with known arrival times: a batch, an open arrival process, a trace."""

    def __init__(self, env: simpy.Environment, state: RequestState, ids: Ids) -> None:
        super().__init__(env, state)
        self._ids: list[int] = ids.tolist()
        self._times: list[float] = state.arrival_s[ids].tolist()
        self._n = len(self._ids)
        self._arrived = 0
        self._taken = 0

    def update(self) -> None:
        """Advance over arrivals up to now."""
        i, n = self._arrived, self._n
        if i == n:
            return
        now = self.env.now
        times = self._times
        while i < n and times[i] <= now:
            i += 1
        self._arrived = i

    @property
    def n_waiting(self) -> int:
        """Requests that wait."""
        return self._arrived - self._taken + len(self.front)

    @property
    def exhausted(self) -> bool:
        """Nothing waits and nothing will ever arrive."""
        return self._taken == self._n and not self.front

    def peek(self) -> int:
        """Return who is next in line."""
        return self.front[0] if self.front else self._ids[self._taken]

    def pop(self) -> None:
        """Take the next one out of the line."""
        if self.front:
            self.front.popleft()
        else:
            self._taken += 1

    def arrival(self) -> Event | None:
        """Return an event that fires at the next arrival."""
        if self.n_waiting:
            return None
        event = self.env.timeout(max(self._times[self._arrived] - self.env.now, 0.0))
        event.callbacks.append(self._came)
        return event

    def _came(self, _: Event) -> None:
        # now + (t - now) can round to just below t; the arrival has happened all the same.
        self._arrived = max(self._arrived, self._taken + 1)


class FedQueue(WaitingQueue):
    """Requests put in one by one while the run goes on."""

    def __init__(self, env: simpy.Environment, state: RequestState) -> None:
        super().__init__(env, state)
        self._line: deque[int] = deque()
        self._bell: Event | None = None
        self.closed = False

    def put(self, request: int) -> None:
        """Add a request that arrives now."""
        self._line.append(request)
        self._ring()

    def close(self) -> None:
        """Say that nothing more will come."""
        self.closed = True
        self._ring()

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell.succeed()
            self._bell = None

    def update(self) -> None:
        """Nothing to do: arrivals are put in when they happen."""

    @property
    def n_waiting(self) -> int:
        """Requests that wait."""
        return len(self._line) + len(self.front)

    @property
    def exhausted(self) -> bool:
        """Nothing waits and nothing will ever arrive."""
        return self.closed and not self._line and not self.front

    def peek(self) -> int:
        """Return who is next in line."""
        return self.front[0] if self.front else self._line[0]

    def pop(self) -> None:
        """Take the next one out of the line."""
        (self.front or self._line).popleft()

    def arrival(self) -> Event | None:
        """Return an event that fires when a request is put in or the queue is closed."""
        if self.n_waiting or self.closed:
            return None
        if self._bell is None:
            self._bell = Event(self.env)
        return self._bell


class ClosedLoopQueue(FedQueue):
    """A fixed number of clients, each sending its next request when the last one finished."""

    def __init__(
        self,
        env: simpy.Environment,
        state: RequestState,
        ids: Ids,
        concurrency: int,
    ) -> None:
        super().__init__(env, state)
        self._later = deque(ids.tolist())
        self._send(min(concurrency, len(self._later)))

    def _send(self, n: int) -> None:
        for _ in range(min(n, len(self._later))):
            request = self._later.popleft()
            self.state.arrival_s[request] = self.env.now
            self.put(request)
        if not self._later:
            self.close()

    def finished(self, n: int) -> None:
        """Send the next n requests."""
        if self._later:
            self._send(n)
