"""One simulated run: build the devices and replicas, let the clock run, collect what is left."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy
from simpy.events import Event

from psdsim.engine.contention import shared_pair
from psdsim.engine.costs import PassCosts
from psdsim.engine.devices import Device
from psdsim.engine.kv import KvPool
from psdsim.engine.queue import ClosedLoopQueue, FedQueue, StaticQueue, WaitingQueue
from psdsim.engine.replica import Replica
from psdsim.engine.roster import Roster
from psdsim.engine.setup import EngineSetup, RawRun
from psdsim.engine.state import RequestState
from psdsim.engine.stepbook import StepBook
from psdsim.engine.tally import Tally
from psdsim.engine.trials import Trials
from psdsim.engine.verdicts import Verdicts
from psdsim.records import RoundLog, Span, StepLog
from psdsim.stats import GapLog
from psdsim.verdict import Signals, Tape, make_judge

_PROGRESS_EVENTS = 20_000


def simulate_run(setup: EngineSetup) -> RawRun:
    """Simulate one run of one schedule to the last token of its last request.

    Parameters
    ----------
    setup
        Everything about the run.

    Raises
    ------
    psdsim.errors.InputError
        If a request can't run at all (KV pool, token budget) or the acceptance model can't
        serve the schedule.
    """
    env = simpy.Environment()
    state = RequestState(setup.requests)
    tally = Tally()
    log = StepLog(tally.add_steps, keep=setup.record_steps, parquet=setup.steps_parquet)
    spans: list[Span] | None = [] if setup.record_spans else None
    rounds = RoundLog() if setup.record_rounds else None
    gaps = GapLog()
    queues = _queues(env, setup, state)
    replicas: list[Replica] = []
    for index, queue in enumerate(queues):
        replicas.append(_replica(env, setup, state, queue, index, log, spans, gaps, tally, rounds))
    if len(queues) > 1:
        env.process(_route(env, setup, state, queues, replicas))
    done = simpy.AllOf(env, [env.process(replica.process()) for replica in replicas])
    _run(env, done, setup, state)
    for replica in replicas:
        replica.roster.settle()
    for replica in replicas:
        # The mean over copies of the target: a utilization is at most 1.
        busy_s = sum(target.busy_s for target in replica.targets)
        tally.target_busy_s += busy_s / len(replica.targets)
        if replica.draft not in replica.targets:
            tally.draft_busy_s += replica.draft.busy_s
    steps = log.close()
    return RawRun(
        requests=state.columns(),
        steps=steps,
        gaps=gaps,
        tally=tally,
        makespan_s=float(np.nanmax(state.finish_s)),
        spans=spans or [],
        rounds=None if rounds is None or not replicas[0].drafts else rounds.close(len(state)),
        notes=_notes(setup),
    )


def _run(env: simpy.Environment, done: Event, setup: EngineSetup, state: RequestState) -> None:
    if setup.progress is None:
        env.run(done)
        return
    n = 0
    while not done.processed:
        env.step()
        n += 1
        if n % _PROGRESS_EVENTS == 0:
            setup.progress(int(np.count_nonzero(~np.isnan(state.finish_s))))
    if not done.ok and isinstance(done.value, BaseException):
        raise done.value
    setup.progress(len(state))


def _queues(env: simpy.Environment, setup: EngineSetup, state: RequestState) -> list[WaitingQueue]:
    requests = setup.requests
    if setup.n_replicas > 1:
        return [FedQueue(env, state) for _ in range(setup.n_replicas)]
    ids = np.arange(len(requests))
    if requests.concurrency is not None:
        return [ClosedLoopQueue(env, state, ids, requests.concurrency)]
    return [StaticQueue(env, state, ids)]


def _replica(
    env: simpy.Environment,
    setup: EngineSetup,
    state: RequestState,
    queue: WaitingQueue,
    index: int,
    log: StepLog,
    spans: list[Span] | None,
    gaps: GapLog,
    tally: Tally,
    rounds: RoundLog | None,
) -> Replica:
    schedule = setup.make_schedule()
    targets, draft = _devices(env, setup)
    # Before the tape is drawn: it has a place for every token that a request asks for.
    kv = KvPool(setup.kv_blocks, setup.block_size, state)
    kv.check_fits_alone(schedule.reach)
    drafting = schedule.drafts and schedule.k > 0
    tape = None
    if drafting and setup.acceptance.judged_by != "replay":
        tape = Tape(
            setup.acceptance,
            setup.requests.output_tokens,
            schedule.capacity,
            setup.seed,
            setup.replication,
        )
    roster = Roster(state, queue, kv, tape, setup.max_num_batched_tokens, index)
    book = StepBook(index, log, spans, tally)
    judge = None
    if drafting:
        judge = make_judge(setup.acceptance, schedule.k, tape, len(state))
    signals = None if tape is None else Signals(setup.proposals, tape)
    trials = Trials(roster, book, judge, rounds, signals)
    verdicts = Verdicts(roster, book, trials, gaps)
    costs = PassCosts(setup.costs, setup.seed, setup.replication, index)
    return Replica(env, setup, schedule, roster, book, trials, verdicts, costs, targets, draft)


def _devices(env: simpy.Environment, setup: EngineSetup) -> tuple[list[Device], Device]:
    """Return the copies of the target and the draft's device."""
    if setup.placement == "colocated":
        both = Device(env, "target", 0)
        return [both], both
    if setup.placement == "shared":
        target, draft = shared_pair(env, setup.slow_down)
        return [target], draft
    more = [Device(env, f"target-{i}", i + 1) for i in range(1, setup.n_targets)]
    return [Device(env, "target", 0), *more], Device(env, "draft", 1)


def _route(
    env: simpy.Environment,
    setup: EngineSetup,
    state: RequestState,
    queues: list[WaitingQueue],
    replicas: list[Replica],
) -> Generator[Event, Any, None]:
    """Spread arrivals over the replicas."""
    fed = [queue for queue in queues if isinstance(queue, FedQueue)]
    concurrency = setup.requests.concurrency
    slots = None if concurrency is None else simpy.Container(env, init=concurrency)
    if slots is not None:
        for queue in fed:
            queue.finished = slots.put  # type: ignore[assignment,method-assign]
    for request in range(len(state)):
        if slots is not None:
            yield slots.get(1)
            state.arrival_s[request] = env.now
        else:
            wait = float(state.arrival_s[request]) - env.now
            if wait > 0:
                yield env.timeout(wait)
        if setup.routing == "least_loaded":
            load = [len(r.roster.running) + q.n_waiting for r, q in zip(replicas, fed, strict=True)]
            place = int(np.argmin(load))
        else:
            place = request % len(fed)
        fed[place].put(request)
    for queue in fed:
        queue.close()


def _notes(setup: EngineSetup) -> list[str]:
    costs = setup.costs
    notes = list(setup.requests.notes)
    timers = {"target": costs.target, "draft": costs.draft, "prefill": costs.prefill,
              "draft prefill": costs.draft_prefill}  # fmt: skip
    for name, timer in timers.items():
        if timer is not None:
            notes.extend(f"{name} step time: {note}" for note in sorted(timer.notes))
    return notes
