"""CARD: the target queries a tree of drafts that the drafter keeps growing.

No formula is published. What follows from the schedule is that the drafter grows one tree level
per forward, so that no more tokens than levels can come out (own bound).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import count, nonnegative, positive
from analysis._kinds import Bound


def tokens_per_period(levels_per_exchange: ArrayLike) -> Bound:
    """Return the communication ratio, which long-run tokens per period do not pass.

    A single period may give more, up to the depth grown before; the mean may not.

    Parameters
    ----------
    levels_per_exchange
        Drafter forwards between two exchanges, >= 1.

    Examples
    --------
    >>> float(tokens_per_period(4).value)
    4.0
    """
    ratio = count("levels_per_exchange", levels_per_exchange, 1)
    return Bound(ratio.astype(np.float64)[()], "upper")


def speedup(
    levels_per_exchange: ArrayLike, draft_cost_ratio: ArrayLike, exchange_ratio: ArrayLike = 0.0
) -> Bound:
    """Return r / (max(r c, 1) + x), at most the speed over plain decoding; it tends to 1/c.

    Parameters
    ----------
    levels_per_exchange
        r >= 1.
    draft_cost_ratio, exchange_ratio
        A drafter forward (a whole level), > 0, and an exchange, >= 0, / one target pass.

    Examples
    --------
    >>> [float(speedup(r, 0.25).value) for r in (2, 4, 8)]
    [2.0, 4.0, 4.0]
    """
    r = count("levels_per_exchange", levels_per_exchange, 1)
    period = np.maximum(r * positive("draft_cost_ratio", draft_cost_ratio), 1.0)
    period = period + nonnegative("exchange_ratio", exchange_ratio)
    return Bound(np.asarray(r / period)[()], "upper")
