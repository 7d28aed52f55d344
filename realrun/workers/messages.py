"""What the coordinator says to a worker, and what comes back.

Everything here is small and can be pickled: arrays of ids and tokens, times, and, where text
is sampled, probability rows. Times are `time.perf_counter` seconds, one clock on one machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(slots=True)
class TargetWork:
    """One target pass.

    Parameters
    ----------
    slots, starts, lengths
        The rows (`realrun.models.cache.Rows`), shape (n,) each.
    tokens
        What is fed, flat, shape (sum(lengths),).
    last_only
        Only each row's last token asks for an answer (a prefill).
    """

    slots: Ints
    starts: Ints
    lengths: Ints
    tokens: Ints
    last_only: bool


@dataclass(slots=True)
class DraftWork:
    """One drafting phase: bring the drafter up to date, then draft.

    Parameters
    ----------
    requests, slots
        Whose rows, shape (n,) each.
    keep
        Tokens of each that the drafter already knows and that still hold, shape (n,).
    tokens, lengths
        What follows them (flat) and how much of it there is for each, shape (n,).
    counts
        Tokens to draft for each, shape (n,); 0 everywhere is a prefill.
    confidences
        Whether somebody will ask how probable the drafter finds its tokens.
    """

    requests: Ints
    slots: Ints
    keep: Ints
    tokens: Ints
    lengths: Ints
    counts: Ints
    confidences: bool = False


@dataclass(slots=True)
class BusyWork:
    """Repeat a piece of work until a point in time, to load the machine while others measure."""

    work: TargetWork | DraftWork
    until: float


@dataclass(slots=True)
class Done:
    """A finished piece of work.

    Parameters
    ----------
    start, end
        When the worker began and ended it, s.
    tokens
        Drafted tokens, shape (n, max(counts)); or the target's own choice after each fed token
        (or each row), shape (m,).
    probabilities
        Where text is sampled: the distribution behind each of `tokens`, shape
        (n, max(counts), vocab) or (m, vocab). None with greedy decoding, and for drafters that
        propose one token for certain.
    confidences
        Where asked for: the drafter's own probability of each drafted token, shape
        (n, max(counts)), 0 beyond a request's count. None: not asked for, or it has none.
    """

    start: float
    end: float
    tokens: Ints
    probabilities: Floats | None = None
    confidences: Floats | None = None


@dataclass(slots=True)
class Failed:
    """A piece of work that raised: what, in one sentence, and where.

    Parameters
    ----------
    reason
        One sentence.
    details
        Traceback.
    """

    reason: str
    details: str


Work = TargetWork | DraftWork | BusyWork
Reply = Done | Failed
