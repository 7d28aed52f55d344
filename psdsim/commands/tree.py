"""The shape of a tree of drafts: which candidates follow which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from psdsim.errors import InputError

Path = tuple[int, ...]
"""A node: the ranks, 1 for the drafter's first choice, from the root down to it."""


class Tree:
    """Nodes of a tree proposal, each a path of ranks; siblings exclude each other.

    Parameters
    ----------
    paths
        The nodes, in any order; the node above each must be among them. The root (the last
        confirmed token) is no node.

    Examples
    --------
    >>> tree = Tree([(1,), (2,), (1, 1)])
    >>> tree.n_nodes, tree.depth, tree.widths
    (3, 2, (2, 1))
    """

    def __init__(self, paths: Iterable[Sequence[int]]) -> None:
        nodes = sorted({tuple(int(r) for r in path) for path in paths}, key=lambda p: (len(p), p))
        if not nodes or min(min(node, default=0) for node in nodes) < 1:
            raise InputError("a tree has no node, or a rank below 1", expected="paths of ranks")
        index = {(): 0} | {node: i + 1 for i, node in enumerate(nodes)}
        most = max(max(node) for node in nodes)
        self.child: NDArray[np.int64] = np.zeros((len(nodes) + 1, most), dtype=np.int64)
        """Node below a node by rank - 1, shape (n_nodes + 1, largest rank); 0: there is none."""
        for node in nodes:
            if node[:-1] not in index:
                raise InputError(
                    f"a tree has the node {node} and not the one above it",
                    expected="every node's parent among the nodes",
                )
            self.child[index[node[:-1]], node[-1] - 1] = index[node]
        self.n_nodes = len(nodes)
        self.depth = len(nodes[-1])
        lengths = [len(node) for node in nodes]
        self.widths = tuple(lengths.count(d) for d in range(1, self.depth + 1))
        """Nodes of each level."""
        self.paths: tuple[Path, ...] = tuple(nodes)

    def accepted(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how deep each request goes down the tree.

        Parameters
        ----------
        ranks
            Shape (n, depth): the rank of the target's token at each position among the drafter's
            candidates, 0 where it is not among them.
        """
        node = np.zeros(len(ranks), dtype=np.int64)
        deep = np.zeros(len(ranks), dtype=np.int64)
        going = np.ones(len(ranks), dtype=np.bool_)
        most = self.child.shape[1]
        for level in range(self.depth):
            rank = ranks[:, level]
            below = self.child[node, np.clip(rank, 1, most) - 1]
            going &= (rank >= 1) & (rank <= most) & (below > 0)
            node = np.where(going, below, node)
            deep += going
        return deep
