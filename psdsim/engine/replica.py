"""One copy of the deployment: takes a schedule's commands and answers them in simulated time."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy
from simpy.events import AnyOf, Event

from psdsim.commands import (
    NO_IDS,
    Admit,
    Admitted,
    Cancel,
    Draft,
    Ids,
    Keep,
    Prefill,
    Score,
    Start,
    WaitAll,
    WaitAny,
    WaitArrival,
)
from psdsim.commands import Judge as JudgeCommand
from psdsim.engine.costs import PassCosts
from psdsim.engine.devices import Device, Pass, by_device_and_order, largest, token_total
from psdsim.engine.handover import Handover
from psdsim.engine.overhead import StepOverhead
from psdsim.engine.prefill import PrefillStep
from psdsim.engine.roster import Roster
from psdsim.engine.setup import EngineSetup
from psdsim.engine.stepbook import StepBook
from psdsim.engine.verdicts import Verdicts
from psdsim.schedules.base import Schedule

Process = Generator[Event, Any, None]
_PASSES = (Start, Score, Draft)
_NOBODY, _LAST = Admitted(NO_IDS, None, False), Admitted(NO_IDS, None, True)


class Replica:
    """Interprets one schedule: devices, admission and records on one side, commands on the other.

    Parameters
    ----------
    env
        Clock.
    setup
        The run.
    schedule
        Policy.
    roster, book, verdicts, costs
        Who is in flight, what is recorded, who is accepted, how long passes take.
    target, draft
        Devices; the same object when both models share one.
    """

    def __init__(
        self,
        env: simpy.Environment,
        setup: EngineSetup,
        schedule: Schedule,
        roster: Roster,
        book: StepBook,
        verdicts: Verdicts,
        costs: PassCosts,
        target: Device,
        draft: Device,
    ) -> None:
        self.env = env
        self.schedule = schedule
        self.roster = roster
        self.book = book
        self._verdicts = verdicts
        self._costs = costs
        self.target = target
        self.draft = draft
        self._separate = draft is not target
        self._overhead = StepOverhead(
            env, book, setup.costs.step_overhead_s, setup.costs.step_overhead_per_seq_s
        )
        self._handover = Handover(env, book, setup.costs.sync_s, setup.costs.comm_per_token_s)
        self.drafts = schedule.drafts and schedule.k > 0
        self._kv_bound = roster.kv.n_blocks is not None
        self._prefill = PrefillStep(
            env, roster, book, verdicts, costs, target, draft if self.drafts else None
        )
        self._order = 0
        self._debt = 0

    def process(self) -> Process:
        """Run the schedule to its end (a simpy process)."""
        program = self.schedule.run()
        send = program.send
        held = self._overhead.held
        answer: Any = None
        command: Any
        while True:
            try:
                command = send(answer)
            except StopIteration:
                self.book.turn(self.env.now, 0, 0)
                return
            kind = type(command)
            if held and kind not in _PASSES:
                self._overhead.release()
            if kind is Admit:
                answer = self._admit(command)
            elif kind is JudgeCommand:
                answer = self._verdicts.judge(command.score, self.env.now)
            elif kind is Score or kind is Draft:
                submit = self._submit_score if kind is Score else self._submit_draft
                answer = submit(command)
                if held:
                    self._overhead.release()
                yield answer.event
                if self._handover.open:
                    yield from self._handover.pay((answer,))
            elif kind is Start:
                answer = self._submit(command.command)
            elif kind is WaitAll:
                for handle in command.handles:
                    if not handle.done:
                        yield handle.event
                if self._handover.open:
                    yield from self._handover.pay(command.handles)
                answer = None
            else:
                answer = yield from self._seldom(command)

    def _seldom(self, command: Any) -> Generator[Event, Any, Any]:
        """Answer the commands that don't come every step."""
        if isinstance(command, Prefill):
            self._order += 2
            not_before = self._overhead.not_before(int(command.ids.size))
            return (yield from self._prefill.run(command, not_before, self._order))
        if isinstance(command, Keep):
            return self._verdicts.keep(command)
        if isinstance(command, WaitArrival):
            event = self.roster.queue.arrival()
            if event is not None:
                yield event
            return None
        if isinstance(command, WaitAny):
            return (yield from self._wait_any(command))
        if isinstance(command, Cancel):
            return self._cancel(command.handle)
        raise TypeError(f"the simulator does not know the command {command!r}")

    # --- steps ------------------------------------------------------------------------------

    def _admit(self, command: Admit) -> Admitted:
        roster = self.roster
        queue = roster.queue
        now = self.env.now
        queue.update()
        n_waiting = queue.n_waiting
        n_running = len(roster.running)
        self.book.turn(now, n_running, n_waiting)
        self._overhead.open()
        if command.n_decode_tokens is not None:
            chunks = roster.admit_chunks(command.capacity, command.n_decode_tokens, now)
            return Admitted(NO_IDS, chunks, roster.exhausted)
        if n_waiting and n_running < command.capacity:
            return Admitted(roster.admit(command.capacity, now), None, roster.exhausted)
        return _LAST if queue.exhausted else _NOBODY

    # --- passes -----------------------------------------------------------------------------

    def _submit(self, command: Draft | Score) -> Pass:
        if type(command) is Draft:
            return self._submit_draft(command)
        assert isinstance(command, Score)
        return self._submit_score(command)

    def _submit_draft(self, command: Draft) -> Pass:
        ids, n, after = command.ids, command.n, command.after
        book, roster = self.book, self.roster
        lost = NO_IDS
        if self._kv_bound:
            lost = self._reserve(ids, largest(n) + largest(after) + 1, command.group)
        if lost.size:
            keep = ~np.isin(ids, lost)
            ids = ids[keep]
            n = n if isinstance(n, int) else n[keep]
            after = after if isinstance(after, int) else after[keep]
        self._order += 1
        work = Pass(command, ids, self._order)
        batch = roster.batch(ids)
        drafted = n * batch.n if type(n) is int else token_total(n, batch.n)
        batch.drafted = batch.drafted + n
        work.n_tokens = drafted
        if self._kv_bound:
            work.preempted = lost
            roster.open_drafts[command.group] = (ids, n)
        book.draft_group = command.group
        book.n_draft_seqs += batch.n
        book.n_drafted += drafted
        n_kv = batch.n_kv
        if type(after) is not int or after:
            n_kv += token_total(after, batch.n)
        duration = self._costs.draft_phase(batch.n, n, n_kv, self._debt) if batch.n else 0.0
        self._debt = 0
        book.draft_time_s += duration
        self._overhead.submit(self.draft, work, duration, batch.n)
        if self._separate:
            self._handover.open.append(work)
        if book.spans is not None:
            book.span_when_done(work, "draft", command.group, drafted)
        return work

    def _submit_score(self, command: Score) -> Pass:
        ids, book, roster = command.ids, self.book, self.roster
        self._order += 1
        work = Pass(command, ids, self._order)
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
        n = command.n
        n_tokens = (n + 1) * batch.n if type(n) is int else token_total(n, batch.n) + batch.n
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
        duration = self._costs.target_pass(n_seqs, n_tokens, n_kv) if n_seqs else 0.0
        work.n_tokens = n_tokens
        book.verify_group = command.group
        book.n_verify_seqs += batch.n
        book.n_kv = n_kv
        book.verify_time_s += duration
        # A step that decodes nobody counts those whose prompts it reads.
        self._overhead.submit(self.target, work, duration, batch.n or n_seqs)
        if book.spans is not None:
            book.span_when_done(work, "verify", command.group, n_tokens)
        return work

    def _reserve(self, ids: Ids, n_tokens: int, group: int) -> Ids:
        lost, void = self.roster.reserve(ids, n_tokens, group)
        if lost.size:
            self.book.n_preempted += int(lost.size)
            self.book.tally.n_discarded += void
        return lost

    # --- waiting ----------------------------------------------------------------------------

    def _wait_any(self, command: WaitAny) -> Generator[Event, Any, list[Pass]]:
        handles: Any = command.handles
        passes: list[Pass] = list(handles)
        if not any(work.done for work in passes):
            yield AnyOf(self.env, [work.event for work in passes if work.event is not None])
        finished = by_device_and_order([work for work in passes if work.done])
        if self._handover.open:
            yield from self._handover.pay(tuple(finished))
        return finished

    def _cancel(self, handle: Any) -> bool:
        """Take a pass back; one that already runs ends, and its tokens count as discarded."""
        work: Pass = handle
        assert work.device is not None
        taken_back = work.device.cancel(work)
        self._handover.forget(work)
        command = work.command
        if isinstance(command, Draft):
            self.roster.open_drafts.pop(command.group, None)
            if taken_back:
                self.book.n_drafted -= work.n_tokens
                self.book.draft_time_s -= work.duration
                batch = self.roster.batch(work.ids)
                batch.drafted = batch.drafted - command.n
            else:
                self.book.tally.n_discarded += work.n_tokens
        elif taken_back:
            self.book.verify_time_s -= work.duration
        return taken_back
