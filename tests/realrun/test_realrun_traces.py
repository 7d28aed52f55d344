"""Hand traces: every command, every pass and every record of small runs, written down.

The target counts up; so does the drafter, but for one mistake: it continues a text of four
tokens that begins with 10 by 99. Requests: 10 11 -> six tokens, 30 -> four tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from realrun_kit import LoggedDrafter, LoggedTarget, execute, make_job

from psdsim.commands import (
    Admit,
    Draft,
    Judge,
    Keep,
    Prefill,
    Score,
    Start,
    WaitAll,
)
from psdsim.records import StepKind
from psdsim.schedules import SCHEDULES
from realrun.executor import RunResult

K = 2
TEXTS = [[12, 13, 14, 15, 16, 17], [31, 32, 33, 34]]
P, D, V = (int(kind) for kind in (StepKind.PREFILL, StepKind.DRAFT, StepKind.DECODE))


def count_up(text: list[int]) -> int:
    return text[-1] + 1


def drafted(text: list[int]) -> int:
    return 99 if text[0] == 10 and len(text) == 4 else text[-1] + 1


def tell(command: Any) -> str:
    ids = getattr(command, "ids", None)
    who = "" if ids is None else " ".join(map(str, ids))
    match command:
        case Admit():
            return f"admit {command.capacity}"
        case Prefill():
            return f"prefill {who}"
        case Draft():
            return f"draft {who} n={command.n} after={np.asarray(command.after).tolist()}"
        case Score():
            return f"score {who} n={np.asarray(command.n).tolist()} bonus={command.bonus}"
        case Start():
            return f"start {tell(command.command)}"
        case WaitAll():
            return f"wait {len(command.handles)}"
        case Judge():
            return "judge"
        case Keep():
            untested = "" if command.untested is None else f" untested={command.untested.tolist()}"
            return f"keep {who} {np.asarray(command.mask).tolist()}{untested}"
    return type(command).__name__


def run(name: str, batch: int) -> tuple[list[str], LoggedTarget, LoggedDrafter, RunResult]:
    said: list[str] = []

    class Told(SCHEDULES[name]):
        def run(self) -> Iterator[Any]:
            inner, answer = super().run(), None
            while True:
                try:
                    command = inner.send(answer)
                except StopIteration:
                    return
                said.append(tell(command))
                answer = yield command

    target, draft = LoggedTarget(count_up), LoggedDrafter(drafted)
    job = make_job([6, 4], [[10, 11], [30]])
    schedule = Told(K, batch * Told.n_groups)
    result = execute(schedule, job, target, draft)
    return said, target, draft, result


def columns(result: RunResult, *names: str) -> list[tuple[int, ...]]:
    return list(zip(*(result.steps[name].tolist() for name in names), strict=True))


COUNTS = (
    "kind", "draft_group", "verify_group", "n_draft_seqs", "n_drafted_tokens", "n_verify_seqs",
    "n_verified_tokens", "n_accepted_tokens", "n_emitted_tokens", "n_prefill_tokens",
    "n_kv_tokens", "n_finished", "n_running",
)  # fmt: skip
PREFILL = ([0, 1], [0, 0], [[10, 11], [30]])


def check_records(result: RunResult, drafts: list[int], accepted: list[list[int]]) -> None:
    """Texts, request columns and spans say what the passes say."""
    assert [text.tolist() for text in result.outputs] == TEXTS
    requests, steps = result.requests, result.steps
    assert requests["output_tokens"].tolist() == [6, 4]
    assert requests["prompt_tokens"].tolist() == [2, 1]
    assert requests["n_drafted_tokens"].tolist() == drafts
    assert result.accepted == accepted
    assert requests["n_accepted_tokens"].tolist() == [sum(row) for row in accepted]
    assert result.failure is None
    n = int(np.count_nonzero(steps["kind"] != D))
    assert sum(span.device == "target" for span in result.spans) == n
    assert sum(span.kind == "draft" for span in result.spans) == np.count_nonzero(
        steps["n_draft_seqs"]
    )
    verified = sum(span.n_seqs for span in result.spans if span.kind == "verify")
    assert verified == steps["n_verify_seqs"].sum()
    assert (steps["start_s"][1:] == steps["end_s"][:-1]).all()
    for name in ("draft", "verify"):
        spans = [s.end_s - s.start_s for s in result.spans if s.kind == name]
        decode = steps["kind"] != P
        assert steps[f"{name}_time_s"][decode].sum() == pytest.approx(sum(spans), rel=1e-9)


def test_plain_decoding_step_by_step() -> None:
    said, target, draft, result = run("ar", 2)
    assert not draft.log
    assert target.log == [
        PREFILL,
        ([0, 1], [2, 1], [[12], [31]]),
        ([0, 1], [3, 2], [[13], [32]]),
        ([0, 1], [4, 3], [[14], [33]]),
        ([0], [5], [[15]]),
        ([0], [6], [[16]]),
    ]
    both = ["admit 2", "score 0 1 n=0 bonus=True", "judge"]
    one = ["admit 2", "score 0 n=0 bonus=True", "judge"]
    assert said == ["admit 2", "prefill 0 1", *3 * both, *2 * one, "admit 2"]
    assert columns(result, *COUNTS) == [
        (P, -1, -1, 0, 0, 0, 0, 0, 2, 3, 0, 0, 2),
        (V, -1, 0, 0, 0, 2, 0, 0, 2, 0, 3, 0, 2),
        (V, -1, 0, 0, 0, 2, 0, 0, 2, 0, 5, 0, 2),
        (V, -1, 0, 0, 0, 2, 0, 0, 2, 0, 7, 1, 1),
        (V, -1, 0, 0, 0, 1, 0, 0, 1, 0, 5, 0, 1),
        (V, -1, 0, 0, 0, 1, 0, 0, 1, 0, 6, 1, 0),
    ]
    check_records(result, [0, 0], [[], []])
    assert result.requests["n_rounds"].tolist() == [5, 3]


def test_serial_speculation_step_by_step() -> None:
    said, target, draft, result = run("sd", 2)
    assert draft.log == [
        (*PREFILL, [0, 0]),
        ([0, 1], [2, 1], [[12], [31]], [2, 2]),
        ([0], [4], [[14]], [2]),  # of its own 12 13 99 the drafter keeps 12 13
    ]
    assert target.log == [
        PREFILL,
        ([0, 1], [2, 1], [[12, 13, 99], [31, 32, 33]]),
        ([0], [4], [[14, 15, 16]]),  # 99 is overwritten by 14
    ]
    assert said == [
        "admit 2", "prefill 0 1",
        "admit 2", "draft 0 1 n=2 after=0", "score 0 1 n=2 bonus=True", "judge",
        "admit 2", "draft 0 n=2 after=0", "score 0 n=2 bonus=True", "judge",
        "admit 2",
    ]  # fmt: skip
    assert columns(result, *COUNTS) == [
        (P, -1, -1, 0, 0, 0, 0, 0, 2, 3, 0, 0, 2),
        (V, 0, 0, 2, 4, 2, 4, 3, 5, 0, 3, 1, 1),
        (V, 0, 0, 1, 2, 1, 2, 2, 3, 0, 4, 1, 0),
    ]
    check_records(result, [4, 2], [[1, 2], [2]])
    assert result.tested == [[2, 2], [2]]
    assert result.requests["n_rounds"].tolist() == [2, 1]
    assert result.bonus


def test_two_sub_batches_step_by_step() -> None:
    said, target, draft, result = run("minedraft", 1)
    assert draft.log == [
        (*PREFILL, [0, 0]),
        ([0], [2], [[12]], [2]),
        ([1], [1], [[31]], [2]),
        ([0], [4], [[14]], [2]),
    ]
    assert target.log == [
        PREFILL,
        ([0], [2], [[12, 13, 99]]),
        ([1], [1], [[31, 32, 33]]),
        ([0], [4], [[14, 15, 16]]),
    ]
    assert said == [
        "admit 2", "prefill 0 1",
        "admit 2", "start draft 0 n=2 after=0", "wait 1",
        "admit 2", "start draft 1 n=2 after=0", "start score 0 n=2 bonus=True", "wait 2", "judge",
        "admit 2", "start draft 0 n=2 after=0", "start score 1 n=2 bonus=True", "wait 2", "judge",
        "admit 2", "start score 0 n=2 bonus=True", "wait 1", "judge",
        "admit 2",
    ]  # fmt: skip
    assert columns(result, *COUNTS) == [
        (P, -1, -1, 0, 0, 0, 0, 0, 2, 3, 0, 0, 2),
        (D, 0, -1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 2),
        (V, 1, 0, 1, 2, 1, 2, 1, 2, 0, 2, 0, 2),
        (V, 0, 1, 1, 2, 1, 2, 2, 3, 0, 1, 1, 1),
        (V, -1, 0, 0, 0, 1, 2, 2, 3, 0, 4, 1, 0),
    ]
    check_records(result, [4, 2], [[1, 2], [2]])
    assert result.requests["n_rounds"].tolist() == [2, 1]


@pytest.mark.parametrize("name", ["pearl", "pearl-draft-ahead"])
def test_pre_and_post_verify_step_by_step(name: str) -> None:
    said, target, draft, result = run(name, 2)
    assert draft.log == [
        (*PREFILL, [0, 0]),
        ([0, 1], [2, 1], [[12], [31]], [2, 2]),  # 13 99, 32 33: the first of each is right
        ([0, 1], [5, 4], [[], []], [2, 2]),  # behind 99 and 33, which it drafted itself
        ([0], [4], [[14]], [2]),  # 99 was wrong: 99 100 101 are gone
        ([0], [7], [[]], [2]),
    ]
    assert target.log == [
        PREFILL,
        ([0, 1], [2, 1], [[12], [31]]),
        ([0, 1], [3, 2], [[13, 99], [32, 33]]),
        ([0], [4], [[14]]),
        ([0], [5], [[15, 16]]),
    ]
    both = "admit 2", "start draft 0 1 n=2 after=%s", "start score 0 1 n=%s bonus=False"
    one = "admit 2", "start draft 0 n=2 after=%s", "start score 0 n=%s bonus=False"
    assert said == [
        "admit 2", "prefill 0 1",
        both[0], both[1] % [0, 0], both[2] % [0, 0], "wait 2", "judge", "keep 0 1 [True, True]",
        both[0], both[1] % [1, 1], both[2] % [1, 1], "wait 2", "judge", "keep 0 1 [False, False]",
        one[0], one[1] % [0], one[2] % [0], "wait 2", "judge", "keep 0 [True]",
        one[0], one[1] % [1], one[2] % [1], "wait 2", "judge", "keep 0 [False]",
        "admit 2",
    ]  # fmt: skip
    assert columns(result, *COUNTS) == [
        (P, -1, -1, 0, 0, 0, 0, 0, 2, 3, 0, 0, 2),
        (V, 0, 0, 2, 4, 2, 2, 2, 2, 0, 3, 0, 2),
        (V, 0, 0, 2, 4, 2, 4, 2, 3, 0, 5, 1, 1),
        (V, 0, 0, 1, 2, 1, 1, 1, 1, 0, 4, 0, 1),
        (V, 0, 0, 1, 2, 1, 2, 2, 2, 0, 5, 1, 0),
    ]
    check_records(result, [8, 4], [[1, 0, 1, 2], [1, 2]])
    assert result.tested == [[1, 2, 1, 2], [1, 2]]
    assert not result.bonus


def test_post_verify_alone_step_by_step() -> None:
    """Request 0 drafts 13 99, then 100 101: rejected at 99; request 1 drafts 32 33, then 34 35."""
    said, target, draft, result = run("pearl-no-pre-verify", 2)
    assert draft.log == [
        (*PREFILL, [0, 0]),
        ([0, 1], [2, 1], [[12], [31]], [2, 2]),  # 13 99, 32 33: all of it untested
        ([0, 1], [5, 4], [[], []], [2, 2]),  # 100 101, 34 35
        ([0], [4], [[14]], [2]),  # 99 was wrong: 15 16 is drafted, and nothing is tested
        ([0], [7], [[]], [2]),
    ]
    assert target.log == [
        PREFILL,
        ([0, 1], [2, 1], [[12, 13, 99], [31, 32, 33]]),
        ([0], [4], [[14, 15, 16]]),
    ]
    assert said == [
        "admit 2", "prefill 0 1",
        "admit 2", "start draft 0 1 n=2 after=[0, 0]", "wait 1",
        "keep 0 1 [True, True] untested=[True, True]",
        "admit 2", "start draft 0 1 n=2 after=[2, 2]", "start score 0 1 n=[2, 2] bonus=False",
        "wait 2", "judge", "keep 0 1 [False, False] untested=[False, False]",
        "admit 2", "start draft 0 n=2 after=[0]", "wait 1", "keep 0 [True] untested=[True]",
        "admit 2", "start draft 0 n=2 after=[2]", "start score 0 n=[2] bonus=False",
        "wait 2", "judge", "keep 0 [False] untested=[False]",
        "admit 2",
    ]  # fmt: skip
    assert columns(result, *COUNTS) == [
        (P, -1, -1, 0, 0, 0, 0, 0, 2, 3, 0, 0, 2),
        (D, 0, -1, 2, 4, 0, 0, 0, 0, 0, 0, 0, 2),
        (V, 0, 0, 2, 4, 2, 6, 4, 5, 0, 3, 1, 1),
        (D, 0, -1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 1),
        (V, 0, 0, 1, 2, 1, 3, 3, 3, 0, 4, 1, 0),
    ]
    check_records(result, [8, 4], [[1, 3], [3]])
    assert result.tested == [[3, 3], [3]]
    assert result.discarded == [2, 1]  # 101 and what follows the tested first of a block
    assert not result.bonus
