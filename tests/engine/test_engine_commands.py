"""Commands that the built-in schedules don't use: WaitAny, Cancel, per-request draft lengths."""

from __future__ import annotations

import numpy as np

from psdsim.commands import (
    Admit,
    Cancel,
    Draft,
    Judge,
    Keep,
    Prefill,
    Score,
    Start,
    WaitAll,
    WaitAny,
)
from psdsim.engine import simulate_run
from psdsim.schedules.base import Schedule
from tests.engine.kit import Scripted, Timer, conserved, make_setup, run, work


class Toy(Schedule):
    """Base of one-off schedules for these tests."""

    name = "toy"
    summary = "test"
    source = "test"
    overlaps = True
    seen: list


class Race(Toy):
    def run(self):
        admitted = yield Admit(self.capacity)
        ids = admitted.new
        yield Prefill(ids)
        yield Admit(self.capacity)
        score = yield Start(Score(ids, 0))
        draft = yield Start(Draft(ids, 2))
        finished = yield WaitAny((score, draft))
        type(self).seen = [finished == [draft], draft.done, score.done]
        yield WaitAll((score, draft))
        type(self).seen.append((yield WaitAny((draft, score))) == [score, draft])
        yield Judge(score)
        yield Keep(draft, ids, None)


def test_wait_any_answers_the_first_and_breaks_ties_by_device():
    # Draft 2 x 1/16 ends before the pass of 1/4.
    setup = make_setup("toy", 2, work([2]), schedule_class=Race, placement="separate")
    simulate_run(setup)
    assert Race.seen == [True, True, False, True]


class TakeBack(Toy):
    def run(self):
        admitted = yield Admit(self.capacity)
        ids = admitted.new
        yield Prefill(ids)
        yield Admit(self.capacity)
        first = yield Start(Draft(ids, 2, group=0))
        second = yield Start(Draft(ids, 2, group=1))
        type(self).seen = [(yield Cancel(second)), (yield Cancel(first))]
        score = yield Start(Score(ids, 0))
        yield WaitAll((first, second, score))
        yield Judge(score)


def test_cancel_takes_back_a_queued_pass_but_not_a_running_one():
    raw = run("toy", 2, work([2]), schedule_class=TakeBack, draft=Timer(0.5))
    assert TakeBack.seen == [True, False]
    # The running draft ends and keeps its device busy: 2 forwards and the prefill.
    assert raw.tally.draft_busy_s == 1.5
    assert raw.tally.n_drafted == raw.tally.n_discarded == 2
    assert raw.makespan_s == 0.5 + 0.25 or raw.makespan_s == 0.5 + 1.0


class Ragged(Toy):
    overlaps = False

    def run(self):
        admitted = yield Admit(self.capacity)
        ids = admitted.new
        yield Prefill(ids)
        n = np.array([1, 3])
        while ids.size:
            yield Admit(self.capacity)
            yield Draft(ids, n)
            score = yield Score(ids, n)
            verdict = yield Judge(score)
            if verdict.stopped is not None:
                ids, n = ids[~verdict.stopped], n[~verdict.stopped]


def test_draft_lengths_may_differ_between_requests():
    raw = run(
        "toy", 3, work([5, 5]), schedule_class=Ragged,
        acceptance=Scripted(bits=((1,) * 9, (1,) * 9)), draft=Timer(0.0, 0.0625),
    )  # fmt: skip
    # All accepted: 2 tokens a round against 4.
    assert raw.requests["n_rounds"].tolist() == [2, 1]
    assert raw.requests["n_drafted_tokens"].tolist() == [2, 3]
    # Forwards of the first round: both, then one, one: 4 x 1/16.
    assert raw.steps["draft_time_s"][1] == 0.25
    conserved(raw)
