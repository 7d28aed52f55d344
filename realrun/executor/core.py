"""Runs a schedule on two workers: the same commands that the simulator answers, in real time."""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np

from psdsim.commands import (
    NO_IDS,
    Admit,
    Admitted,
    Cancel,
    Confidence,
    Draft,
    Ids,
    Judge,
    Keep,
    Look,
    Prefill,
    Score,
    Start,
    Verdict,
    WaitAll,
    WaitAny,
    WaitArrival,
)
from psdsim.errors import InputError
from psdsim.schedules import Schedule
from realrun.executor.book import Book
from realrun.executor.devices import Devices, Pass
from realrun.executor.estimates import Estimates
from realrun.executor.limits import check, check_budget
from realrun.executor.passes import Passes
from realrun.executor.roster import Roster
from realrun.executor.rules import Rule
from realrun.executor.setup import Job, RunResult
from realrun.executor.verdicts import Verdicts
from realrun.workers import Worker, WorkerError

_LIMITED = frozenset({Admit, Start, Draft, Score, Judge})


class Executor:
    """Interprets one schedule on real models.

    Parameters
    ----------
    schedule
        Policy.
    job
        The work.
    rule
        Who is accepted.
    target, draft
        Workers that are ready; `draft` is None where nothing drafts.

    Raises
    ------
    psdsim.errors.InputError
        If the schedule asks for something that can't be run here; it is named.
    """

    def __init__(
        self, schedule: Schedule, job: Job, rule: Rule, target: Worker, draft: Worker | None
    ) -> None:
        drafts = schedule.drafts and schedule.k > 0
        if schedule.chunked:
            raise InputError(
                f"{schedule.name} asks for chunked prefill (Admit with n_decode_tokens, Score "
                "with chunks), which realrun does not run",
                expected="prefill in steps of its own",
            )
        if schedule.n_targets > 1:
            raise InputError(
                f"schedule '{schedule.name}' runs {schedule.n_targets} copies of the target "
                "(Score.on), which realrun lacks"
            )
        if drafts and draft is None:
            raise InputError(f"schedule '{schedule.name}' drafts", expected="a drafter")
        check_budget(schedule, job)
        self._schedule = schedule
        self._digest = job.digest
        gc.collect()  # before the clock starts: `run` keeps the collector off
        zero = time.perf_counter()
        self._roster = Roster(job, schedule.capacity, zero)
        self._book = Book(zero)
        self._devices = Devices(target, draft if drafts else None, self._finished)
        self._estimates = Estimates()
        self._passes = Passes(self._roster, self._devices, schedule.asks_confidence)
        self._verdicts = Verdicts(self._roster, self._book, rule)
        self._zero = zero

    def run(self) -> RunResult:
        """Run to the last token; what stops it on the way leaves a partial result.

        Raises
        ------
        KeyboardInterrupt
            Never: an interrupted run returns what it has, with `RunResult.failure` set.
        """
        failure: str | None = None
        collecting = gc.isenabled()
        gc.disable()  # a collection in the middle of a step would be measured as overhead
        try:
            self._interpret()
        except KeyboardInterrupt:
            failure = "interrupted"
        except WorkerError as error:
            failure = str(error)
        finally:
            if collecting:
                gc.enable()
        return self._result(failure)

    def _interpret(self) -> None:
        program = self._schedule.run()
        answer: Any = None
        while True:
            try:
                command = program.send(answer)
            except StopIteration:
                self._devices.settle()
                self._book.turn(self._now(), 0, 0)
                return
            answer = self._answer(command)

    def _now(self) -> float:
        return time.perf_counter() - self._zero

    def _answer(self, command: Any) -> Any:
        kind = type(command)
        if kind in _LIMITED:
            check(self._schedule.name, command.command if kind is Start else command)
        if kind is Admit:
            return self._admit(command)
        if kind is Start:
            return self._passes.start(command.command)
        if kind is WaitAll:
            self._devices.wait_all(command.handles)
            return None
        if kind is Judge:
            return self._verdicts.judge(command.score, self._now())
        if kind is Score or kind is Draft:
            work = self._passes.start(command)
            self._devices.wait_all([work])
            return work
        if kind is Prefill:
            return self._prefill(command.ids, command.group)
        if kind is Keep:
            return self._verdicts.keep(command)
        if kind is Confidence:
            return self._verdicts.confidence(command.draft, self._schedule.name)
        if kind is Look:
            return self._estimates
        if kind is WaitArrival:
            self._roster.wait_for_arrival()
            return None
        if kind is WaitAny:
            finished = self._devices.wait_any(list(command.handles))
            self._book.wait_any.append([f"{w.device.name}:{w.order}" for w in finished])  # type: ignore[union-attr]
            return finished
        if kind is Cancel:
            return command.handle.device.cancel(command.handle)
        raise InputError(
            f"schedule '{self._schedule.name}' uses {kind.__name__}, a command that realrun lacks"
        )

    def _admit(self, command: Admit) -> Admitted:
        now = self._now()
        roster = self._roster
        self._book.turn(now, len(roster.running), roster.n_waiting(now))
        new = (
            roster.admit(command.capacity, now)
            if len(roster.running) < command.capacity
            else NO_IDS
        )
        return Admitted(new, None, roster.exhausted)

    def _prefill(self, ids: Ids, group: int) -> Verdict:
        self._book.is_prefill = True
        works = self._passes.prefill(ids, group)
        self._devices.wait_all(works)
        return self._verdicts.first_tokens(works[-1], self._now())

    def _finished(self, work: Pass) -> None:
        """Hear of a finished pass, in the order in which they end."""
        command, result = work.command, work.result
        assert result is not None
        n_seqs, seconds = int(work.ids.size), result.end - result.start
        if isinstance(command, Draft):
            self._passes.take_in(work)
            n_tokens = int(work.info.sum())
            self._estimates.draft_phase(n_seqs, int(work.info.max(initial=0)), seconds)
            self._book.draft_group = command.group
            self._book.n_draft_seqs += n_seqs
            self._book.n_drafted += n_tokens
            self._book.ran(work, "draft", command.group, n_tokens)
        elif isinstance(command, Score):
            n_tokens = int(np.sum(work.info.lengths))
            self._estimates.target_pass(n_seqs, n_tokens, seconds)
            self._book.verify_group = command.group
            self._book.n_verify_seqs += n_seqs
            self._book.n_kv += work.info.n_kv
            self._book.ran(work, "verify", command.group, n_tokens)
        else:
            group, n_tokens = work.info
            if work.device is self._devices.target:
                self._estimates.target_pass(n_seqs, n_tokens, seconds)
            else:
                self._estimates.draft_prefill(n_seqs, seconds)
            self._book.ran(work, "prefill", group, n_tokens)

    def _result(self, failure: str | None) -> RunResult:
        roster, book = self._roster, self._book
        roster.settle()
        texts = roster.texts
        finish = roster.columns["finish_s"]
        ended = finish[~np.isnan(finish)]
        return RunResult(
            schedule=self._schedule,
            steps=book.log.close(),
            requests=roster.columns,
            outputs=[np.empty(0, np.int64) if t is None else t.output() for t in texts],
            tested=[[] if t is None else t.tested for t in texts],
            accepted=[[] if t is None else t.accepted for t in texts],
            discarded=[0 if t is None else t.n_discarded for t in texts],
            dropped=[0 if t is None else t.n_dropped for t in texts],
            spans=book.spans,
            wait_any=book.wait_any,
            total_s=float(ended.max()) if failure is None and ended.size else self._now(),
            bonus=self._verdicts.bonus,
            failure=failure,
            prompts=self._digest,
        )
