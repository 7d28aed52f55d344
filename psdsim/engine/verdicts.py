"""What a finished target pass means: tokens emitted, requests finished, drafts kept or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import NO_IDS, Chunks, Counts, Keep, Mask, Score, Verdict
from psdsim.engine.batch import Batch
from psdsim.engine.devices import Pass, token_total
from psdsim.engine.roster import Roster
from psdsim.engine.stepbook import StepBook
from psdsim.records import RoundLog
from psdsim.stats import GapLog
from psdsim.verdict import Judge


class Verdicts:
    """Applies the acceptance rule and does everything that follows from it.

    Parameters
    ----------
    roster, book
        Who is in flight, what is recorded.
    judge
        The acceptance rule; None if nothing is ever drafted.
    gaps
        Where inter-token latencies go.
    rounds
        Where rounds go; None keeps none.
    """

    def __init__(
        self,
        roster: Roster,
        book: StepBook,
        judge: Judge | None,
        gaps: GapLog,
        rounds: RoundLog | None = None,
    ) -> None:
        self._roster = roster
        self._book = book
        self._judge = judge
        self._gaps = gaps
        self._rounds = rounds

    def judge(self, handle: Any, now: float) -> Verdict:
        """Answer `Judge`: emit what the pass confirmed."""
        work: Pass = handle
        score = work.command
        assert isinstance(score, Score)
        roster = self._roster
        joined = self._join(work, now) if work.chunk_ids.size else NO_IDS
        if not work.ids.size:
            return Verdict(None, 0, None, joined)
        batch = roster.batch(work.ids)
        accepted: Counts | None = None
        tested: int | Counts = 0
        n_accepted = 0
        if score.bonus and type(score.n) is int and score.n == 0:
            n_emitted, most = batch.n, 1
            batch.cursor += 1
        else:
            accepted, tested, n_accepted, n_emitted, most = self._test(batch, score)
        batch.rounds += 1
        last = batch.last_emit
        if isinstance(last, float):
            self._gaps.add(now - last, batch.n)
        else:
            self._gaps.add_many(now - last)
        batch.last_emit = now
        batch.n_kv += n_emitted
        roster.kv.n_context += n_emitted
        book = self._book
        book.n_accepted += n_accepted
        book.n_emitted += n_emitted
        book.tally.n_round_tokens += n_emitted
        if score.bonus:
            roster.open_drafts.pop(score.group, None)
            roster.kv.reserved.pop(score.group, None)
        stopped = None
        batch.min_left -= most
        if batch.min_left <= 0:
            batch.min_left = int((batch.stop_at - batch.cursor).min())
            if batch.min_left <= 0:
                stopped = self._stop(batch, now)
        return Verdict(accepted, tested, stopped, joined)

    def _test(self, batch: Batch, score: Score) -> tuple[Counts, int | Counts, int, int, int]:
        """Return accepted and tested drafts per request, their sums, and the most emitted."""
        assert self._judge is not None
        n = score.n
        if score.bonus:
            tested = n
            k = n if type(n) is int else int(np.max(n))
        else:
            tested = n + 1
            assert score.peek is not None
            drafted = score.peek.command.n  # type: ignore[attr-defined]
            k = drafted if isinstance(drafted, int) else int(drafted.max())
        accepted = self._judge.accepted(batch, score, k)
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
        if type(tested) is int:
            self._book.n_verified += tested * batch.n
            return accepted, tested, n_accepted, n_emitted, tested + 1
        self._book.n_verified += token_total(tested, batch.n)
        most = int(np.max(tested)) + 1
        return accepted, tested, n_accepted, n_emitted, most

    def _stop(self, batch: Batch, now: float) -> Mask:
        """Let those go that have all their tokens; a block is clipped where the stop lies."""
        over = batch.cursor - batch.stop_at
        stopped: Mask = over >= 0
        clipped = int(over[stopped].sum())
        book, roster = self._book, self._roster
        book.n_emitted -= clipped
        book.n_finished += int(np.count_nonzero(stopped))
        roster.kv.n_context -= clipped
        roster.forget_batches()
        roster.leave(batch.ids[stopped], now)
        return stopped

    def keep(self, command: Keep) -> None:
        """Answer `Keep`: drafts of the rest are discarded.

        One token of each block was the row that the last pass tested (`Score.peek`), so it is
        already counted as accepted or rejected.
        """
        draft: Pass = command.draft  # type: ignore[assignment]
        n = draft.command.n  # type: ignore[union-attr]
        left = np.broadcast_to(np.asarray(n, dtype=np.int64) - 1, command.ids.shape)
        mask = command.mask if command.mask is not None else np.zeros(command.ids.size, np.bool_)
        self._book.tally.n_discarded += int(left[~mask].sum())
        group = draft.command.group  # type: ignore[union-attr]
        self._roster.open_drafts[group] = (command.ids, np.where(mask, left, 0))

    def first_tokens(self, ids: NDArray[np.intp], now: float) -> Verdict:
        """Emit the token that ends a prefill step."""
        stopped = self._roster.first_tokens(ids, now)
        self._book.n_emitted += int(ids.size)
        if stopped is not None:
            self._book.n_finished += int(np.count_nonzero(stopped))
        return Verdict(None, 0, stopped, NO_IDS)

    # --- chunked prefill ----------------------------------------------------------------------

    def take_chunks(self, work: Pass, chunks: Chunks) -> tuple[int, int, int]:
        """Put prompt pieces into a target pass; return their (requests, tokens, KV tokens)."""
        there = self._roster.still_there(chunks)
        work.chunk_ids = chunks.ids[there]
        work.chunk_joined = chunks.ids[there & chunks.completes]
        read = int(self._roster.state.computed[work.chunk_ids].sum())
        return int(work.chunk_ids.size), int(chunks.n_tokens[there].sum()), read

    def _join(self, work: Pass, now: float) -> NDArray[np.intp]:
        assert isinstance(work.command, Score)
        assert work.command.chunks is not None
        chunks = work.command.chunks
        there = np.isin(chunks.ids, work.chunk_ids)
        done = self._roster.chunks_done(
            chunks.ids[there], chunks.n_tokens[there], chunks.completes[there]
        )
        if not done.size:
            return NO_IDS
        first = self.first_tokens(done, now)
        return done if first.stopped is None else done[~first.stopped]
