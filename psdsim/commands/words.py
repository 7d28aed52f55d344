"""The small words of a schedule: ids, counts, handles, shapes of proposals, what it may look at."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intp]
"""Request ids, shape (n,), unique."""
Counts = NDArray[np.int64]
"""One whole number per request, shape (n,)."""
Mask = NDArray[np.bool_]
"""One yes or no per request, shape (n,)."""
Chances = NDArray[np.float64]
"""P(accepted, given that all before it were) as estimated for each draft, shape (n, longest)."""

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

    @property
    def ids(self) -> Ids:
        """Requests that are in the pass, shape (n,): those asked for, less those preempted."""

    @property
    def lengths(self) -> Counts:
        """Drafted tokens of each request of `ids`, shape (n,): after a `Draft.stop` has stopped."""


class StopRule(Protocol):
    """Ends a draft before its full length, from what is believed of the tokens drafted so far."""

    def __call__(self, chances: Chances) -> Counts:
        """Return how many tokens each request drafts, shape (n,), 1 to chances.shape[1].

        Whether a request stops behind token j may depend on `chances[:, : j + 1]` only: the rest
        has not been drafted yet.
        """


class View(Protocol):
    """What an adaptive schedule may know of time: estimates of passes at the present context."""

    def target_s(self, n_seqs: int, n_tokens: int) -> float:
        """Return estimated seconds of a target pass over requests with so many tokens fed."""

    def draft_s(self, n_seqs: int, n: int) -> float:
        """Return estimated seconds of a drafting phase of n tokens for each of n_seqs requests."""
