"""Commands about the flow: admission, starting, waiting, looking at estimates."""

from __future__ import annotations

from dataclasses import dataclass

from psdsim.commands.passes import Chunks, Draft, Score
from psdsim.commands.words import Handle, Ids


@dataclass(slots=True, eq=False)
class Admit:
    """Open an engine step and take requests in, up to `capacity` in flight.

    The executor chooses who (first come first served, KV blocks, token budget); the
    schedule chooses the group they join and when their prefill runs.

    Parameters
    ----------
    capacity
        Most requests in flight in the whole schedule.
    n_decode_tokens
        With chunked prefill: tokens of the coming target pass that decoding will use; the
        rest of the token budget is filled with prompt pieces. None: whole prompts, run by
        ``Prefill``.
    """

    capacity: int
    n_decode_tokens: int | None = None


@dataclass(slots=True, eq=False)
class Admitted:
    """Answer to `Admit`.

    Parameters
    ----------
    new
        Requests taken in now (their prompt, or what they had before a preemption, is still
        to be computed).
    chunks
        With chunked prefill, the prompt pieces to put into this step's ``Score``.
    exhausted
        Nothing is waiting and nothing will ever arrive.
    """

    new: Ids
    chunks: Chunks | None
    exhausted: bool


@dataclass(slots=True, eq=False)
class Start:
    """Give a pass to its device and go on; devices run passes in the order they were given."""

    command: Draft | Score


@dataclass(slots=True, eq=False)
class WaitAll:
    """Wait until every handle is finished: the barrier of a step."""

    handles: tuple[Handle, ...]


@dataclass(slots=True, eq=False)
class WaitAny:
    """Wait until at least one handle is finished; ties by device, then by start order."""

    handles: tuple[Handle, ...]


@dataclass(slots=True, eq=False)
class Cancel:
    """Take back a queued pass; a running one ends and keeps its device busy, its result void."""

    handle: Handle


@dataclass(slots=True, eq=False)
class WaitArrival:
    """Nothing is in flight: sleep until a request arrives."""


@dataclass(slots=True, eq=False)
class Look:
    """Ask for the `View`: estimates of step times, never the clock."""
