"""What can't be run is refused before any work, in one sentence that says where and what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from realrun_kit import random_spec, run_main, tiny

from psdsim.errors import InputError
from realrun.build import RunnerSpec
from realrun.pair import open_pair
from realrun.workers import DeviceName
from realrun.workers.pin import available_cores

pytestmark = pytest.mark.skipif(len(available_cores()) < 2, reason="one core for each model")
CORES = available_cores()


def cases(folder: Path) -> dict[str, tuple[list[str], str]]:
    """Return arguments and what the message must hold; the folder is the models' own."""
    (folder / "empty.txt").write_text(" \n\n")
    (folder / "bad.jsonl").write_text('{"prompt": "a"}\n{"prompt": \n')
    (folder / "keyless.jsonl").write_text('\n{"text": "a"}\n')
    (folder / "deep.jsonl").write_text("[" * 100_000)
    (folder / "latin.txt").write_bytes(b"caf\xe9\n")
    (folder / "plain.txt").write_text("a\n")
    other = random_spec(folder, "other", tiny(16, 1, vocab_size=300))
    short = random_spec(folder, "short", tiny(16, 1, max_position_embeddings=8))
    small = random_spec(folder, "small", tiny(16, 1, vocab_size=100))
    long = random_spec(folder, "long", tiny(16, 1, max_position_embeddings=20_000))
    long_pair = ["--target", long, "--draft", "ngram"]
    here = str(folder)
    return {
        "model": (["--target", "no/such/model"], "no/such/model"),
        "draft": (["--draft", "random:no/config.json"], "no/config.json: can't be read"),
        "built-in": (["--draft", "builtin:drafty"], "drafty"),
        "layers": (["--draft", "early-exit:9"], "9 layers are asked for"),
        "no layers": (["--draft", "early-exit:x"], "--draft: drafter is 'early-exit:x'"),
        "vocabulary": (["--draft", other], "different vocabularies (256 and 300 tokens)"),
        "tokens": (["--target", small, "--draft", "ngram"], "'vocab_size' is 100"),
        "no prompts": (["--prompts", f"{here}/none.txt"], "none.txt: can't be read"),
        "empty": (["--prompts", f"{here}/empty.txt"], "empty.txt: holds no prompt"),
        "json": (["--prompts", f"{here}/bad.jsonl"], "bad.jsonl: line 2: is not JSON"),
        "key": (["--prompts", f"{here}/keyless.jsonl"], "line 2: has no text under 'prompt'"),
        "deep": (["--prompts", f"{here}/deep.jsonl"], "deep.jsonl: line 1: is not JSON"),
        "latin": (["--prompts", f"{here}/latin.txt"], "latin.txt: can't be read"),
        "folder": (["--prompts", here], "can't be read"),
        "output": (["--output", f"{here}/plain.txt/run.jsonl"], "--output: "),
        "output folder": (["--output", here], "is a folder"),
        "one core": (["--target-device", "cpu:1", "--draft-device", "cpu:1"], "both on cpu:1"),
        "core": (["--target-device", "cpu:999"], "--target-device: this process may not run on"),
        "device": (["--draft-device", "tpu"], "--draft-device: device is 'tpu'"),
        "gpu": (["--draft-device", "cuda:77"], "there is no GPU 77"),
        "k": (["--k", "65"], "sd was asked for k=65"),
        "negative k": (["--k", "-1"], "sd was asked for k=-1"),
        "no k": (["--schedule", "pearl", "--k", "0"], "pearl was asked for k=0"),
        "half k": (["--k", "2.5"], "--k: found '2.5'"),
        "schedule": (["--schedule", "minedraf"], "did you mean 'minedraft'"),
        "batch": (["--batch", "0"], "--batch: found 0"),
        "requests": (["--requests", "0"], "--requests: found 0"),
        "output tokens": (["--output-tokens", "0"], "--output-tokens: found 0"),
        "prompt tokens": (["--prompt-tokens", "0"], "--prompt-tokens: found 0"),
        "too long": (["--output-tokens", "600"], "at most 512, the positions of"),
        "draft too long": (["--draft", short], "at most 8, the positions of"),
        "prompt budget": (
            [*long_pair, "--prompt-tokens", "8193"],
            "request 0 has 8193 prompt tokens and one pass takes 8192; expected shorter prompts",
        ),
        "verify budget": (
            ["--batch", "1024", "--k", "8"],
            "verifying 1024 requests with k=8 feeds 9216 tokens and one pass takes 8192",
        ),
        "rate": (["--request-rate", "0"], "--request-rate: found 0"),
        "temperature": (["--temperature", "-1"], "--temperature: found -1"),
        "nan": (["--temperature", "nan"], "--temperature: found nan"),
        "sampled check": (["--temperature", "1", "--check"], "--temperature: "),
        "forced check": (["--accept", "0.5", "--check"], "--check: "),
        "sampled force": (["--accept", "0.5", "--temperature", "1"], "--temperature: "),
        "accept": (["--accept", "1.5"], "--accept: found 1.5"),
        "accept file": (["--accept", "no.yaml"], "--accept: found 'no.yaml'"),
        "eos": (["--stop-at-eos"], "has no end-of-text token"),
        "dtype": (["--dtype", "int8"], "--dtype: 'int8' is no precision"),
        "seed": (["--seed", "-1"], "--seed"),
        "forced eos": (["--accept", "0.5", "--stop-at-eos"], "--stop-at-eos: "),
        "draft without drafting": (["--schedule", "ar"], "so --draft has no effect"),
        "k without drafting": (["--schedule", "ar", "--k", "2"], "so --k has no effect"),
    }


NAMES = (
    "model", "draft", "built-in", "layers", "no layers", "vocabulary", "tokens", "no prompts",
    "empty", "json", "key", "deep", "latin", "folder", "output", "output folder",
    "one core", "core", "device", "gpu", "k", "negative k", "no k", "half k", "schedule", "batch",
    "requests", "output tokens", "prompt tokens", "too long", "draft too long",
    "prompt budget", "verify budget", "rate",
    "temperature", "nan", "sampled check", "forced check", "sampled force", "accept",
    "accept file", "eos", "dtype", "seed", "forced eos", "draft without drafting",
    "k without drafting",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("in_thread")
def test_refusals(name: str, models: list[str], folder: Path, tmp_path: Path, capsys: Any) -> None:
    known = cases(folder)
    assert tuple(known) == NAMES
    arguments, message = known[name]
    before = sorted(tmp_path.rglob("*"))
    output = [] if "--output" in arguments else ["--output", str(tmp_path / "run.jsonl")]
    assert run_main(models, "--schedule", "sd", *output, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("realrun: ")
    assert error.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_one_core_for_both_is_refused_whoever_asks(models: list[str]) -> None:
    spec = RunnerSpec(models[1], DeviceName("cpu", CORES[0]), 1, 16)
    with pytest.raises(InputError, match="both on cpu"), open_pair(spec, spec):
        pass
