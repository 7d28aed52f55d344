"""Fixtures of several files: models to run, a draft worker that starts at once, no garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="module")
def _nothing_old_to_collect() -> Iterator[None]:
    """A run begins with a garbage collection, which need not look at what torch has made."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def models(folder: Path) -> list[str]:
    """Options that name a tiny target and a tinier draft model, with random weights."""
    pytest.importorskip("torch")
    from realrun_kit import random_spec, tiny

    draft = random_spec(folder, "draft", tiny(16, 1))
    return ["--target", random_spec(folder, "target", tiny()), "--draft", draft]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A pair that agrees about most tokens, and has no ties."""
    pytest.importorskip("torch")
    from realrun_kit import perturbed, saved, tiny, tiny_decoder

    folder, target = tmp_path_factory.mktemp("pair"), tiny_decoder(tiny())
    specs = saved(target, folder / "target"), saved(perturbed(target, 0.15), folder / "draft")
    prompts = folder / "prompts.txt"
    prompts.write_text("def f(x):\nimport os\\nimport sys\nx\nwhile True: pass\n")
    return ["--target", specs[0], "--draft", specs[1], "--prompts", str(prompts)]


@pytest.fixture
def in_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the seconds that a process takes to start; test_realrun_failures starts real ones."""
    from realrun.workers import ThreadWorker

    monkeypatch.setattr(
        "realrun.pair._draft_worker",
        lambda target, draft: ThreadWorker(draft.drafter, draft.device, "draft"),
    )
