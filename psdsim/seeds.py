"""Named, keyed random streams: the same (root, replication, stream, block) is the same numbers.

Nothing here depends on the order in which streams are asked for, so serial and
multi-process runs draw identical values.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from psdsim.errors import InputError


class Stream(IntEnum):
    """Every source of randomness in a run; the value is part of the key, so never reuse one."""

    ACCEPTANCE = 0
    """One uniform per request and output position."""
    REQUEST = 1
    """One uniform per request: its own acceptance level."""
    ARRIVALS = 2
    """Inter-arrival gaps."""
    LENGTHS = 3
    """Prompt and output lengths."""
    TARGET_JITTER = 4
    """Relative duration of target passes."""
    DRAFT_JITTER = 5
    """Relative duration of draft passes."""
    SAMPLE = 6
    """Stand-alone samples drawn by theory checks."""
    DRAFT_SAMPLING = 7
    """Real runs: one uniform per request and position for the drafted token."""
    ACCEPT_SAMPLING = 8
    """Real runs: one uniform per request and position for the acceptance test."""
    TARGET_SAMPLING = 9
    """Real runs: one uniform per request and position for the target's own token."""
    RANK = 10
    """One uniform per request and output position: which later candidate the target's token is."""
    CONFIDENCE = 11
    """One uniform per request and output position: the noise in a draft's confidence."""
    HIDDEN = 12
    """One uniform per request and output position: a hidden state of the text."""
    CANDIDATE = 13
    """One uniform per request and output position for each further candidate, by index."""


def generator(
    root: int, replication: int, stream: Stream, block: int = 0, index: int | None = None
) -> np.random.Generator:
    """Return the generator of one stream.

    Parameters
    ----------
    root
        The user's seed, >= 0.
    replication
        Index of the replication, >= 0.
    stream
        Which source of randomness.
    block
        Index of the block inside the stream (request block, pass block), >= 0.
    index
        Which of several streams of this kind, >= 0; None where there is only one.

    Examples
    --------
    >>> a = generator(7, 0, Stream.ACCEPTANCE, 3).random()
    >>> a == generator(7, 0, Stream.ACCEPTANCE, 3).random()
    True
    """
    if root < 0 or replication < 0 or block < 0 or (index or 0) < 0:
        raise InputError(f"seed is {root}", expected="a whole number of at least 0", where="--seed")
    key = (replication, int(stream), block) + (() if index is None else (index,))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(root, spawn_key=key)))
