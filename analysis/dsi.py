"""DSI: verification tasks fanned out to several target servers (arXiv 2405.14105).

Drafting goes on while verifications run, so that a rejection is all that ever costs a target
pass. t1 is the drafter's forward, t2 the target's, p the probability that a drafted token matches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis import sd
from analysis._checks import FloatArray, IntArray, count, give, give_counts, positive, probability
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
