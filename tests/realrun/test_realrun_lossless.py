"""Greedy text is plain decoding's, token for token, whatever drafts and whatever the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from realrun_kit import (  # noqa: E402
    NAMES,
    drafter_of,
    execute,
    full_logits,
    make_job,
    make_schedule,
    perturbed,
    ragged,
    room,
    saved,
    target_of,
    tiny,
    tiny_decoder,
)

from realrun.drafters import NgramDrafter  # noqa: E402
from realrun.executor import RunResult  # noqa: E402
from realrun.executor.texts import Text  # noqa: E402
from realrun.lossless import compare, compare_texts, first_difference  # noqa: E402
from realrun.models.load import load_model  # noqa: E402
from realrun.workers import Done, DraftWork  # noqa: E402

CONFIG = tiny()
TARGET = tiny_decoder(CONFIG)
NOISE = 0.1
DRAFTS = {"perturbed": perturbed(TARGET, NOISE), "same": TARGET}
N = 6
JOB = make_job([24, 9, 30, 1, 17, 22], ragged(N))


def run(name: str, k: int, batch: int, drafter: str) -> RunResult:
    schedule = make_schedule(name, k, batch)
    length = room(JOB, k)
    if drafter == "ngram":
        draft: Any = NgramDrafter(schedule.capacity, length)
    else:
        draft = drafter_of(DRAFTS[drafter], schedule.capacity, length)
    return execute(schedule, JOB, target_of(TARGET, schedule.capacity, length), draft)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def plain() -> list[list[int]]:
    """Text by plain decoding, each token from a whole pass without a cache."""
    TARGET.set_positions(room(JOB, 8))
    texts = []
    for prompt, n in zip(JOB.prompts, JOB.output_tokens, strict=True):
        text = prompt.tolist()
        for _ in range(n):
            text.append(int(full_logits(TARGET, text)[-1].argmax()))
        texts.append(text[prompt.size :])
    return texts


def texts_of(result: RunResult) -> list[list[int]]:
    assert result.failure is None
    return [text.tolist() for text in result.outputs]


def rate(result: RunResult) -> float:
    steps = result.steps
    return float(steps["n_accepted_tokens"].sum() / steps["n_verified_tokens"].sum())


@pytest.mark.parametrize("batch", [1, 2, 6])
def test_plain_decoding_in_a_cache_is_plain_decoding(plain: Any, batch: int) -> None:
    assert texts_of(run("ar", 0, batch, "same")) == plain


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ar"])
def test_a_draft_model_changes_no_token(plain: Any, name: str) -> None:
    for k, batch in ((1, 2), (3, 1), (3, 4), (6, 2)):
        result = run(name, k, batch, "perturbed")
        assert texts_of(result) == plain
        assert 0.2 < rate(result) < 0.95


@pytest.mark.parametrize("name", ["sd", "minedraft", "pearl", "pearl-no-pre-verify"])
def test_a_look_up_changes_no_token(plain: Any, name: str) -> None:
    assert texts_of(run(name, 4, 2, "ngram")) == plain


@pytest.mark.parametrize("name", ["sd", "pearl"])
def test_the_targets_first_layers_change_no_token(plain: Any, name: str, tmp_path: Any) -> None:
    DRAFTS["early"] = load_model(saved(TARGET, tmp_path / "model"), n_layers=2).decoder
    assert len(DRAFTS["early"].layers) == 2
    assert texts_of(run(name, 3, 3, "early")) == plain


@pytest.mark.parametrize("name", ["sd", "minedraft", "pearl", "pearl-no-pre-verify"])
def test_the_target_as_its_own_drafter_is_always_right(plain: Any, name: str) -> None:
    result = run(name, 3, 2, "same")
    assert texts_of(result) == plain
    assert result.tested == result.accepted


# --- what must be found -----------------------------------------------------------------------


@pytest.mark.parametrize("shift", [-1, 1])
@pytest.mark.parametrize("name", ["ar", "sd", "pearl"])
def test_a_wrong_start_position_is_found(
    plain: Any, name: str, shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Text longer than the cache was told, or shorter: keys end up at a wrong position.
    monkeypatch.setattr(
        Text, "n_cached", property(lambda text: max(len(text.tokens) - 1 + shift, 0))
    )
    assert texts_of(run(name, 3, 3, "perturbed")) != plain


def test_drafts_that_are_not_rolled_back_are_found(
    plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The next pass starts behind what was fed, accepted or not.
    fed: dict[int, int] = {}

    def behind(text: Text) -> int:
        place = fed.get(text.request, len(text.tokens) - 1)
        fed[text.request] = place + 4
        return place

    monkeypatch.setattr(Text, "n_cached", property(behind))
    result = run("sd", 3, 3, "perturbed")
    # The row runs out of the cache, or its text is another one.
    assert result.failure is not None or texts_of(result) != plain


class Watched:
    """A drafter whose every draft is compared with one made from the text alone."""

    def __init__(self, inner: Any, decoder: Any) -> None:
        self.inner = inner
        self.decoder = decoder
        self.n_wrong = self.n_right = 0

    def run(self, work: DraftWork) -> Done:
        done = self.inner.run(work)
        for i, slot in enumerate(work.slots.tolist()):
            text = self.inner.texts[slot, : self.inner.known[slot]].tolist()
            count = int(work.counts[i])
            if count:
                logits = full_logits(self.decoder, text)[-count - 1 : -1]
                right = logits.argmax(dim=-1).tolist() == text[-count:]
                self.n_right += right
                self.n_wrong += not right
        return done


@pytest.mark.parametrize("name", ["sd", "minedraft", "pearl"])
@pytest.mark.parametrize("broken", [False, True])
def test_the_drafter_drafts_from_the_text_alone(
    name: str, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cache is rolled back: nothing rejected is left in it."""
    schedule = make_schedule(name, 3, 2)
    length = room(JOB, 3)
    decoder = DRAFTS["perturbed"]
    inner = drafter_of(decoder, schedule.capacity, length)
    if broken:

        def changed(slots: Any, keep: Any) -> None:
            # Whatever is cached in front of the last token is taken for the text.
            inner._cached[slots] = inner.known[slots] - 1

        monkeypatch.setattr(inner, "changed", changed)
    watched = Watched(inner, decoder)
    execute(schedule, JOB, target_of(TARGET, schedule.capacity, length), watched)
    assert watched.n_right + watched.n_wrong > 10
    assert (watched.n_wrong > 0) == broken


@pytest.mark.parametrize("name", ["sd", "pearl"])
def test_the_drafters_text_is_the_confirmed_one(name: str) -> None:
    """What the drafter believes in front of its drafts is the target's text."""
    schedule = make_schedule(name, 3, 2)
    length = room(JOB, 3)
    inner = drafter_of(DRAFTS["perturbed"], schedule.capacity, length)
    seen: list[tuple[int, list[int]]] = []

    class Told:
        def run(self, work: DraftWork) -> Done:
            done = inner.run(work)
            for request, slot, count in zip(work.requests, work.slots, work.counts, strict=True):
                seen.append((int(request), inner.texts[slot, : inner.known[slot] - count].tolist()))
            return done

    result = execute(schedule, JOB, target_of(TARGET, schedule.capacity, length), Told())
    whole = [[*p, *o] for p, o in zip(JOB.prompts, texts_of(result), strict=True)]
    for request, text in seen:
        tail = 0 if name == "sd" else 2  # PEARL drafts behind at most k - 1 tentative tokens
        known = max(min(len(text) - tail, len(whole[request])), 0)
        assert text[:known] == whole[request][:known]


# --- near-ties --------------------------------------------------------------------------------


class Says:
    """A decoder with the logits that a test wrote down."""

    def __init__(self, logits: list[float]) -> None:
        self.config = CONFIG
        self.norm = torch.zeros(1)
        self.logits = torch.tensor([logits])
        self.asked: list[list[int]] = []

    def __call__(self, tokens: Any, attend: Any, rows: Any) -> Any:
        assert rows.tolist() == [tokens.numel() - 1]
        self.asked.append(tokens.tolist())
        return self.logits


def compared(a: list[int], b: list[int], logits: list[float]) -> tuple[Any, Says]:
    decoder = Says(logits)
    job = make_job(3, [[7, 8]])
    texts = ([np.array(a)], [np.array(b)])
    return compare_texts(decoder, job, *texts, 1e-3), decoder


def test_equal_texts_ask_nobody() -> None:
    verdict, decoder = compared([1, 2, 3], [1, 2, 3], [0.0, 1.0])
    assert verdict.passed
    assert (verdict.n_tokens, verdict.mismatches, decoder.asked) == (3, (), [])


@pytest.mark.parametrize(
    "a, b, logits, excused",
    [
        ([1, 2, 3], [1, 0, 3], [2.0, 0.0, 2.0005], True),
        ([1, 2, 3], [1, 0, 3], [2.0, 0.0, 2.0015], False),  # too far apart
        ([1, 2, 3], [1, 1, 3], [2.0, 0.0, 2.0005], False),  # a third token was chosen
        ([1, 2, 3], [1, 0], [2.0, 0.0, 2.0005], True),  # shorter later on
        ([1, 2, 3], [1], [2.0, 0.0, 2.0005], False),  # cut off, not another choice
    ],
)
def test_only_a_near_tie_between_both_choices_is_excused(
    a: list[int], b: list[int], logits: list[float], excused: bool
) -> None:
    verdict, decoder = compared(a, b, logits)
    (mismatch,) = verdict.mismatches
    assert (mismatch.request, mismatch.position, mismatch.excused) == (0, 1, excused)
    assert mismatch.gap == pytest.approx(logits[2] - logits[0], abs=1e-6)
    assert verdict.passed is excused
    assert verdict.n_tokens == 1
    assert decoder.asked == [[7, 8, 1]]  # the common text, prompt and all


def test_one_wrong_text_of_many_fails() -> None:
    decoder = Says([2.0, 0.0, 2.0005])
    job = make_job(2, [[7], [8]])
    texts = [np.array([2, 1]), np.array([2, 2])], [np.array([0, 1]), np.array([1, 2])]
    verdict = compare_texts(decoder, job, *texts, 1e-3)
    assert [m.excused for m in verdict.mismatches] == [True, False]
    assert not verdict.passed


def test_first_difference() -> None:
    a = np.array([1, 2, 3])
    assert first_difference(a, a) is None
    assert first_difference(a, np.array([1, 2])) == 2
    assert first_difference(a, np.array([4, 2, 3])) == 0


def test_the_comparison_reads_the_targets_own_logits(tmp_path: Any, plain: Any) -> None:
    folder = saved(TARGET, tmp_path / "model")
    outputs = [np.array(text) for text in plain]
    assert compare(folder, "float32", JOB, outputs, outputs).passed
    assert compare("no such model", "float32", JOB, outputs, outputs).passed  # nothing is loaded
    wrong = [text.copy() for text in outputs]
    wrong[2][5] = (wrong[2][5] + 1) % 256
    verdict = compare(folder, "float32", JOB, outputs, wrong)
    (mismatch,) = verdict.mismatches
    assert (mismatch.request, mismatch.position, mismatch.excused) == (2, 5, False)
    text = [*JOB.prompts[2], *plain[2][:5]]
    best = torch.topk(full_logits(TARGET, text)[-1], 2).values
    assert mismatch.gap == pytest.approx(float(best[0] - best[1]), rel=1e-3)
