"""The words that a schedule says to its executor, and what the executor answers.

A schedule is a generator: it yields a command and is sent back the answer. Commands
carry request ids, shapes and handles; tokens, probabilities and KV stay with the
executor. The same commands are understood by the simulator (`psdsim.engine`) and by a
run on real models, which is why nothing here knows about time or randomness.

===============  ==========================================================================
command          answer
===============  ==========================================================================
``Admit``        `Admitted`: who is new; opens the next engine step
``Prefill``      `Verdict`: every request of it has emitted one token
``Draft``        `Handle`, finished
``Score``        `Handle`, finished
``Judge``        `Verdict` of a finished ``Score``
``Keep``         None; what is not kept counts as discarded
``Start``        `Handle`, running or queued
``WaitAll``      None, once all are finished
``WaitAny``      the finished handles, ordered by device and then by start
``Cancel``       True if the pass had not started (a running pass ends, its result is void)
``WaitArrival``  None, once a request has arrived
===============  ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intp]
"""Request ids, shape (n,), unique."""
Counts = NDArray[np.int64]
"""One whole number per request, shape (n,)."""
Mask = NDArray[np.bool_]
"""One yes or no per request, shape (n,)."""

NO_IDS: Ids = np.empty(0, dtype=np.intp)
MAX_K = 64
"""Longest draft of one round, tokens; the acceptance tape reserves room for two of them."""


class Handle(Protocol):
    """A pass given to a device: what `Start` answers, and what `Judge` and `Keep` refer to."""

    @property
    def done(self) -> bool:
        """Whether the pass has ended."""

    @property
    def preempted(self) -> Ids:
        """Requests that lost their KV when this pass reserved its own; their proposals are void."""


@dataclass(slots=True, eq=False)
class Chunks:
    """Pieces of prompts that ride along in a target pass (chunked prefill).

    Parameters
    ----------
    ids
        Requests, shape (n,).
    n_tokens
        Prompt tokens of each in this pass, shape (n,), >= 1.
    completes
        Whether the piece is the prompt's last, after which the request decodes.
    """

    ids: Ids
    n_tokens: Counts
    completes: Mask


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
class Prefill:
    """Compute the prompts of `ids` on target and draft; each request emits its first token."""

    ids: Ids
    group: int = 0


@dataclass(slots=True, eq=False)
class Draft:
    """Draft `n` tokens for each request, one draft forward per token.

    Parameters
    ----------
    ids
        Requests.
    n
        Tokens to draft: one number for all, or one per request.
    after
        Tentative tokens (per request, or one number) that the draft continues from, on top
        of the confirmed prefix. PEARL drafts a block behind one that is not verified yet.
    group
        Which group of the schedule it is, for records and timelines.
    """

    ids: Ids
    n: int | Counts
    after: int | Counts = 0
    group: int = 0


@dataclass(slots=True, eq=False)
class Score:
    """One target pass over `ids`; it needs no verdict to start.

    Parameters
    ----------
    ids
        Requests that decode in this pass.
    n
        Drafted tokens to test per request: one number, or one per request.
    bonus
        True: the row after the last drafted token yields a token of its own (chain SD).
        False: that row tests the first token of `peek` (PEARL's pre-verify); the pass may
        start before this token exists.
    peek
        The running draft whose first token is tested when `bonus` is False.
    chunks
        Prompt pieces in the same pass.
    group
        Which group of the schedule it is.
    """

    ids: Ids
    n: int | Counts
    bonus: bool = True
    peek: Handle | None = None
    chunks: Chunks | None = None
    group: int = 0


@dataclass(slots=True, eq=False)
class Judge:
    """Apply the acceptance rule to a finished `Score`; the tokens are emitted now."""

    score: Handle


@dataclass(slots=True, eq=False)
class Verdict:
    """What came of a target pass.

    Parameters
    ----------
    n_accepted
        Accepted drafted tokens per request, shape (n,), before the stop clips anything.
        None where nothing was drafted.
    n_tested
        Drafted tokens tested: one number for all, or one per request.
    stopped
        Which requests emitted their last token and left; None if none did.
    joined
        Requests whose prompt was completed in this pass and that decode from now on.
    """

    n_accepted: Counts | None
    n_tested: int | Counts
    stopped: Mask | None
    joined: Ids

    @property
    def hit(self) -> Mask | None:
        """Per request: everything tested was accepted; None where nothing was drafted.

        With ``bonus=False`` that includes the first token of the next block.
        """
        return None if self.n_accepted is None else self.n_accepted == self.n_tested


@dataclass(slots=True, eq=False)
class Keep:
    """Keep a drafted block for the requests in `mask`; for the others it is discarded.

    Parameters
    ----------
    draft
        The finished ``Draft``.
    ids
        The requests of that draft.
    mask
        Whose block lives on, shape (n,); None discards it for all.
    """

    draft: Handle
    ids: Ids
    mask: Mask | None


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


Command = (
    Admit
    | Prefill
    | Draft
    | Score
    | Judge
    | Keep
    | Start
    | WaitAll
    | WaitAny
    | Cancel
    | WaitArrival
)
