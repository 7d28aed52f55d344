"""The shape of a tree of drafts: ranks, what a node is worth, the best tree of n nodes."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import Tree
from psdsim.commands.tree import Path


def sibling_shares(second: float, branch: int) -> tuple[float, ...]:
    """Return the shares of second, third, ... choices among the tokens that aren't the first.

    Each later choice has the same share of what the ones before it left: second (1 - second)^i.

    Parameters
    ----------
    second
        Share of the second choice, 0 to 1.
    branch
        Choices in all, the first one included.

    Examples
    --------
    >>> sibling_shares(0.5, 3)
    (0.5, 0.25)
    """
    return tuple(second * (1.0 - second) ** i for i in range(branch - 1))


def rank_rates(rates: NDArray[np.float64], shares: tuple[float, ...]) -> NDArray[np.float64]:
    """Return P(the target's token is the choice of a rank) by place, shape (k, 1 + siblings)."""
    return np.column_stack([rates, np.outer(1.0 - rates, shares)])


def grow(table: NDArray[np.float64], n_nodes: int) -> Tree | None:
    """Return the tree of n nodes that most is accepted of: always the most valuable node next.

    No node is worth more than its parent or its elder siblings if later choices aren't likelier,
    so that is optimal for every n (EAGLE-2, section 4; Sequoia's trees at any depth).

    Parameters
    ----------
    table
        As from `rank_rates`; the tree is no deeper than its rows.
    n_nodes
        0 gives None. Fewer come back if depth and ranks have no room for more.

    Examples
    --------
    >>> grow(np.array([[0.5, 0.25], [0.5, 0.125]]), 3).paths
    ((1,), (2,), (1, 1))
    """
    depth, n_ranks = table.shape
    if not n_nodes or not depth:
        return None
    paths: list[Path] = []
    # By value, then by age, so that equals come in the order in which they were found.
    waiting: list[tuple[float, int, Path, float]] = [(-float(table[0, 0]), 0, (1,), 1.0)]
    age = 0
    while waiting and len(paths) < n_nodes:
        negative, _, path, above = heappop(waiting)
        paths.append(path)
        if path[-1] < n_ranks:
            value = above * float(table[len(path) - 1, path[-1]])
            heappush(waiting, (-value, age + 1, (*path[:-1], path[-1] + 1), above))
        if len(path) < depth:
            value = -negative * float(table[len(path), 0])
            heappush(waiting, (-value, age + 2, (*path, 1), -negative))
        age += 2
    return Tree(paths)


def tree_gain(tree: Tree | None, table: NDArray[np.float64]) -> float:
    """Return the accepted drafts that a round of a tree is expected to give.

    The sum of the nodes' values, each the product of the rates on its path: exact where verdicts
    are independent given their place in the round.

    Examples
    --------
    >>> tree_gain(Tree([(1,), (2,), (1, 1)]), np.array([[0.5, 0.25], [0.5, 0.25]]))
    1.0
    """
    if tree is None:
        return 0.0
    return float(
        sum(np.prod([table[i, rank - 1] for i, rank in enumerate(path)]) for path in tree.paths)
    )
