"""One copy of the deployment: takes a schedule's commands and answers them in simulated time."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy
from simpy.events import AnyOf, Event

from psdsim.commands import (
    NO_IDS,
    Admit,
    Admitted,
    Cancel,
    Confidence,
    Discard,
    Draft,
    Keep,
    Look,
    Prefill,
    Score,
    Start,
    WaitAll,
    WaitAny,
    WaitArrival,
)
from psdsim.commands import Judge as JudgeCommand
from psdsim.engine.costs import PassCosts
from psdsim.engine.devices import Device, Pass, by_device_and_order
from psdsim.engine.handover import Handover
from psdsim.engine.overhead import StepOverhead
from psdsim.engine.passes import Passes
from psdsim.engine.prefill import PrefillStep
from psdsim.engine.roster import Roster
from psdsim.engine.setup import EngineSetup
from psdsim.engine.stepbook import StepBook
from psdsim.engine.trials import Trials
from psdsim.engine.verdicts import Verdicts
from psdsim.engine.view import Estimates
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
    roster, book, trials, verdicts, costs
        Who is in flight, what is recorded, who is accepted, what follows, how long passes take.
    targets, draft
        Devices, one for each copy of the target; `draft` is the first target where both models
        share one.
    """

    def __init__(
        self,
        env: simpy.Environment,
        setup: EngineSetup,
        schedule: Schedule,
        roster: Roster,
        book: StepBook,
        trials: Trials,
        verdicts: Verdicts,
        costs: PassCosts,
        targets: list[Device],
        draft: Device,
    ) -> None:
        self.env = env
        self.schedule = schedule
        self.roster = roster
        self.book = book
        self._trials = trials
        self._verdicts = verdicts
        self._costs = costs
        target = targets[0]
        self.targets = targets
        self.draft = draft
        self._overhead = StepOverhead(
            env, book, setup.costs.step_overhead_s, setup.costs.step_overhead_per_seq_s
        )
        self._handover = Handover(env, book, setup.costs.sync_s, setup.costs.comm_per_token_s)
        self.drafts = schedule.drafts and schedule.k > 0
        self._prefill = PrefillStep(
            env, roster, book, verdicts, costs, target, draft if self.drafts else None
        )
        self._passes = Passes(
            roster, book, trials, verdicts, costs, self._overhead, self._handover, targets, draft,
            self.drafts,
        )  # fmt: skip

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
                answer = self._verdicts.judge(command, self.env.now)
            elif kind is Score or kind is Draft:
                submit = self._passes.submit_score if kind is Score else self._passes.submit_draft
                answer = submit(command)
                if held:
                    self._overhead.release()
                yield answer.event
                if self._handover.open:
                    yield from self._handover.pay((answer,))
            elif kind is Start:
                answer = self._passes.submit(command.command)
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
            self._passes.order += 2
            not_before = self._overhead.not_before(int(command.ids.size))
            return (yield from self._prefill.run(command, not_before, self._passes.order))
        if isinstance(command, Keep):
            return self._verdicts.keep(command)
        if isinstance(command, Confidence):
            return self._passes.confidence(command.draft)
        if isinstance(command, Look):
            return Estimates(self._costs, self.roster)
        if isinstance(command, Discard):
            return self._trials.discard(command)
        if isinstance(command, WaitArrival):
            event = self.roster.queue.arrival()
            if event is not None:
                yield event
            return None
        if isinstance(command, WaitAny):
            return (yield from self._wait_any(command))
        if isinstance(command, Cancel):
            return self._passes.cancel(command.handle)
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
