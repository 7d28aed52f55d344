"""Schedules that realrun can't run are refused by name, field by field."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from realrun_kit import LoggedDrafter, LoggedTarget, execute, make_job, threads

from psdsim import commands
from psdsim.commands import (
    Admit,
    Chunks,
    Discard,
    Draft,
    Judge,
    Prefill,
    Score,
    Start,
    Tree,
)
from psdsim.errors import InputError
from psdsim.schedules import SCHEDULES
from realrun.executor import Executor, GreedyRule


def refused(schedule: Any, message: str) -> None:
    target, draft = LoggedTarget(lambda text: 1), LoggedDrafter(lambda text: 1)
    with pytest.raises(InputError, match=message):
        execute(schedule, make_job(4, [[1]]), target, draft)


class Odd(SCHEDULES["sd"]):
    """Says something odd after its first prefill."""

    name = "odd"

    def run(self) -> Any:
        admitted = yield Admit(1)
        yield Prefill(admitted.new)
        yield from self.odd(admitted.new)

    def odd(self, ids: Any) -> Any:
        raise NotImplementedError


LACKING_OF_DRAFT: dict[str, Any] = {
    "passes": 1,
    "width": 2,
    "inputs": 2,
    "tree": Tree([(1,)]),
    "candidates": 2,
    "variant": np.array([0]),
    "stop": lambda chances: np.ones(1, dtype=np.int64),
}
LACKING_OF_SCORE: dict[str, Any] = {
    "rows": 3,
    "on": 1,
    "ranks": 2,
    "chunks": Chunks(np.array([0]), np.array([1]), np.array([True])),
}


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("field", LACKING_OF_DRAFT)
def test_a_draft_that_realrun_lacks(field: str, started: bool) -> None:
    class Odder(Odd):
        def odd(self, ids: Any) -> Any:
            command = Draft(ids, 2, **{field: LACKING_OF_DRAFT[field]})
            yield Start(command) if started else command

    refused(Odder(2, 1), f"schedule 'odd' uses Draft.{field}, which realrun lacks")


def test_another_drafter_is_lacking_too() -> None:
    class Odder(Odd):
        def odd(self, ids: Any) -> Any:
            yield Draft(ids, 2, variant=1)

    refused(Odder(2, 1), "uses Draft.variant, which realrun lacks")


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("field", LACKING_OF_SCORE)
def test_a_score_that_realrun_lacks(field: str, started: bool) -> None:
    class Odder(Odd):
        def odd(self, ids: Any) -> Any:
            yield Draft(ids, 2)
            command = Score(ids, 2, **{field: LACKING_OF_SCORE[field]})
            yield Start(command) if started else command

    refused(Odder(2, 1), f"schedule 'odd' uses Score.{field}, which realrun lacks")


def test_a_pass_without_bonus_row_wants_a_peek() -> None:
    class Odder(Odd):
        def odd(self, ids: Any) -> Any:
            yield Draft(ids, 2)
            yield Score(ids, 2, bonus=False)

    refused(Odder(2, 1), "uses Score.bonus=False without peek, which realrun lacks")


def test_a_draft_is_named_in_chain_rounds_only() -> None:
    class Peeking(Odd):
        def odd(self, ids: Any) -> Any:
            draft = yield Draft(ids, 2)
            yield Score(ids, 2, bonus=False, peek=draft, of=draft)

    class Behind(Odd):
        def odd(self, ids: Any) -> Any:
            yield Draft(ids, 2)
            draft = yield Draft(ids, 2, after=np.ones(1, dtype=np.int64))
            yield Score(ids, 2, of=draft)

    refused(Peeking(2, 1), "uses Score.of with bonus=False, which realrun lacks")
    refused(Behind(2, 1), "uses Score.of a draft with after, which realrun lacks")


def test_a_verdict_on_some_is_lacking() -> None:
    class Odder(Odd):
        def odd(self, ids: Any) -> Any:
            yield Draft(ids, 2)
            score = yield Score(ids, 2)
            yield Judge(score, ids)

    refused(Odder(2, 1), "uses Judge.ids, which realrun lacks")


def test_every_field_of_a_pass_is_run_or_refused() -> None:
    """Who adds a field to a command decides what realrun makes of it."""
    run = {"ids", "n", "after", "group"}
    assert {f.name for f in dataclasses.fields(Draft)} == run | set(LACKING_OF_DRAFT)
    run = {"ids", "n", "bonus", "peek", "group", "of"}
    assert {f.name for f in dataclasses.fields(Score)} == run | set(LACKING_OF_SCORE)
    assert {f.name for f in dataclasses.fields(Judge)} == {"score", "ids"}


def test_every_command_is_run_or_refused_by_name() -> None:
    class Rewind:
        pass

    known = re.findall(r"^``(\w+)``", commands.__doc__ or "", flags=re.MULTILINE)
    assert len(known) == 14
    lacking = []
    with threads(LoggedTarget(lambda text: 1), None) as pair:
        job, ar = make_job(1, [[1]]), SCHEDULES["ar"](0, 1)
        executor = Executor(ar, job, GreedyRule(), pair.target, None)
        for name in known:
            cls = getattr(commands, name)
            try:
                executor._answer(cls.__new__(cls))  # an empty one: only its name is looked at
            except Exception as error:
                if "a command that realrun lacks" in str(error):
                    lacking.append(name)
    assert lacking == ["Discard"]
    for unknown in (Rewind(), Discard(np.array([0]), 1)):

        class Odder(Odd):
            def odd(self, ids: Any) -> Any:
                yield unknown  # noqa: B023

        name = type(unknown).__name__
        refused(Odder(2, 1), f"schedule 'odd' uses {name}, a command that realrun lacks")


def test_a_chunked_schedule_is_named() -> None:
    refused(SCHEDULES["sd"](2, 1, chunked=True), "sd asks for chunked prefill .Admit with n_decode")


def test_prompts_in_pieces_are_named() -> None:
    class Pieces(Odd):
        def odd(self, ids: Any) -> Any:
            yield Admit(1, 3)

    refused(Pieces(2, 1), "schedule 'odd' uses Admit.n_decode_tokens .chunked prefill., which real")


def test_testing_what_nobody_drafted_is_named() -> None:
    class Eager(Odd):
        def odd(self, ids: Any) -> Any:
            yield Start(Score(ids, 2))

    class Greedy(Odd):
        def odd(self, ids: Any) -> Any:
            draft = yield Draft(ids, 2)
            yield Start(Score(ids, 3, of=draft))

    refused(Eager(2, 1), "a Score tests 2 drafts of request 0, which has 0")
    refused(Greedy(2, 1), "a Score tests 3 drafts of request 0, which has 2")


def test_a_schedule_that_drafts_wants_a_drafter() -> None:
    with threads(LoggedTarget(lambda text: 1), None) as pair:
        with pytest.raises(InputError, match="schedule 'sd' drafts; expected a drafter"):
            Executor(SCHEDULES["sd"](2, 1), make_job(4, [[1]]), GreedyRule(), pair.target, None)
        # With nothing to draft it needs none.
        job = make_job(4, [[1]])
        result = Executor(SCHEDULES["sd"](0, 1), job, GreedyRule(), pair.target, None).run()
    assert result.outputs[0].tolist() == [1] * 4


def test_a_draft_without_a_drafter_is_named() -> None:
    class Odder(Odd):
        drafts = False

        def odd(self, ids: Any) -> Any:
            yield Draft(ids, 2)

    refused(Odder(2, 1), "the schedule drafts and there is no drafter")


@pytest.mark.parametrize(
    "name, k, batch, prompts, message",
    [
        ("sd", 2, 2, (9, 8193), "request 1 has 8193 prompt tokens and one pass takes 8192; exp"),
        ("sd", 63, 129, (9,), "verifying 129 requests with k=63 feeds 8256 tokens and one pass"),
        ("minedraft", 63, 129, (9,), "verifying 129 requests with k=63 feeds 8256 tokens and one"),
    ],
)
def test_what_no_pass_can_take_is_refused(
    name: str, k: int, batch: int, prompts: tuple[int, ...], message: str
) -> None:
    job = make_job(4, [[1] * n for n in prompts])
    schedule = SCHEDULES[name](k, batch * SCHEDULES[name].n_groups)
    target, draft = LoggedTarget(lambda text: 1), LoggedDrafter(lambda text: 1)
    with pytest.raises(InputError, match=message):
        execute(schedule, job, target, draft)
    assert not target.log
    assert not draft.log
