"""From a command to a pass on its device: memory, rows, durations, what the step's record says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from psdsim.commands import NO_IDS, Chances, Counts, Discard, Draft, Ids, Score
from psdsim.engine.costs import PassCosts
from psdsim.engine.devices import Device, Pass, largest, token_total
from psdsim.engine.handover import Handover
from psdsim.engine.overhead import StepOverhead
from psdsim.engine.roster import Roster
from psdsim.engine.stepbook import StepBook
from psdsim.engine.trials import Trials
from psdsim.engine.verdicts import Verdicts


class Passes:
    """Gives drafting phases and target passes to their devices, and takes them back.

    Parameters
    ----------
    roster, book, trials, verdicts, costs
        Who is in flight, what is recorded, who is accepted, what follows, how long passes take.
    overhead, handover
        What a step costs beside its passes.
    targets, draft
        Devices, one for each copy of the target; `draft` is the first target where both models
        share one.
    drafts
        Whether anything is ever drafted.
    """

    def __init__(
        self,
        roster: Roster,
        book: StepBook,
        trials: Trials,
        verdicts: Verdicts,
        costs: PassCosts,
        overhead: StepOverhead,
        handover: Handover,
        targets: list[Device],
        draft: Device,
        drafts: bool,
    ) -> None:
        self.roster = roster
        self.book = book
        self._trials = trials
        self._verdicts = verdicts
        self._costs = costs
        self._overhead = overhead
        self._handover = handover
        self.targets = targets
        self.draft = draft
        self.drafts = drafts
        self._separate = draft not in targets
        self._kv_bound = roster.kv.n_blocks is not None
        self._last_draft: Pass | None = None
        self.order = 0
        self._debt = 0

    def submit(self, command: Draft | Score) -> Pass:
        """Give a pass to its device."""
        if type(command) is Draft:
            return self.submit_draft(command)
        assert isinstance(command, Score)
        return self.submit_score(command)

    def submit_draft(self, command: Draft) -> Pass:
        """Give a drafting phase to the draft's device."""
        ids, n, after = command.ids, command.n, command.after
        book, roster = self.book, self.roster
        lost = NO_IDS
        if self._kv_bound:
            # Every node of a tree and every candidate has its place until the verdict.
            held = command.tree.n_nodes if command.tree is not None else largest(n)
            held = held * command.candidates + largest(after) + 1
            lost = self._reserve(ids, held, command.group)
        if lost.size:
            keep = ~np.isin(ids, lost)
            ids = ids[keep]
            n = n if isinstance(n, int) else n[keep]
            after = after if isinstance(after, int) else after[keep]
            if not isinstance(command.variant, int):
                # Verdicts look variants up by the requests that are left.
                command = replace(command, ids=ids, n=n, after=after, variant=command.variant[keep])
        self.order += 1
        work = Pass(command, ids, self.order)
        batch = roster.batch(ids)
        plain = command.passes is None and command.width == command.inputs == 1
        if command.stop is not None and batch.n:
            n = self._stopped(command, ids, n, after)
        each: int | Counts = n
        if command.tree is not None:
            each, plain = command.tree.n_nodes, False
        elif command.width > 1 or command.candidates > 1:
            each = n * command.width * command.candidates
        work.n_each = each
        drafted = each * batch.n if type(each) is int else token_total(each, batch.n)
        batch.drafted = batch.drafted + each
        work.n_tokens = drafted
        if self._kv_bound:
            work.preempted = lost
            assert roster.open_tokens is not None
            roster.open_tokens[ids] += each
        book.draft_group = command.group
        book.n_draft_seqs += batch.n
        book.n_drafted += drafted
        n_kv = batch.n_kv
        if type(after) is not int or after:
            n_kv += token_total(after, batch.n)
        duration = 0.0
        if batch.n:
            shape = None if plain else command
            duration = self._costs.draft_phase(batch.n, n, n_kv, self._debt, shape)
        self._debt = 0
        book.draft_time_s += duration
        self._overhead.submit(self.draft, work, duration, batch.n)
        if self._separate:
            self._last_draft = work
            self._handover.open.append(work)
        if book.spans is not None:
            book.span_when_done(work, "draft", command.group, drafted)
        return work

    def submit_score(self, command: Score) -> Pass:
        """Give a target pass to the copy of the target that it names."""
        ids, book, roster = command.ids, self.book, self.roster
        self.order += 1
        work = Pass(command, ids, self.order)
        if (
            self._kv_bound
            and ids.size
            and command.bonus
            and command.group not in roster.kv.reserved
        ):
            work.preempted = self._reserve(ids, largest(command.n) + 1, command.group)
            if work.preempted.size:
                work.ids = ids = ids[~np.isin(ids, work.preempted)]
        batch = roster.batch(ids)
        n_tokens = self._rows(command, batch.n)
        n_seqs, n_kv = batch.n, batch.n_kv
        if command.chunks is not None:
            chunk_seqs, chunk_tokens, chunk_kv = self._verdicts.take_chunks(work, command.chunks)
            n_seqs += chunk_seqs
            n_tokens += chunk_tokens
            n_kv += chunk_kv
            book.n_prefill_tokens += chunk_tokens
            if self.drafts and work.chunk_joined.size:
                s = roster.state
                done = work.chunk_joined
                self._debt += int((s.prompt_tokens[done] + s.emitted[done]).sum())
        # Its drafts ended within this step: the target had nothing to do meanwhile.
        last = self._last_draft
        waited = last is not None and last.done and last.end > book.start_s
        duration = self._costs.target_pass(n_seqs, n_tokens, n_kv, waited) if n_seqs else 0.0
        work.n_tokens = n_tokens
        book.verify_group = command.group
        book.n_verify_seqs += batch.n
        book.n_kv = n_kv
        book.verify_time_s += duration
        # A step that decodes nobody counts those whose prompts it reads.
        self._overhead.submit(self.targets[command.on], work, duration, batch.n or n_seqs)
        if book.spans is not None:
            book.span_when_done(work, "verify", command.group, n_tokens)
        return work

    def _stopped(self, command: Draft, ids: Ids, n: int | Counts, after: int | Counts) -> Counts:
        """Return how much is drafted by a draft that may stop early."""
        assert command.stop is not None
        chances = self._trials.chances(ids, largest(n), after, command.variant)
        return np.minimum(np.asarray(command.stop(chances), dtype=np.int64), n)

    def confidence(self, handle: Any) -> Chances:
        """Answer `Confidence`: places that were not drafted are 0."""
        work: Pass = handle
        command = work.command
        assert isinstance(command, Draft)
        lengths = work.lengths
        longest = int(lengths.max(initial=0))
        chances = self._trials.chances(work.ids, longest, command.after, command.variant)
        return np.where(np.arange(longest) < lengths[:, None], chances, 0.0)

    @staticmethod
    def _rows(command: Score, n_seqs: int) -> int:
        """Return the tokens fed for the requests of a pass."""
        rows = command.rows
        if rows is not None:
            return token_total(rows, n_seqs)
        of: Any = command.of
        if of is not None and of.command.tree is not None:
            return (int(of.command.tree.n_nodes) + 1) * n_seqs
        tested = token_total(command.n, n_seqs)
        if of is not None:
            tested *= of.command.candidates
        # The last token before the drafts is fed, too; without bonus and peek, the last draft not.
        return tested + (n_seqs if command.bonus or command.peek is not None else 0)

    def _reserve(self, ids: Ids, n_tokens: int, group: int) -> Ids:
        lost, void = self.roster.reserve(ids, n_tokens, group)
        if lost.size:
            self.book.n_preempted += int(lost.size)
            self.book.tally.n_discarded += void
        return lost

    def cancel(self, handle: Any) -> bool:
        """Take a pass back; one that already runs ends, and its tokens count as discarded."""
        work: Pass = handle
        assert work.device is not None
        taken_back = work.device.cancel(work)
        self._handover.forget(work)
        command = work.command
        if isinstance(command, Draft):
            if not taken_back:
                self._trials.discard(Discard(work.ids, work.n_each))
                return False
            self.book.n_drafted -= work.n_tokens
            self.book.draft_time_s -= work.duration
            batch = self.roster.batch(work.ids)
            batch.drafted = batch.drafted - work.n_each
            if self.roster.open_tokens is not None:
                self.roster.open_tokens[work.ids] -= work.n_each
        elif taken_back:
            self.book.verify_time_s -= work.duration
            self.book.n_verify_seqs -= int(work.ids.size)
        return taken_back
