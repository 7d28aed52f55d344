"""DSI: verification tasks fanned out to several target servers (arXiv 2405.14105).

Drafting goes on while verifications run, so that a rejection is all that ever costs a target
pass. t1 is the drafter's forward, t2 the target's, p the probability that a drafted token matches.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from analysis import sd
from analysis._checks import (
    FloatArray,
    IntArray,
    count,
    give,
    give_counts,
    one_count,
    positive,
    probability,
)
from analysis._kinds import AssumptionError, Bound
from analysis.special import one_minus_power


class DrafterTooSlowError(AssumptionError):
    """The drafter is not faster than the target, which DSI's results assume."""


def _forwards(draft_time_s: ArrayLike, target_time_s: ArrayLike) -> tuple[FloatArray, FloatArray]:
    t1, t2 = positive("draft_time_s", draft_time_s), positive("target_time_s", target_time_s)
    if np.any(t1 > t2):
        raise DrafterTooSlowError(
            "draft_time_s is above target_time_s", expected="a drafter at least as fast"
        )
    return t1, t2


def expected_time(
    n_tokens: ArrayLike, match: ArrayLike, draft_time_s: ArrayLike, target_time_s: ArrayLike
) -> Bound:
    """Return t1 p (N-1) + t2 ((1-p)(N-1) + 1), at least the mean time of N tokens (Prop. 1).

    Assumes i.i.d. matches, enough servers (`servers_needed`) and no communication.

    Parameters
    ----------
    n_tokens
        N >= 1.
    match
        p, in [0, 1].
    draft_time_s, target_time_s
        t1 <= t2.

    Raises
    ------
    DrafterTooSlowError
        If t1 > t2.

    Examples
    --------
    >>> round(float(expected_time(50, 0.8, 0.1, 1.0).value), 9)
    14.72
    """
    t1, t2 = _forwards(draft_time_s, target_time_s)
    p, more = probability("match", match), count("n_tokens", n_tokens, 1) - 1
    return Bound(give(t1 * p * more + t2 * ((1.0 - p) * more + 1.0)), "upper")


def speedup_limit(
    match: ArrayLike, draft_time_s: ArrayLike, target_time_s: ArrayLike
) -> FloatArray:
    """Return 1 / [(1-p) + p t1/t2], DSI over plain decoding for long outputs.

    The same as SD that drafts exactly to its first miss: enough servers mean that a wrong draft
    length never costs anything (theory note 3.3).

    Parameters
    ----------
    match, draft_time_s, target_time_s
        As in `expected_time`.

    Examples
    --------
    >>> round(float(speedup_limit(0.8, 0.1, 1.0)), 7)
    3.5714286
    """
    t1, t2 = _forwards(draft_time_s, target_time_s)
    return sd.oracle_speedup(probability("match", match), t1 / t2)


def servers_needed(
    draft_time_s: ArrayLike, target_time_s: ArrayLike, lookahead: ArrayLike
) -> IntArray:
    """Return ceil(t2 / (k t1)), target servers so that no verification task waits (Eq. 1).

    Parameters
    ----------
    draft_time_s, target_time_s
        t1 <= t2.
    lookahead
        k, tokens per verification task, >= 1.

    Examples
    --------
    >>> int(servers_needed(0.05, 1.0, 5))
    4
    """
    t1, t2 = _forwards(draft_time_s, target_time_s)
    # The slack keeps a quotient that is whole but for rounding from being one server more.
    need = t2 / (count("lookahead", lookahead, 1) * t1)
    return give_counts(np.ceil(need * (1.0 - 1e-12)).astype(np.int64))


def least_lookahead(
    draft_time_s: ArrayLike, target_time_s: ArrayLike, n_servers: ArrayLike
) -> IntArray:
    """Return ceil(t2 / (SP t1)), the smallest lookahead that SP target servers keep up with.

    Parameters
    ----------
    draft_time_s, target_time_s
        t1 <= t2.
    n_servers
        SP >= 1.

    Examples
    --------
    >>> least_lookahead(0.05, 1.0, [7, 3]).tolist()
    [3, 7]
    """
    return servers_needed(draft_time_s, target_time_s, n_servers)


def parallelism_to_match(match: ArrayLike, lookahead: ArrayLike) -> FloatArray:
    """Return 1 / (1 - p^k): how much faster a target must get by tensor parallelism to keep up.

    Of the target passes a share 1 - p^k stays on DSI's critical path.

    Parameters
    ----------
    match
        p, in [0, 1).
    lookahead
        k >= 1.

    Raises
    ------
    AssumptionError
        Where every draft matches, and no pass is left there.

    Examples
    --------
    >>> round(float(parallelism_to_match(0.8, 2)), 2)
    2.78
    """
    left = np.asarray(one_minus_power(match, count("lookahead", lookahead, 1)))
    if np.any(left <= 0.0):
        raise AssumptionError("match is 1", expected="below 1: some target passes must count")
    return give(1.0 / left)


def restart_delay(match: float, draft_time_s: float, target_time_s: float) -> float:
    """Return how long a restart's first forward waits for one that must come to its end, mean s.

    Published DSI ends a rejected thread at once; a device ends the forward it runs. Behind a pass
    that began with a forward this takes (-t2) mod t1, behind m - 1 rejections more of a first
    draft (-m t2) mod t1, which are geometric (own). 0 where t2 is a multiple of t1.

    Parameters
    ----------
    match, draft_time_s, target_time_s
        As in `expected_time`, single numbers; p > 0.

    Examples
    --------
    >>> restart_delay(0.8, 0.25, 1.0), restart_delay(1.0, 0.4, 1.0)
    (0.0, 0.2)
    """
    p = float(probability("match", match))
    t1, t2 = (float(t) for t in _forwards(draft_time_s, target_time_s))
    if not p > 0.0:
        raise AssumptionError("match is 0", expected="above 0: some draft must be waited for")
    n = 1 if p == 1.0 else min(100_000, math.ceil(-40.0 / math.log1p(-p)))
    rejections = np.arange(1, n + 1)
    forwards = rejections * (t2 / t1)
    left = np.ceil(forwards - 1e-9) - forwards
    return float(t1 * np.clip(left, 0.0, None) @ (p * (1.0 - p) ** (rejections - 1)))


def cycle_time(
    match: float,
    draft_time_s: float,
    target_time_s: float,
    lookahead: int = 1,
    *,
    ends_at_once: bool = True,
) -> float:
    """Return t2 + k t1 p / (1 - p^k), mean s from one rejection to the next, 1/(1-p) tokens (own).

    A rejection behind n matches is found by the pass that began with block ceil(n/k). At k = 1
    it gives `speedup_limit`. Assumes enough servers (`servers_needed`).

    Parameters
    ----------
    match
        p in [0, 1).
    draft_time_s, target_time_s
        t1 <= t2.
    lookahead
        k >= 1.
    ends_at_once
        False: a forward that runs at a rejection comes to its end (`restart_delay`).

    Examples
    --------
    >>> cycle_time(0.5, 0.25, 1.0)   # .25 per match, of which there is one
    1.25
    """
    k, p = one_count("lookahead", lookahead, 1), float(probability("match", match))
    t1, t2 = (float(t) for t in _forwards(draft_time_s, target_time_s))
    if p == 1.0:
        raise AssumptionError("match is 1", expected="below 1: a rejection ends a cycle")
    if p == 0.0:
        return t2
    delay = 0.0 if ends_at_once else restart_delay(p, t1, t2)
    return t2 + p * delay + k * t1 * p / float(one_minus_power(p, k))


def expected_time_lookahead(
    n_tokens: int, match: float, draft_time_s: float, target_time_s: float, lookahead: int
) -> float:
    """Return the mean time of N tokens exactly, restarts at once; at k = 1 Prop. 1's bound (own).

    Parameters
    ----------
    n_tokens
        N >= 0.
    match, draft_time_s, target_time_s, lookahead
        As in `cycle_time`; p may be 1.

    Examples
    --------
    >>> round(expected_time_lookahead(50, 0.8, 0.1, 1.0, 1), 9)
    14.72
    >>> expected_time_lookahead(4, 1.0, 0.25, 1.0, 3)   # the second pass begins at .75
    1.75
    """
    n_last, k = one_count("n_tokens", n_tokens), one_count("lookahead", lookahead, 1)
    p = float(probability("match", match))
    t1, t2 = (float(t) for t in _forwards(draft_time_s, target_time_s))
    n = np.arange(n_last + 1)
    reach, found = p**n, t2 + k * t1 * np.ceil(n / k)
    time_s = np.zeros(n_last + 1)
    for left in range(1, n_last + 1):
        # Rejected behind n matches; or the chain is longer than what is left.
        rejected = (1.0 - p) * reach[:left] @ (found[:left] + time_s[left - 1 :: -1][:left])
        time_s[left] = rejected + reach[left] * found[left - 1]
    return float(time_s[n_last])
