"""Every token and every second is accounted for; arrivals, WaitAny and Cancel do as they say."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from multiprocessing import connection
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("torch")

from realrun_kit import (
    NAMES,
    LoggedDrafter,
    LoggedTarget,
    execute,
    make_job,
    make_schedule,
    ragged,
)

from psdsim.commands import (
    Admit,
    Cancel,
    Draft,
    Judge,
    Prefill,
    Score,
    Start,
    WaitAll,
    WaitAny,
    WaitArrival,
)
from psdsim.schedules import Schedule
from realrun.executor import RunResult
from realrun.executor.book import Book
from realrun.executor.devices import Pass
from realrun.workers import Done

OUTPUTS = [9, 1, 14, 6, 2, 11, 7, 12]
PROMPTS = ragged(len(OUTPUTS), vocab=50)


def choose(text: list[int]) -> int:
    return sum(text[-3:]) * 7 % 50


def guess(text: list[int]) -> int:
    return (choose(text) + (sum(text) % 3 == 0)) % 50


def run(name: str, k: int = 3, batch: int = 2, arrival: list[float] | None = None) -> RunResult:
    job = make_job(OUTPUTS, PROMPTS, arrival)
    schedule = make_schedule(name, k, batch)
    return execute(schedule, job, LoggedTarget(choose), LoggedDrafter(guess))


@pytest.fixture(scope="module")
def plain() -> list[list[int]]:
    texts = []
    for prompt, n in zip(PROMPTS, OUTPUTS, strict=True):
        text = list(prompt)
        for _ in range(n):
            text.append(choose(text))
        texts.append(text[len(prompt) :])
    return texts


@pytest.mark.parametrize("name", NAMES)
def test_every_token_is_accounted_for(name: str, plain: Any) -> None:
    result = run(name)
    steps, requests = result.steps, result.requests
    assert [text.tolist() for text in result.outputs] == plain
    assert steps["n_emitted_tokens"].sum() == sum(OUTPUTS)
    assert steps["n_prefill_tokens"].sum() == sum(map(len, PROMPTS))
    assert steps["n_finished"].sum() == len(OUTPUTS)
    drafted = requests["n_drafted_tokens"]
    tested = np.array([sum(row) for row in result.tested])
    accepted = np.array([sum(row) for row in result.accepted])
    assert (drafted == tested + result.discarded).all()
    assert (accepted == requests["n_accepted_tokens"]).all()
    assert (accepted <= tested).all()
    assert steps["n_drafted_tokens"].sum() == drafted.sum()
    assert steps["n_verified_tokens"].sum() == tested.sum()
    assert steps["n_accepted_tokens"].sum() == accepted.sum()
    assert all(len(t) == len(a) for t, a in zip(result.tested, result.accepted, strict=True))
    if name != "ar":
        assert 0 < accepted.sum() < tested.sum()
        assert (sum(result.discarded) > 0) == name.startswith("pearl")


@pytest.mark.parametrize("name", NAMES)
def test_every_second_is_accounted_for(name: str) -> None:
    result = run(name)
    steps, requests = result.steps, result.requests
    assert (steps["end_s"] >= steps["start_s"]).all()
    assert (steps["start_s"][1:] == steps["end_s"][:-1]).all()
    assert (steps["overhead_s"] >= 0).all()
    duration = steps["end_s"] - steps["start_s"]
    # One device alone, both one behind the other, or both at once: never more than the step.
    assert (steps["draft_time_s"] <= duration).all()
    assert (steps["verify_time_s"] <= duration).all()
    busy = np.maximum(steps["draft_time_s"], steps["verify_time_s"])
    assert (busy + steps["overhead_s"] <= duration * (1 + 1e-9)).all()
    both = steps["draft_time_s"] + steps["verify_time_s"] + steps["overhead_s"]
    assert (both >= duration * (1 - 1e-9)).all()
    if name == "sd":
        decode = steps["n_prefill_tokens"] == 0  # one waits for the other: nothing is hidden
        np.testing.assert_allclose(both[decode], duration[decode], rtol=1e-9)
    for device in ("target", "draft"):
        spans = sorted((s for s in result.spans if s.device == device), key=lambda s: s.start_s)
        assert bool(spans) == (device == "target" or name != "ar")
        assert all(a.end_s <= b.start_s for a, b in pairwise(spans))
        assert all(0 <= s.start_s <= s.end_s <= result.total_s for s in spans)
        assert sum(s.end_s - s.start_s for s in spans) <= result.total_s
    assert (requests["arrival_s"] <= requests["admitted_s"]).all()
    assert (requests["admitted_s"] <= requests["first_token_s"]).all()
    assert (requests["first_token_s"] <= requests["finish_s"]).all()
    assert requests["finish_s"].max() == result.total_s <= steps["end_s"][-1]


def test_overhead_is_the_time_in_which_no_model_ran() -> None:
    """By hand: a step from 0 to 8 s, the draft busy from 1 to 3 and the target from 2 to 5."""
    book = Book(zero=100.0)
    nothing = np.empty(0, dtype=np.int64)
    for device, start, end in (("target", 102.0, 105.0), ("draft", 101.0, 103.0)):
        work = Pass(None, np.arange(2), 1)
        work.device = cast(Any, SimpleNamespace(name=device))
        work.result = Done(start, end, nothing)
        book.ran(work, "prefill", 0, 7)
    book.turn(8.0, 2, 0)
    # A pass that began in the step before counts here from the step's start on.
    work = Pass(None, np.arange(2), 2)
    work.device = cast(Any, SimpleNamespace(name="draft"))
    work.result = Done(107.0, 109.0, nothing)
    book.ran(work, "draft", 0, 7)
    book.turn(12.0, 0, 0)
    steps = book.log.close()
    assert steps["overhead_s"].tolist() == [4.0, 3.0]
    assert steps["draft_time_s"].tolist() == [2.0, 2.0]
    assert steps["verify_time_s"].tolist() == [3.0, 0.0]
    assert [(s.device, s.start_s, s.end_s) for s in book.spans[:2]] == [
        ("target", 2.0, 5.0),
        ("draft", 1.0, 3.0),
    ]


def test_a_wait_for_an_arrival_is_no_part_of_a_step() -> None:
    """By hand: nothing runs until 5 s, then one pass from 6 to 7, and the step ends at 8 s."""
    book = Book(zero=100.0)
    book.turn(2.0, 0, 1)
    book.turn(5.0, 0, 1)
    work = Pass(None, np.arange(2), 1)
    work.device = cast(Any, SimpleNamespace(name="target"))
    work.result = Done(106.0, 107.0, np.empty(0, dtype=np.int64))
    book.ran(work, "prefill", 0, 7)
    book.turn(8.0, 2, 0)
    steps = book.log.close()
    assert [steps[name].tolist() for name in ("start_s", "end_s", "overhead_s")] == [
        [5.0], [8.0], [2.0],
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["ar", "minedraft", "pearl"])
def test_nobody_is_admitted_before_arriving(name: str, plain: Any) -> None:
    arrival = [0.0, 0.0, 0.03, 0.05, 0.05, 0.11, 0.115, 0.2]
    result = run(name, arrival=arrival)
    requests = result.requests
    assert requests["arrival_s"].tolist() == arrival
    assert (requests["admitted_s"] >= requests["arrival_s"]).all()
    assert (np.diff(requests["admitted_s"]) >= 0).all()
    assert [text.tolist() for text in result.outputs] == plain
    assert (result.steps["n_running"] <= make_schedule(name, 3, 2).capacity).all()
    # Waiting for an arrival is no step: it is in nobody's overhead.
    assert (result.steps["start_s"][1:] >= result.steps["end_s"][:-1]).all()


# --- schedules of the test's own --------------------------------------------------------------


class Toy(Schedule):
    """One request whose commands the test writes down."""

    name = "toy"
    summary = source = "a test"

    def __init__(self, body: Callable[[Any], Any], capacity: int = 1) -> None:
        super().__init__(2, capacity)
        self.body = body

    def run(self) -> Any:
        admitted = yield Admit(self.capacity)
        yield Prefill(admitted.new)
        ids = yield from self.body(admitted.new)
        while ids.size:
            yield Admit(self.capacity)
            score = yield Score(ids, 0)
            verdict = yield Judge(score)
            if verdict.stopped is not None:
                ids = ids[~verdict.stopped]


class Gates:
    """Passes stop in front of a gate until the test opens it."""

    def __init__(self) -> None:
        self.doors: dict[tuple[str, int], threading.Event] = {}

    def __call__(self, device: str, place: int) -> threading.Event:
        return self.doors.setdefault((device, place), threading.Event())

    def on(self, runner: Any, device: str, gated: set[int]) -> Any:
        def wait(place: int) -> None:
            if place in gated:
                assert self(device, place).wait(20)

        runner.before = wait
        return runner


def played(
    body: Callable[[Any, Gates], Any], gated: dict[str, set[int]], output: int = 4
) -> tuple[RunResult, LoggedTarget, LoggedDrafter]:
    gates = Gates()
    target = gates.on(LoggedTarget(choose), "target", gated.get("target", set()))
    draft = gates.on(LoggedDrafter(choose), "draft", gated.get("draft", set()))
    job = make_job(output, [[3, 4]])
    result = execute(Toy(lambda ids: body(ids, gates)), job, target, draft)
    assert result.failure is None
    text = [3, 4]
    for _ in range(output):
        text.append(choose(text))
    assert result.outputs[0].tolist() == text[2:]
    return result, target, draft


def test_a_queued_pass_that_is_taken_back_never_runs() -> None:
    answers: list[Any] = []

    def body(ids: Any, gates: Gates) -> Any:
        first = yield Start(Draft(ids, 2))
        second = yield Start(Draft(ids, 1))
        answers.append((first.done, second.done))
        answers.append((yield Cancel(second)))
        answers.append((first.done, second.done))
        gates("draft", 1).set()
        yield WaitAll((first, second))
        yield WaitAny((second,))
        score = yield Score(ids, 2)
        yield Judge(score)
        return ids

    result, _, draft = played(body, {"draft": {1}}, output=5)
    assert answers == [(False, False), True, (False, True)]
    assert [counts for *_, counts in draft.log] == [[0], [2]]
    assert result.requests["n_drafted_tokens"].tolist() == [2]
    assert result.tested == [[2]]
    assert result.accepted == [[2]]
    assert result.discarded == [0]


def test_only_the_pass_that_is_taken_back_leaves_the_line() -> None:
    def body(ids: Any, gates: Gates) -> Any:
        drafts = []
        for n in (2, 1, 3):
            drafts.append((yield Start(Draft(ids, n))))
        assert (yield Cancel(drafts[1]))
        gates("draft", 1).set()
        yield WaitAll(tuple(drafts))
        return ids

    _, _, draft = played(body, {"draft": {1}})
    assert [counts for *_, counts in draft.log] == [[0], [2], [3]]


def test_a_running_pass_that_is_taken_back_ends_and_is_void() -> None:
    answers: list[Any] = []

    def body(ids: Any, gates: Gates) -> Any:
        first = yield Start(Draft(ids, 2))
        answers.append((yield Cancel(first)))
        answers.append(first.done)
        second = yield Start(Draft(ids, 1))
        gates("draft", 1).set()
        yield WaitAll((second,))
        answers.append((first.done, second.done))
        score = yield Score(ids, 1)
        yield Judge(score)
        return ids

    result, _, draft = played(body, {"draft": {1}}, output=5)
    assert answers == [False, False, (True, True)]
    assert [counts for *_, counts in draft.log] == [[0], [2], [1]]
    # The second phase starts from the confirmed text, as if the first had never been.
    slots, keep, fed, _ = draft.log[2]
    assert (slots, keep, fed) == ([0], [3], [[]])
    assert result.requests["n_drafted_tokens"].tolist() == [3]
    assert result.tested == [[1]]
    assert result.discarded == [2]
    assert sum(span.kind == "draft" for span in result.spans) == 2


def test_a_void_pass_that_still_runs_at_the_end_is_waited_for() -> None:
    def body(ids: Any, gates: Gates) -> Any:
        first = yield Start(Draft(ids, 2))
        yield Cancel(first)
        threading.Timer(0.05, gates("draft", 1).set).start()
        score = yield Score(ids, 0)
        yield Judge(score)
        return ids[:0]

    result, _, draft = played(body, {"draft": {1}}, output=2)
    assert len(draft.log) == 2
    assert result.discarded == [2]
    assert [span.kind for span in result.spans if span.device == "draft"] == ["prefill", "draft"]


@pytest.mark.parametrize("first", ["draft", "target"])
def test_the_pass_that_ends_first_is_reported_and_recorded(first: str) -> None:
    seen: list[list[str]] = []
    last = "target" if first == "draft" else "draft"

    def body(ids: Any, gates: Gates) -> Any:
        draft = yield Start(Draft(ids, 2))
        score = yield Start(Score(ids, 0))
        gates(first, 1).set()
        for door in (first, last):
            gates(door, 1).set()
            finished = yield WaitAny(tuple(h for h in (draft, score) if not h.done))
            seen.append([handle.device.name for handle in finished])
            if door == first:
                assert not (draft if first == "target" else score).done
        yield Judge(score)
        return ids

    result, _, _ = played(body, {last: {1}})
    assert seen == [[first], [last]]
    orders = {"draft": 3, "target": 4}  # 1 and 2 are the prefill's
    assert result.wait_any == [[f"{name}:{orders[name]}"] for name in (first, last)]


def test_ties_are_broken_by_device_then_start() -> None:
    def body(ids: Any, gates: Gates) -> Any:
        passes = []
        for command in (Draft(ids, 1), Score(ids, 0), Draft(ids, 2)):
            passes.append((yield Start(command)))
        yield WaitAll(tuple(passes))
        finished = yield WaitAny((passes[2], passes[0], passes[1]))
        assert finished == [passes[1], passes[0], passes[2]]
        yield Judge(passes[1])
        return ids

    result, _, _ = played(body, {})
    assert result.wait_any == [["target:4", "draft:3", "draft:5"]]


def test_what_has_ended_unheard_is_found_too() -> None:
    """The draft is waited for; that the target has ended meanwhile is heard of by WaitAny."""

    def body(ids: Any, gates: Gates) -> Any:
        score = yield Start(Score(ids, 0))
        draft = yield Start(Draft(ids, 1))
        yield WaitAll((draft,))
        assert not score.done
        gates("target", 1).set()
        assert connection.wait([score.device.worker.fileno()], 20)
        finished = yield WaitAny((draft, score))
        assert finished == [score, draft]
        yield Judge(score)
        return ids

    played(body, {"target": {1}})


def test_a_device_runs_its_passes_in_the_order_given() -> None:
    def body(ids: Any, gates: Gates) -> Any:
        drafts = []
        for n in (1, 2, 1):
            drafts.append((yield Start(Draft(ids, n))))
        gates("draft", 1).set()
        yield WaitAll((drafts[2], drafts[0]))
        assert all(handle.done for handle in drafts)
        return ids

    _, _, draft = played(body, {"draft": {1}})
    assert [counts for *_, counts in draft.log] == [[0], [1], [2], [1]]


def test_waiting_for_nobody_returns_at_once() -> None:
    def body(ids: Any, gates: Gates) -> Any:
        yield WaitAll(())
        yield WaitArrival()
        return ids

    played(body, {})
