"""CARD: the target queries a tree of drafts that the drafter keeps growing (arXiv 2508.04462).

No formula is published. What follows from the schedule is that the drafter grows one tree level
per forward, so that no more tokens than levels can come out (own bound), and that the depth of
the tree at an exchange is a Markov chain (own; from the description in the code's repository).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, count, nonnegative, one_count, positive, probability
from analysis._kinds import Bound
from psdsim.errors import InputError


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


def hit_probability(width: ArrayLike, decay: ArrayLike) -> FloatArray:
    """Return 1 - W^-d: P(the target's token is among W candidates | it is not the first one).

    A power law of misses, as SSD's analysis has it for its fan-out; fitted by us, not CARD's.

    Parameters
    ----------
    width
        Candidates W >= 1, the first included.
    decay
        d >= 0.

    Examples
    --------
    >>> float(hit_probability(16, 0.5))
    0.75
    """
    w, d = count("width", width, 1).astype(np.float64), nonnegative("decay", decay)
    return np.asarray(1.0 - w**-d)[()]


@dataclass(frozen=True)
class DepthChain:
    """CARD in its steady state, one request and one exchange at a time.

    Parameters
    ----------
    depth_pmf
        P(the target knows a path of d drafts at an exchange), shape (max_depth + 1,).
    accepted_pmf
        P(a pass accepts n drafts, its own token not counted), shape (max_depth + 1,).
    miss_rate
        P(the target's own token is not in the tree).
    tokens_per_period
        Accepted drafts and own token, mean.
    """

    depth_pmf: FloatArray
    accepted_pmf: FloatArray
    miss_rate: float
    tokens_per_period: float


def depth_chain(
    alpha: float,
    levels_per_exchange: int,
    hit: float,
    branch: float = 1.0,
    max_depth: int = 50,
) -> DepthChain:
    """Solve the Markov chain of the depth that the target knows, exactly, i.i.d. acceptance.

    At depth q the drafter adds f = min(r, max_depth - q) levels. n < q accepted: the target's
    own token is a second choice, in the tree with probability h, whose branch is floor(b (q + f -
    n - 1)) deep. n = q: it is the drafter's first choice with probability alpha, behind which
    f - 1 levels are left, else again a second choice. Not in the tree: depth 0.

    Parameters
    ----------
    alpha
        P(accept), in [0, 1].
    levels_per_exchange
        r >= 1.
    hit
        h, P(in the tree | not the first choice), in [0, 1] (`hit_probability`).
    branch
        b, share of the remaining levels that a second choice's branch has, in [0, 1].
    max_depth
        Deepest tree, >= r.

    Examples
    --------
    Everything is accepted: every period gives its r levels, r - 1 of them drafts of the path.

    >>> steady = depth_chain(1.0, 4, 0.0)
    >>> steady.tokens_per_period, int(steady.accepted_pmf.argmax())
    (4.0, 3)

    Nothing is: plain decoding.

    >>> depth_chain(0.0, 4, 0.0).tokens_per_period
    1.0
    """
    a, h = float(probability("alpha", alpha)), float(probability("hit", hit))
    b = float(probability("branch", branch))
    r = one_count("levels_per_exchange", levels_per_exchange, 1)
    deepest = one_count("max_depth", max_depth)
    if deepest < r:
        raise InputError(f"max_depth is {deepest}", expected=f"at least {r} levels")
    moves, accepted = np.zeros((deepest + 1,) * 2), np.zeros((deepest + 1,) * 2)
    missed = np.zeros(deepest + 1)
    for q in range(deepest + 1):
        f = min(r, deepest - q)
        for n in range(q + 1):
            rest = q + f - n - 1
            reach = a**n
            own_first = a if n == q else 0.0
            if rest < 0:
                # Everything was accepted and nothing new has grown.
                accepted[q, n], missed[q] = reach, missed[q] + reach
                moves[q, 0] += reach
                continue
            second = reach * (1.0 - a)
            accepted[q, n] = second + reach * own_first
            moves[q, rest] += reach * own_first
            moves[q, math.floor(b * rest + 1e-9)] += second * h
            moves[q, 0] += second * (1.0 - h)
            missed[q] += second * (1.0 - h)
    depth = _stationary_from_empty(moves)
    pmf = depth @ accepted
    mean = float(pmf @ np.arange(deepest + 1))
    return DepthChain(depth, pmf, float(depth @ missed), 1.0 + mean)


def _stationary_from_empty(moves: FloatArray) -> FloatArray:
    """Return the long-run shares of the states of a chain that starts in state 0."""
    there = np.zeros(len(moves), dtype=bool)
    there[0] = True
    while True:
        more = there | (moves[there] > 0.0).any(axis=0)
        if (more == there).all():
            break
        there = more
    states = np.flatnonzero(there)
    equations = moves[np.ix_(states, states)].T - np.eye(states.size)
    equations[-1] = 1.0
    wanted = np.zeros(states.size)
    wanted[-1] = 1.0
    shares = np.zeros(len(moves))
    shares[states] = np.clip(np.linalg.solve(equations, wanted), 0.0, 1.0)
    return shares
