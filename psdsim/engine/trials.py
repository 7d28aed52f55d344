"""What a target pass finds of drafts, and what a drafter believes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import Chances, Counts, Discard, Draft, Ids, Score
from psdsim.engine.batch import Batch
from psdsim.engine.devices import token_total
from psdsim.engine.roster import Roster
from psdsim.engine.stepbook import StepBook
from psdsim.records import RoundLog
from psdsim.verdict import Judge, Signals, block_length, n_tested


@dataclass(slots=True)
class _Behind:
    """Requests seen from behind their tentative tokens."""

    ids: Ids
    cursor: NDArray[np.int64]
    n: int


@dataclass(slots=True)
class Tested:
    """What testing the rows of a pass came to: of each request, and in all."""

    accepted: Counts
    tested: int | Counts
    candidate: Counts | None
    n_accepted: int
    n_emitted: int


class Trials:
    """Tests drafts and keeps count of those that are never tested.

    Parameters
    ----------
    roster, book
        Who is in flight, what is recorded.
    judge
        The acceptance rule; None if nothing is ever drafted.
    rounds
        Where rounds go; None keeps none.
    signals
        Ranks, confidences and candidates; None where there are none to read.
    """

    def __init__(
        self,
        roster: Roster,
        book: StepBook,
        judge: Judge | None,
        rounds: RoundLog | None,
        signals: Signals | None,
    ) -> None:
        self._roster = roster
        self._book = book
        self._judge = judge
        self._rounds = rounds
        self._signals = signals

    def test(self, batch: Batch, score: Score, n: int | Counts) -> Tested:
        """Move the cursors behind what is accepted, and count."""
        assert self._judge is not None
        asked = score if n is score.n else _with_n(score, n)
        tested = n_tested(asked)
        candidate: Counts | None = None
        of: Any = score.of
        k = block_length(asked)
        n_rows: int | None = None
        if of is not None and of.command.tree is not None:
            accepted, n_rows = self._down_the_tree(batch, of.command), of.command.tree.n_nodes
        elif of is not None and of.command.candidates > 1:
            accepted, candidate = self._best(batch, of.command, n, k)
            n_rows = of.command.candidates
        else:
            accepted = self._judge.accepted(batch, asked, k)
        if self._rounds is not None:
            self._rounds.add(batch.ids, tested, accepted)
        n_accepted = int(np.add.reduce(accepted))
        batch.cursor += accepted
        if score.bonus:
            batch.cursor += 1
            n_emitted = n_accepted + batch.n
        else:
            # A pass without bonus row only corrects where something was rejected.
            missed = accepted != tested
            batch.cursor += missed
            batch.uncorrected += 1 - missed
            n_emitted = n_accepted + int(np.count_nonzero(missed))
        if n_rows is None:
            n_verified = token_total(tested, batch.n)
        elif of.command.tree is not None:
            n_verified = n_rows * batch.n
        else:
            n_verified = n_rows * token_total(tested, batch.n)
        self._book.n_verified += n_verified
        if of is not None:
            self.settle_drafts(batch, of, n_verified)
        elif self._roster.open_tokens is not None:
            self._roster.open_tokens[batch.ids] -= tested
        return Tested(accepted, tested, candidate, n_accepted, n_emitted)

    def settle_drafts(self, batch: Batch, of: Any, n_verified: int) -> None:
        """Count as dropped what was drafted for these requests and not tested."""
        drafted = np.broadcast_to(np.asarray(of.n_each, dtype=np.int64), of.ids.shape)
        if of.ids.size != batch.n:
            drafted = drafted[np.isin(of.ids, batch.ids)]
        self._book.tally.n_dropped += int(drafted.sum()) - n_verified
        if self._roster.open_tokens is not None:
            self._roster.open_tokens[batch.ids] -= drafted

    def _down_the_tree(self, batch: Batch, draft: Draft) -> Counts:
        assert self._judge is not None
        assert self._signals is not None
        assert draft.tree is not None
        bits = self._judge.bits(batch, draft.tree.depth, draft.variant)
        places = batch.cursor[:, None] + np.arange(draft.tree.depth)
        return draft.tree.accepted(self._signals.ranks(places, bits))

    def _best(self, batch: Batch, draft: Draft, n: int | Counts, k: int) -> tuple[Counts, Counts]:
        assert self._judge is not None
        assert self._signals is not None
        bits = self._judge.bits(batch, k, draft.variant)
        places = batch.cursor[:, None] + np.arange(k)
        rates = self._judge.rates(k)
        accepted, which = self._signals.best(places, bits, rates, draft.candidates)
        return np.minimum(accepted, n), which

    def rank(self, batch: Batch, score: Score) -> Counts:
        """Look up the target's own token, just emitted, among the drafter's candidates."""
        assert self._judge is not None
        assert self._signals is not None
        own = _Behind(batch.ids, batch.cursor - 1, batch.n)
        rank = self._signals.ranks(own.cursor, self._judge.bits(own, 1)[:, 0])
        return np.where(rank <= score.ranks, rank, 0)

    def chances(
        self, ids: Ids, k: int, after: int | Counts = 0, variant: int | Counts = 0
    ) -> Chances:
        """Return what the drafter believes of k drafts behind `after` tentative tokens."""
        assert self._judge is not None
        assert self._signals is not None
        batch = self._roster.batch(ids)
        behind = _Behind(ids, batch.cursor + after, batch.n)
        bits = self._judge.bits(behind, k, variant)
        places = behind.cursor[:, None] + np.arange(k)
        return self._signals.chances(places, bits, self._judge.rates(k))

    def discard(self, command: Discard) -> None:
        """Answer `Discard`: count drafts that no pass will test."""
        n = np.broadcast_to(np.asarray(command.n, dtype=np.int64), command.ids.shape)
        open_tokens = self._roster.open_tokens
        if open_tokens is not None:
            # Those of a preempted request were counted when it lost them.
            n = np.minimum(n, open_tokens[command.ids])
            open_tokens[command.ids] -= n
        self._book.tally.n_discarded += int(n.sum())


def _with_n(score: Score, n: int | Counts) -> Score:
    """Return a copy of a score that tests other lengths."""
    return Score(score.ids, n, score.bonus, score.peek, of=score.of)
