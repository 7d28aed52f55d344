"""What a finished target pass means: tokens emitted, requests finished, drafts kept or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import (
    NO_IDS,
    Chunks,
    Counts,
    Discard,
    Ids,
    Keep,
    Mask,
    Score,
    Verdict,
)
from psdsim.commands import Judge as JudgeCommand
from psdsim.engine.batch import Batch
from psdsim.engine.devices import Pass, largest
from psdsim.engine.roster import Roster
from psdsim.engine.stepbook import StepBook
from psdsim.engine.trials import Tested, Trials
from psdsim.stats import GapLog
from psdsim.verdict import n_tested


class Verdicts:
    """Applies the acceptance rule and does everything that follows from it.

    Parameters
    ----------
    roster, book
        Who is in flight, what is recorded.
    trials
        Tests drafts.
    gaps
        Where inter-token latencies go.
    """

    def __init__(
        self,
        roster: Roster,
        book: StepBook,
        trials: Trials,
        gaps: GapLog,
    ) -> None:
        self._roster = roster
        self._book = book
        self._gaps = gaps
        self._trials = trials

    def judge(self, command: JudgeCommand, now: float) -> Verdict:
        """Answer `Judge`: emit what the pass confirmed."""
        work: Pass = command.score  # type: ignore[assignment]
        score = work.command
        assert isinstance(score, Score)
        roster = self._roster
        joined = self._join(work, now) if work.chunk_ids.size else NO_IDS
        ids, n = work.ids, score.n
        if command.ids is not None and command.ids.size != ids.size:
            n = self._leave_out(work, command.ids)
            ids = command.ids
        if not ids.size:
            return Verdict(None, 0, None, joined)
        batch = roster.batch(ids)
        found: Tested | None = None
        if score.bonus and type(n) is int and n == 0:
            n_accepted, n_emitted, most = 0, batch.n, 1
            batch.cursor += 1
            if score.of is not None:
                self._trials.settle_drafts(batch, score.of, 0)
        else:
            found = self._trials.test(batch, score, n)
            n_accepted, n_emitted = found.n_accepted, found.n_emitted
            most = largest(found.tested) + 1
        rank = None if not score.ranks else self._trials.rank(batch, score)
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
            roster.kv.reserved.pop(score.group, None)
        stopped = None
        batch.min_left -= most
        if batch.min_left <= 0:
            batch.min_left = int((batch.stop_at - batch.cursor).min())
            if batch.min_left <= 0:
                stopped = self._stop(batch, now)
        if found is None:
            return Verdict(None, 0, stopped, joined, rank)
        return Verdict(found.accepted, found.tested, stopped, joined, rank, found.candidate)

    def _leave_out(self, work: Pass, kept: Ids) -> int | Counts:
        """Discard the drafts of rows that don't count; return how many the others test."""
        score = work.command
        assert isinstance(score, Score)
        counts = np.isin(work.ids, kept)
        each = np.broadcast_to(np.asarray(n_tested(score), dtype=np.int64), work.ids.shape)
        self._trials.discard(Discard(work.ids[~counts], each[~counts]))
        return score.n if isinstance(score.n, int) else score.n[counts]

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
        already counted as accepted or rejected, unless it is said to be untested.
        """
        draft: Pass = command.draft  # type: ignore[assignment]
        n = draft.command.n  # type: ignore[union-attr]
        tested = 1 if command.untested is None else 1 - command.untested
        left = np.broadcast_to(np.asarray(n, dtype=np.int64) - tested, command.ids.shape)
        if command.mask is None:
            self._trials.discard(Discard(command.ids, left))
        elif not command.mask.all():
            self._trials.discard(Discard(command.ids[~command.mask], left[~command.mask]))

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
