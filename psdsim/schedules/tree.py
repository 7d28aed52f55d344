"""Serial decoding with a tree of drafts, its size fixed or chosen by the load of the moment."""

from __future__ import annotations

from collections.abc import Sequence

from psdsim.commands import Chunks, Draft, Handle, Ids, Look, Score, Tree, View
from psdsim.errors import InputError
from psdsim.schedules.base import Answered
from psdsim.schedules.serial import SpeculativeDecoding


class TreeDecoding(SpeculativeDecoding):
    """Draft a tree level by level, verify all its nodes in one target pass, keep one path.

    Source: EAGLE (arXiv 2401.15077), EAGLE-2 (2406.16858), Medusa (2401.10774). With several
    trees, every round takes the one with the most expected tokens per second at the batch of the
    moment: a large batch leaves the target no idle arithmetic, and large trees stop paying
    (DSpark's argument, arXiv 2607.05147, for whole trees).

    Parameters
    ----------
    k, capacity, chunked
        See `Schedule`; no tree is deeper than k.
    trees
        What can be drafted; None stands for nothing. Empty: a chain of k.
    gains
        Of several trees: accepted drafts that a round of each is believed to give, >= 0.
    """

    name = "tree"
    summary = "draft a tree, verify all nodes in one target pass and keep the accepted path"
    source = "EAGLE (arXiv 2401.15077); Medusa (arXiv 2401.10774)"

    def __init__(
        self,
        k: int,
        capacity: int,
        *,
        chunked: bool = False,
        trees: Sequence[Tree | None] = (),
        gains: Sequence[float] = (),
    ) -> None:
        super().__init__(k, capacity, chunked=chunked)
        depth = max((tree.depth for tree in trees if tree is not None), default=0)
        if depth > k:
            raise InputError(f"a tree is {depth} levels deep and k is {k}", expected="at most k")
        if len(trees) > 1 and (len(gains) != len(trees) or min(gains) < 0.0):
            raise InputError(
                f"there are {len(trees)} trees and the gains {tuple(gains)}",
                expected="a gain of at least 0 for each tree",
            )
        self.trees = tuple(trees)
        self.gains = tuple(gains)

    @property
    def rows(self) -> int:
        """Most tokens that one request feeds: a row for each node of the largest tree."""
        return max((_nodes(tree) for tree in self.trees), default=self.k) + 1

    @property
    def reach(self) -> int:
        """Most drafted tokens that one request holds KV for: every node."""
        return max(super().reach, self.rows - 1)

    def _propose(self, ids: Ids) -> Answered:
        """Draft the chain, the tree, or the tree that pays most now."""
        if not self.trees:
            return (yield Draft(ids, self.k))
        tree = self.trees[0] if len(self.trees) == 1 else (yield from self._choose(ids.size))
        return None if tree is None else (yield Draft(ids, tree.depth, tree=tree))

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        """Score every node."""
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        depth: int = draft.command.n  # type: ignore[attr-defined]
        return (yield Score(ids, depth, of=draft, chunks=chunks))

    def _choose(self, n_seqs: int) -> Answered:
        """Return the tree with the best rate; the first of equals."""
        view: View = yield Look()

        def rate(place: int) -> float:
            tree = self.trees[place]
            time_s = view.target_s(n_seqs, n_seqs * (_nodes(tree) + 1))
            if tree is not None:
                # A level costs about a forward of one row a request; its further rows are left out.
                time_s += view.draft_s(n_seqs, tree.depth)
            return (1.0 + self.gains[place]) / time_s

        return self.trees[max(range(len(self.trees)), key=rate)]


def _nodes(tree: Tree | None) -> int:
    return 0 if tree is None else tree.n_nodes
