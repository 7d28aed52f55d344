"""Selectors and confidences: less is verified than was drafted, and by what the drafter believes.

The schedules are TETRIS and MineDraft with it: k + extra drafts each, of which the k * batch that
look best are verified.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from coupling_kit import OUTPUTS, assert_same, executed, simulated  # noqa: E402
from realrun_kit import (  # noqa: E402
    LoggedDrafter,
    LoggedTarget,
    drafter_of,
    execute,
    make_job,
    perturbed,
    ragged,
    room,
    target_of,
    tiny,
    tiny_decoder,
)

from psdsim.acceptance import (  # noqa: E402
    AcceptanceModel,
    BetaAcceptance,
    IidAcceptance,
    MarkovRoundsAcceptance,
    PositionAcceptance,
    Replay,
)
from psdsim.commands import Confidence, Draft, Judge, Score, Start  # noqa: E402
from psdsim.errors import InputError  # noqa: E402
from psdsim.schedules import Schedule  # noqa: E402
from psdsim.schedules.pearl import Pearl  # noqa: E402
from psdsim.schedules.serial import SpeculativeDecoding  # noqa: E402
from psdsim.schedules.tetris import MineDraftTetris, Tetris  # noqa: E402
from psdsim.verdict import Proposals  # noqa: E402
from realrun.executor import RunResult  # noqa: E402
from realrun.workers.pin import one_torch_thread  # noqa: E402


class Serial(Tetris):
    asks_confidence = True


class Halves(MineDraftTetris):
    asks_confidence = True


SCHEDULES: dict[str, type[Schedule]] = {"serial": Serial, "halves": Halves}


def make(name: str, k: int, batch: int, extra: int) -> Schedule:
    cls: Any = SCHEDULES[name]
    return cls(k, batch * cls.n_groups, extra=extra)


# --- forced acceptance: the tape's confidences, the simulator's steps ------------------------

MODELS: dict[str, AcceptanceModel] = {
    "iid": IidAcceptance(alpha=0.7),
    "beta": BetaAcceptance(mean=0.65, concentration=3.0),
    "position": PositionAcceptance(convention="conditional", rates=(0.9, 0.5, 0.8, 0.6, 0.7)),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_selector_takes_the_simulators_steps(name: str, kind: str) -> None:
    model = MODELS[kind]
    for concentration, extra in ((0.5, 2), (4.0, 2), (np.inf, 2), (4.0, 0)):
        build = partial(make, name, 3, 2, extra)
        known = Proposals(concentration=concentration, temperature=0.8)
        raw = simulated(build, model, OUTPUTS, known)
        assert_same(raw, executed(build, model, OUTPUTS, known))
        assert (raw.tally.n_dropped > 0) == (extra > 0)


def test_confidences_that_know_less_choose_otherwise() -> None:
    build = partial(make, "serial", 2, 7, 4)
    known = [Proposals(concentration=kappa) for kappa in (0.2, np.inf)]
    found = [executed(build, IidAcceptance(alpha=0.6), [24] * 7, one) for one in known]
    assert found[0].tested != found[1].tested
    rates = [r.steps["n_accepted_tokens"].sum() / r.steps["n_verified_tokens"].sum() for r in found]
    assert rates[0] > rates[1] + 0.04


class Asking(Pearl):
    """PEARL that notes what is believed of every block, which lies behind tentative drafts."""

    asks_confidence = True

    def __init__(self, told: list[Any]) -> None:
        super().__init__(3, 2)
        self.told = told

    def run(self) -> Any:
        inner, answer, draft = super().run(), None, None
        while True:
            try:
                command = inner.send(answer)
            except StopIteration:
                return
            if isinstance(command, Judge):
                self.told.append((yield Confidence(draft)).tolist())
            answer = yield command
            if isinstance(command, Start) and isinstance(command.command, Draft):
                draft = answer


def test_confidences_behind_tentative_drafts_are_the_simulators() -> None:
    told: list[list[Any]] = []
    for run in (simulated, executed):
        mine: list[Any] = []
        told.append(mine)
        known = Proposals(concentration=2.0)

        def build(mine: list[Any] = mine) -> Schedule:
            mine.clear()
            return Asking(mine)

        run(build, IidAcceptance(alpha=0.8), OUTPUTS, known)
    assert told[0] == told[1]
    assert len(told[0]) > 10


def test_models_without_confidences_say_so() -> None:
    build = partial(make, "serial", 3, 2, 1)
    with pytest.raises(InputError, match="a recording of rounds has no confidences"):
        executed(build, Replay(k=4, bonus=True, rounds=((1, 2),) * 7), OUTPUTS)
    rounds = MarkovRoundsAcceptance(after_full=(0.9,) * 4, otherwise=(0.5,) * 4)
    with pytest.raises(InputError, match="whole chain rounds"):
        executed(build, rounds, OUTPUTS)


# --- by hand ----------------------------------------------------------------------------------


def count_up(text: list[int]) -> int:
    return text[-1] + 1


def slips(text: list[int]) -> int:
    """Count up, but continue 12 by 99."""
    return 99 if text[-1] == 12 else text[-1] + 1


def knows(text: list[int]) -> float:
    return 0.25 if text[-1] >= 99 else 0.75


def test_a_selection_step_by_step() -> None:
    """Of request 0 the drafts are 12 99 100, of request 1 they are 31 32 33: four are verified.

    Survival is .75 .19 .05 and .75 .56 .42, so one of the first and three of the second.
    """
    target = LoggedTarget(count_up)
    draft = LoggedDrafter(slips, sure=knows)
    result = execute(Serial(2, 2, extra=1), make_job([6, 6], [[10], [29]]), target, draft)
    assert [text.tolist() for text in result.outputs] == [[*range(11, 17)], [*range(30, 36)]]
    assert target.log == [
        ([0, 1], [0, 0], [[10], [29]]),
        ([0, 1], [1, 1], [[11, 12], [30, 31, 32, 33]]),
        ([0, 1], [3, 5], [[13, 14, 15], [34, 35, 36]]),
    ]
    assert draft.log[1:3] == [
        ([0, 1], [1, 1], [[11], [30]], [3, 3]),
        # Of 12 99 100 the drafter keeps 12; all of 31 32 33 stands, and 34 is new.
        ([0, 1], [3, 5], [[13], [34]], [3, 3]),
    ]
    assert result.tested == [[1, 2], [3, 2]]
    assert result.accepted == [[1, 2], [3, 2]]
    assert result.dropped == [3, 1]
    assert result.discarded == [0, 0]
    steps = result.steps
    assert steps["n_drafted_tokens"].tolist() == [0, 6, 6]
    assert steps["n_verified_tokens"].tolist() == [0, 4, 4]
    assert steps["n_accepted_tokens"].tolist() == [0, 4, 4]
    assert steps["n_emitted_tokens"].tolist() == [2, 6, 4]  # clipped at the stop


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_draft_is_tested_dropped_or_discarded(name: str) -> None:
    outputs = [9, 1, 14, 6, 2, 11]
    target = LoggedTarget(lambda text: sum(text[-3:]) * 7 % 50)
    draft = LoggedDrafter(
        lambda text: (sum(text[-3:]) * 7 + (sum(text) % 3 == 0)) % 50,
        sure=lambda text: 0.5 + 0.4 * (sum(text) % 5) / 5,
    )
    job = make_job(outputs, ragged(len(outputs), vocab=50))
    result = execute(make(name, 3, 2, 2), job, target, draft)
    drafted = result.requests["n_drafted_tokens"]
    tested = np.array([sum(row) for row in result.tested])
    assert (drafted == tested + result.dropped + result.discarded).all()
    rounds = [n for row in result.tested for n in row]
    assert min(rounds) < 3 < max(rounds)
    assert sum(result.dropped) > 0
    assert not any(result.discarded)
    assert result.steps["n_verified_tokens"].sum() == tested.sum()
    assert result.steps["n_emitted_tokens"].sum() == sum(outputs)
    # No pass of two requests verifies more than k of each in the mean.
    assert (result.steps["n_verified_tokens"] <= 3 * result.steps["n_verify_seqs"]).all()


class Hesitant(SpeculativeDecoding):
    """Drafts two tokens and verifies, in turn, none of them, or none of them request by request."""

    round = 0

    def _test(self, ids: Any, draft: Any, chunks: Any) -> Any:
        self.round += 1
        n = 0 if self.round % 2 else np.zeros(ids.size, dtype=np.int64)
        return (yield Score(ids, n, of=draft))


def test_drafts_of_which_none_is_verified_are_dropped() -> None:
    result = execute(Hesitant(2, 2), make_job(4, [[1], [2]]), LoggedTarget(count_up),
                     LoggedDrafter(slips))  # fmt: skip
    assert [text.tolist() for text in result.outputs] == [[2, 3, 4, 5], [3, 4, 5, 6]]
    assert result.dropped == [6, 6]
    assert result.tested == [[0], [0]]
    build = partial(Hesitant, 2, 2)
    assert_same(*(run(build, IidAcceptance(alpha=0.5), OUTPUTS) for run in (simulated, executed)))


class Behind(SpeculativeDecoding):
    """Drafts twice from the same text, and verifies what it drafted first."""

    def _propose(self, ids: Any) -> Any:
        first = yield Draft(ids, self.k)
        self.second = yield Draft(ids, self.k)
        return first

    def _test(self, ids: Any, draft: Any, chunks: Any) -> Any:
        return (yield Score(ids, 1, of=draft))


def test_the_named_draft_is_the_one_that_is_verified() -> None:
    seen: list[int] = []

    def once(text: list[int]) -> int:
        """Be right the first time, wrong the second."""
        seen.append(text[-1])
        return text[-1] + 1 if len(seen) <= 2 else 0

    target = LoggedTarget(count_up)
    execute(Behind(2, 1), make_job(3, [[5]]), target, LoggedDrafter(once))
    assert target.log[1] == ([0], [1], [[6, 7]])


# --- lossless ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_selector_changes_no_token(name: str) -> None:
    decoder = tiny_decoder(tiny())
    job = make_job([24, 9, 30, 1, 17, 22], ragged(6))

    def run(schedule: Schedule) -> RunResult:
        length = room(job, 8)
        target = target_of(decoder, schedule.capacity, length)
        draft = drafter_of(perturbed(decoder, 0.1), schedule.capacity, length)
        with one_torch_thread():
            result = execute(schedule, job, target, draft)
        assert result.failure is None
        return result

    plain = run(SpeculativeDecoding(0, 1))
    for k, extra, batch in ((1, 3, 2), (3, 2, 4), (4, 0, 1)):
        result = run(make(name, k, batch, extra))
        for a, b in zip(plain.outputs, result.outputs, strict=True):
            assert a.tolist() == b.tolist()
        assert (sum(result.dropped) > 0) == (extra > 0)
        assert sum(map(sum, result.accepted)) > 20
