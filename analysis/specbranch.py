"""SpecBranch's formulas, as the paper prints them: values to compare with, not oracles.

The rollback formula counts accepted drafts without the corrected token and takes the number of
rounds approximately; at alpha = 0.8 and k = c = 5 it gives 1.785 where the exact two-state chain
gives 2.283 (theory note 3.5). Hence it comes as an `Approximation`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import count, positive, probability
from analysis._kinds import Approximation, Bound
from analysis.special import geometric_sum


def ideal_speedup(k: ArrayLike, speed_ratio: ArrayLike) -> Bound:
    """Return k c / max(k, c): every draft accepted, drafting and verifying in parallel.

    Printed as a time per token of max(k t, c t)/k, t being a draft forward.

    Parameters
    ----------
    k
        Drafted tokens, >= 1.
    speed_ratio
        c, target pass / draft forward, > 0.

    Examples
    --------
    >>> float(ideal_speedup(5, 5.0).value)
    5.0
    """
    n, ratio = count("k", k, 1), positive("speed_ratio", speed_ratio)
    return Bound(np.asarray(n * ratio / np.maximum(n, ratio))[()], "upper")


def printed_speedup(alpha: ArrayLike, k: ArrayLike, speed_ratio: ArrayLike) -> Approximation:
    """Return c / T with T = 2 max(k, c) / [(1 + a^k) a (1 - a^k)/(1 - a)], over plain decoding.

    T is the printed time per token with rollback, in draft forwards.

    Parameters
    ----------
    alpha
        In [0, 1].
    k, speed_ratio
        As in `ideal_speedup`.

    Examples
    --------
    >>> round(float(printed_speedup(0.8, 5, 5.0).value), 6)
    1.785252
    """
    a, n = probability("alpha", alpha), count("k", k, 1)
    ratio = positive("speed_ratio", speed_ratio)
    accepted = (1.0 + a**n) * a * geometric_sum(a, n)
    value = ratio * accepted / (2.0 * np.maximum(n, ratio))
    return Approximation(
        np.asarray(value)[()],
        None,
        "as printed: leaves out the corrected token, which is 22 % at alpha 0.8 and k = c = 5",
    )
