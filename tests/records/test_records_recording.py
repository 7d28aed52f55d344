"""Recordings: what a run leaves comes back from its file, and bad files get one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from psdsim import InputError, Scenario, simulate
from psdsim.records import RoundLog, read_recording
from psdsim.records.jsonl import read_lines, to_lines

SMALL = {
    "workload": {
        "kind": "batch",
        "n_requests": 12,
        "prompt_tokens": 8,
        "output_tokens": {"kind": "empirical", "values": [1, 9, 30]},
    },
    "engine.max_num_seqs": 3,
    "engine.n_replicas": 2,
}


@pytest.mark.parametrize("schedule", ["ar", "sd", "minedraft", "pearl"])
def test_everything_comes_back(tmp_path: Path, schedule: str) -> None:
    run = simulate(Scenario.builtin(SMALL), schedule, 3, timeline=True, record_rounds=True)
    path = tmp_path / "run.jsonl"
    run.to_jsonl(path)
    read = read_recording(path)
    assert read.metadata["schedule"] == schedule
    assert read.metadata["bonus"] is (schedule != "pearl")
    assert not read.partial
    for kept, columns in ((run.raw.steps, read.steps), (run.raw.requests, read.requests)):
        for name, column in kept.items():
            np.testing.assert_array_equal(columns[name], column)
            assert columns[name].dtype == column.dtype
    assert read.spans == tuple(run.spans)
    for ours, theirs in zip(read_lines(path)[1:], (read.steps, read.requests), strict=True):
        for name, column in theirs.items():
            np.testing.assert_array_equal(ours[name], column)
    if schedule == "ar":
        assert read.rounds is run.raw.rounds is None
        return
    assert read.rounds is not None
    for ours, theirs in (("tested", "tested"), ("accepted", "accepted")):
        for a, b in zip(getattr(read.rounds, ours), getattr(run.raw.rounds, theirs), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("schedule", ["sd", "minedraft", "pearl"])
def test_rounds_add_up_to_the_tables(schedule: str) -> None:
    run = simulate(Scenario.builtin(SMALL), schedule, 3, record_rounds=True)
    rounds, requests, steps = run.raw.rounds, run.raw.requests, run.raw.steps
    assert rounds is not None
    assert [row.size for row in rounds.accepted] == requests["n_rounds"].tolist()
    tested = sum(int(row.sum()) for row in rounds.tested)
    accepted = sum(int(row.sum()) for row in rounds.accepted)
    assert tested == steps["n_verified_tokens"].sum()
    assert accepted == steps["n_accepted_tokens"].sum()
    bonus = schedule != "pearl"
    for t, a, n in zip(rounds.tested, rounds.accepted, requests["output_tokens"], strict=True):
        emitted = a + (1 if bonus else (a < t))
        # The prefill gives one token; the last round may overshoot, no other reaches the end.
        assert 1 + emitted[:-1].sum() < n or n == 1
        assert 1 + emitted.sum() >= n
        assert set(t.tolist()) <= ({3} if bonus else {1, 3})


@pytest.mark.parametrize("schedule", ["sd", "minedraft", "pearl"])
def test_a_recording_is_replayed_by_its_own_file(tmp_path: Path, schedule: str) -> None:
    lengths = SMALL["workload"] | {"output_tokens": {"kind": "empirical", "values": [9, 30]}}
    scenario = Scenario.builtin(SMALL | {"workload": lengths, "acceptance.alpha": 0.6})
    run = simulate(scenario, schedule, 3, seed=4, record_rounds=True)
    path = tmp_path / "run.jsonl"
    run.to_jsonl(path)
    bonus = schedule != "pearl"
    replay = {"kind": "replay", "k": 3, "path": str(path), "bonus": bonus}
    again = simulate(scenario.set({"acceptance": replay}), schedule, 3, seed=4)
    for name, column in run.raw.steps.items():
        np.testing.assert_array_equal(again.raw.steps[name], column)


def test_a_log_deals_rounds_out_in_order() -> None:
    log = RoundLog()
    assert [row.size for row in log.close(2).accepted] == [0, 0]
    log.add(np.array([2, 0]), 3, np.array([1, 2]))
    log.add(np.array([0]), np.array([1]), np.array([0]))
    rounds = log.close(3)
    assert [row.tolist() for row in rounds.tested] == [[3, 1], [], [3]]
    assert [row.tolist() for row in rounds.accepted] == [[2, 0], [], [1]]


def lines(**changes: object) -> list[str]:
    """Return a short good file, changed: NAME=value in all request lines; None drops a key."""
    run = simulate(Scenario.builtin({"workload.n_requests": 2, "workload.output_tokens": 4}), "sd")
    out = list(to_lines({}, run.raw.steps, run.raw.requests))
    for i, line in enumerate(out):
        row = json.loads(line)
        if row.get("type") == "Request":
            row |= changes
            out[i] = json.dumps({k: v for k, v in row.items() if v is not None})
    return out


SPAN = {"type": "Span", "replica": 0, "device": "draft", "group": 0, "kind": "draft",
        "start_s": 0.0, "end_s": 1.0, "n_seqs": 1, "n_tokens": 1}  # fmt: skip
BAD: list[tuple[list[str], str]] = [
    (['{"metadata": 3}'], "line 1: metadata is no object"),
    (["[1]"], "line 1: is no JSON object"),
    (['{"type": "Stop"}'], "line 1: type is 'Stop'; expected 'Step', 'Request' or 'Span'"),
    (["{", "x"], "line 1: is not JSON"),
    (["[" * 100_000], "line 1: is not JSON"),
    (["9" * 5000], "line 1: is not JSON that can be read"),
    ([json.dumps(SPAN | {"kind": "nap"})], "line 1: kind is 'nap'; expected one of prefill"),
    ([json.dumps(SPAN | {"end_s": "late"})], "line 1: end_s is 'late'; expected a number"),
    (['{"type": "Span"}'], "line 1: the key 'replica' is missing"),
]
CHANGED: list[tuple[dict[str, object], str]] = [
    ({"tested": [4, 4]}, "tested and accepted are not both there"),
    ({"tested": [4, 4], "accepted": [1]}, "tested has 2 rounds and accepted 1"),
    ({"tested": [4, 4], "accepted": [1, 5]}, "more drafts are accepted than tested"),
    ({"tested": [4.0], "accepted": [1]}, r"tested is \[4.0\]; expected a list of whole numbers"),
    ({"tested": 4, "accepted": [1]}, "tested is 4"),
    ({"prompt_tokens": "many"}, "prompt_tokens is 'many'; expected a number"),
    ({"prompt_tokens": True}, "prompt_tokens is 'True'; expected a number"),
    ({"n_rounds": 1.5}, "n_rounds is 1.5; expected a whole number"),
    ({"n_rounds": 1e30}, "n_rounds is 1e.30; expected a whole number"),
    ({"replica": 40_000}, "replica is 40000; expected a whole number"),
    ({"finish_s": None}, "the key 'finish_s' is missing"),
]


@pytest.mark.parametrize("text, message", BAD, ids=lambda v: str(v)[:30])
def test_bad_lines_are_named(tmp_path: Path, text: list[str], message: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(text))
    with pytest.raises(InputError, match=message):
        read_recording(path)


@pytest.mark.parametrize("changes, message", CHANGED, ids=lambda v: str(v)[:30])
def test_bad_requests_are_named(tmp_path: Path, changes: dict, message: str) -> None:
    path = tmp_path / "run.jsonl"
    text = lines(**changes)
    path.write_text("\n".join(text))
    with pytest.raises(InputError, match=message) as caught:
        read_recording(path)
    assert f"run.jsonl: line {len(text) - 1}: " in str(caught.value)


def test_a_run_cut_short_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    text = [line.replace('{"metadata": {}}', '{"metadata": {"partial": true}}') for line in lines()]
    text[-1] = json.dumps(json.loads(text[-1]) | {"finish_s": None})
    path.write_text("\n".join(text))
    read = read_recording(path)
    assert read.partial
    assert np.isnan(read.requests["finish_s"]).tolist() == [False, True]
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"run.jsonl: can't be read"):
        read_recording(path)
    with pytest.raises(InputError, match=r"gone.jsonl: can't be read: No such file"):
        read_recording(tmp_path / "gone.jsonl")
