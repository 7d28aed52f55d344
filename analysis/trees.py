"""Token trees: what a tree of drafts is worth, and the best tree of n nodes.

A node's value is the probability that the whole path to it is accepted; a tree's acceptance
length is the sum of its nodes' values, the root (the token that is always emitted) counting 1.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import (
    FloatArray,
    IntArray,
    count,
    give,
    nonnegative,
    one_count,
    positive,
    probability,
)
from analysis._kinds import Approximation, AssumptionError
from psdsim.errors import InputError


def node_values(parents: ArrayLike, rates: ArrayLike) -> FloatArray:
    """Return V_i, the product of the rates on the way from the root (EAGLE-2, section 4.1).

    Parameters
    ----------
    parents
        Shape (nodes,): parents[0] = -1 is the root, every parent precedes its children.
    rates
        Shape (nodes,): P(node accepted | its parent accepted), or the draft's confidence in its
        place; that of the root is not read.

    Examples
    --------
    >>> node_values([-1, 0, 0, 1], [1.0, 0.5, 0.25, 0.5]).tolist()
    [1.0, 0.5, 0.25, 0.25]
    """
    found = probability("rates", rates)
    up = count("parents + 1", np.asarray(parents) + 1) - 1
    if up.ndim != 1 or up.shape != found.shape or up.size == 0 or up[0] != -1:
        raise InputError("parents is no tree", expected="-1 first, one parent and rate per node")
    if np.any(up[1:] < 0) or np.any(up >= np.arange(up.size)):
        raise InputError("parents is out of order", expected="every parent before its children")
    values = np.ones(up.size)
    for node in range(1, up.size):
        values[node] = values[up[node]] * found[node]
    return values


def tree_acceptance_length(parents: ArrayLike, rates: ArrayLike) -> float:
    """Return the sum of `node_values`: expected tokens per pass of a tree (theory note 2.8).

    Siblings exclude each other; a chain gives 1 + sum of products.

    Parameters
    ----------
    parents, rates
        As in `node_values`.

    Examples
    --------
    >>> tree_acceptance_length([-1, 0, 0, 1], [1.0, 0.5, 0.25, 0.5])
    2.0
    """
    return float(node_values(parents, rates).sum())


def rerank(parents: ArrayLike, rates: ArrayLike, n_nodes: int) -> IntArray:
    """Return the indices of the root and the n - 1 best other nodes, in order (EAGLE-2).

    A child is worth no more than its parent, and of equal ones the earlier is taken, so the
    result is a tree: the best one of n nodes within the given one.

    Parameters
    ----------
    parents, rates
        As in `node_values`.
    n_nodes
        Nodes to keep, >= 1, the root among them.

    Examples
    --------
    >>> rerank([-1, 0, 0, 1], [1.0, 0.5, 0.25, 0.9], 3).tolist()
    [0, 1, 3]
    """
    values = node_values(parents, rates)
    keep = np.lexsort((np.arange(values.size), -values))[: one_count("n_nodes", n_nodes, 1)]
    return np.sort(keep).astype(np.int64)


def _rank_rates(rank_rates: ArrayLike) -> FloatArray:
    p = probability("rank_rates", rank_rates)
    if p.ndim != 1 or p.size == 0 or p.sum() > 1.0 + 1e-9:
        raise InputError("rank_rates is no law of ranks", expected="a list with a sum up to 1")
    if np.any(np.diff(p) > 0):
        raise AssumptionError("rank_rates increases", expected="the likelier child first")
    return p


def sequoia_values(
    rank_rates: ArrayLike, max_nodes: int, max_depth: int | None = None
) -> FloatArray:
    """Return the acceptance length of the best trees of 0..n nodes (Sequoia, theory note 2.8).

    T[n, b] = max over m of T[n - m, b - 1] + p_b T*[m]: the best tree of n nodes whose root has
    up to b children, T* being T at the most children, one level lower. O(n^2 b) per level; one
    level's work if the depth isn't limited.

    Parameters
    ----------
    rank_rates
        p_b, shape (children,): P(the b-th child is the accepted one | parent accepted), not
        increasing, at most 1 in sum.
    max_nodes
        n >= 1, the root included.
    max_depth
        Levels below the root, >= 0; None: no limit.

    Examples
    --------
    >>> sequoia_values([0.5, 0.25], 4).tolist()     # 1, then .5, .25 and .25
    [0.0, 1.0, 1.5, 1.75, 2.0]
    >>> sequoia_values([0.5], 4, max_depth=1).tolist()
    [0.0, 1.0, 1.5, 1.5, 1.5]
    """
    p, n = _rank_rates(rank_rates), one_count("max_nodes", max_nodes, 1)
    best = np.append(0.0, np.ones(n))
    if max_depth is None:
        # A subtree is smaller than its tree, so one table can be read while it is filled.
        return _one_level(p, best, best)
    for _ in range(min(one_count("max_depth", max_depth), n)):
        best = _one_level(p, np.append(0.0, np.ones(n)), best)
    return best


def _one_level(p: FloatArray, best: FloatArray, below: FloatArray) -> FloatArray:
    n = best.size - 1
    # value[b, m]: up to b children and up to m nodes.
    value = np.ones((p.size + 1, n + 1))
    for size in range(2, n + 1):
        subtree = np.arange(1, size)
        for b in range(1, p.size + 1):
            grown = value[b - 1, size - subtree] + p[b - 1] * below[subtree]
            value[b, size] = max(value[b - 1, size], float(grown.max()))
        best[size] = value[p.size, size]
    return best


def best_tree(
    rank_rates: ArrayLike, n_nodes: int, max_depth: int | None = None
) -> tuple[IntArray, IntArray]:
    """Return (parents, ranks) of a tree that reaches `sequoia_values`, best nodes first.

    Always the most valuable node that is not yet in: as no node is worth more than its parent or
    than its elder siblings, that is optimal for every n (the argument of EAGLE-2 and TETRIS).

    Parameters
    ----------
    rank_rates, max_depth
        As in `sequoia_values`.
    n_nodes
        Nodes, the root included, >= 1; fewer come back if the depth has no room for them.

    Returns
    -------
    Two arrays of shape (nodes,): the parent's index, -1 for the root; and the rank among the
    siblings from 0, -1 for the root.

    Examples
    --------
    >>> parents, ranks = best_tree([0.5, 0.25], 4)
    >>> parents.tolist(), ranks.tolist()
    ([-1, 0, 0, 1], [-1, 0, 1, 0])
    """
    p, n = _rank_rates(rank_rates), one_count("n_nodes", n_nodes, 1)
    depth_limit = n if max_depth is None else one_count("max_depth", max_depth)
    parents, ranks = [-1], [-1]
    # Value, then age as the tie-break: (-value, count, parent, rank, depth, value of the parent).
    waiting = [(-float(p[0]), 0, 0, 0, 1, 1.0)] if depth_limit else []
    age = 0
    while waiting and len(parents) < n:
        negative, _, parent, rank, depth, above = heappop(waiting)
        node = len(parents)
        parents.append(parent)
        ranks.append(rank)
        if rank + 1 < p.size:
            age += 1
            heappush(waiting, (-above * float(p[rank + 1]), age, parent, rank + 1, depth, above))
        if depth < depth_limit:
            age += 1
            heappush(waiting, (negative * float(p[0]), age, node, 0, depth + 1, -negative))
    return np.asarray(parents, dtype=np.int64), np.asarray(ranks, dtype=np.int64)


def tree_speedup(
    acceptance_length: ArrayLike,
    depth: ArrayLike,
    draft_cost_ratio: ArrayLike,
    verify_to_target: ArrayLike = 1.0,
) -> FloatArray:
    """Return T / (depth c + v): a tree over plain decoding (Sequoia's hardware-aware choice).

    Parameters
    ----------
    acceptance_length
        T, e.g. from `sequoia_values`, >= 1.
    depth
        Drafter passes, one per level, >= 0.
    draft_cost_ratio, verify_to_target
        c >= 0, a drafter pass, and v > 0, the pass over the tree, / a plain pass.

    Examples
    --------
    >>> float(tree_speedup(3.0, 4, 0.125))
    2.0
    """
    drafting = count("depth", depth) * nonnegative("draft_cost_ratio", draft_cost_ratio)
    time = drafting + positive("verify_to_target", verify_to_target)
    return give(positive("acceptance_length", acceptance_length) / time)


def sibling_alpha(alpha: ArrayLike, n_siblings: ArrayLike) -> Approximation:
    """Return 1 - (1 - a)^n, the acceptance of n siblings taken as independent (SpecTr).

    Parameters
    ----------
    alpha
        a of one child, in [0, 1].
    n_siblings
        >= 0.

    Examples
    --------
    >>> float(sibling_alpha(0.5, 2).value)
    0.75
    """
    miss = 1.0 - probability("alpha", alpha)
    return Approximation(
        give(1.0 - miss ** count("n_siblings", n_siblings)),
        None,
        "siblings are judged against one target law, so they are not independent; mostly too high",
    )
