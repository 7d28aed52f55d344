"""What the drafter believes of its tokens: its own probabilities, asked for and told."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from coupling_kit import executed  # noqa: E402
from realrun_kit import (  # noqa: E402
    LoggedDrafter,
    LoggedTarget,
    drafter_of,
    execute,
    full_logits,
    make_job,
    ragged,
    tiny,
    tiny_decoder,
)

from psdsim.acceptance import IidAcceptance  # noqa: E402
from psdsim.commands import Confidence, Draft, Score, Start  # noqa: E402
from psdsim.errors import InputError  # noqa: E402
from psdsim.schedules.serial import SpeculativeDecoding  # noqa: E402
from psdsim.schedules.tetris import Tetris  # noqa: E402
from realrun.drafters import NgramDrafter  # noqa: E402
from realrun.workers import DraftWork  # noqa: E402


class Serial(Tetris):
    asks_confidence = True


def count_up(text: list[int]) -> int:
    return text[-1] + 1


def slips(text: list[int]) -> int:
    """Count up, but continue 12 by 99."""
    return 99 if text[-1] == 12 else text[-1] + 1


def knows(text: list[int]) -> float:
    return 0.25 if text[-1] >= 99 else 0.75


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_confidence_is_the_drafters_own_probability(temperature: float) -> None:
    decoder = tiny_decoder(tiny(layers=2))
    drafter = drafter_of(decoder, 3, 32, temperature)
    prompts, counts, slots = ragged(3), np.array([3, 1, 2]), np.array([2, 0, 1])
    tokens, lengths = np.concatenate(prompts), np.array([len(p) for p in prompts])
    work = DraftWork(np.arange(3), slots, slots * 0, tokens, lengths, counts, confidences=True)
    done = drafter.run(work)
    assert done.confidences is not None
    assert done.confidences.shape == (3, 3)
    decoder.set_positions(32)
    for i, prompt in enumerate(prompts):
        text = list(prompt)
        for j in range(counts[i]):
            law = torch.softmax(full_logits(decoder, text)[-1] / (temperature or 1.0), dim=-1)
            token = int(done.tokens[i, j])
            assert done.confidences[i, j] == pytest.approx(float(law[token]), rel=1e-4)
            text.append(token)
        assert not done.confidences[i, counts[i] :].any()


def test_nobody_pays_for_confidences_that_are_not_asked_for() -> None:
    asked: list[bool] = []

    class Watched(LoggedDrafter):
        def run(self, work: Any) -> Any:
            asked.append(work.confidences)
            done = super().run(work)
            assert (done.confidences is not None) == work.confidences
            return done

    for schedule, expected in ((SpeculativeDecoding(2, 1), False), (Serial(2, 1), True)):
        asked.clear()
        draft = Watched(slips, sure=knows)
        execute(schedule, make_job(4, [[1]]), LoggedTarget(count_up), draft)
        # The prefill drafts nothing.
        assert asked == [False] + [expected] * (len(asked) - 1)


class Curious(SpeculativeDecoding):
    asks_confidence = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.told: list[Any] = []

    def _learn(self, ids: Any, draft: Any, verdict: Any) -> None:
        self.told.append((draft.ids.tolist(), draft.lengths.tolist()))

    def _propose(self, ids: Any) -> Any:
        draft = yield Draft(ids, np.arange(1, ids.size + 1))
        self.told.append((yield Confidence(draft)).tolist())
        return draft

    def _test(self, ids: Any, draft: Any, chunks: Any) -> Any:
        score = yield Score(ids, draft.lengths, of=draft)
        assert score.lengths.tolist() == draft.lengths.tolist()
        return score


def test_places_that_were_not_drafted_have_no_confidence() -> None:
    schedule = Curious(2, 2)
    job = make_job(3, [[5], [15]])
    execute(schedule, job, LoggedTarget(count_up), LoggedDrafter(slips, sure=knows))
    assert schedule.told[:2] == [[[0.75, 0.0], [0.75, 0.75]], ([0, 1], [1, 2])]


def test_a_request_that_has_left_has_no_confidence() -> None:
    class Late(SpeculativeDecoding):
        asks_confidence = True
        told: Any = None

        def _learn(self, ids: Any, draft: Any, verdict: Any) -> None:
            if ids.size == 2:
                self.old = draft

        def _propose(self, ids: Any) -> Any:
            draft = yield Draft(ids, self.k)
            if ids.size == 1:
                Late.told = (yield Confidence(self.old)).tolist()
            return draft

    for rule in (None, "forced"):
        Late.told = None
        if rule is None:
            job = make_job([4, 9], [[5], [15]])
            execute(Late(2, 2), job, LoggedTarget(count_up), LoggedDrafter(count_up, sure=knows))
            assert Late.told == [[0.0, 0.0], [0.75, 0.75]]
        else:
            executed(partial(Late, 2, 2), IidAcceptance(alpha=1.0), [4, 9], prompts=[[0], [0]])
            assert Late.told == [[0.0, 0.0], [1.0, 1.0]]


class Silent(Serial):
    asks_confidence = False


class Hasty(SpeculativeDecoding):
    asks_confidence = True

    def _propose(self, ids: Any) -> Any:
        draft = yield Start(Draft(ids, self.k))
        yield Confidence(draft)


@pytest.mark.parametrize(
    "schedule, drafter, message",
    [
        (Serial(2, 1), NgramDrafter(1, 64), "asks for confidences and the drafter has none; exp"),
        (Silent(2, 1), LoggedDrafter(slips, sure=knows), "a schedule that says that it asks"),
        (Hasty(2, 1), LoggedDrafter(slips, sure=knows), "'sd' asks for confidences of no finished"),
    ],
)
def test_confidences_that_nobody_has_are_named(schedule: Any, drafter: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        execute(schedule, make_job(4, [[1, 2]]), LoggedTarget(count_up), drafter)
