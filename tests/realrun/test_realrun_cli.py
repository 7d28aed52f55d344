"""`realrun run` and `realrun profile` from end to end, on tiny models with random weights."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from realrun_kit import NAMES, SMALL

from psdsim.records import StepKind
from psdsim.records.recording import Recording, read_recording
from realrun.cli.main import main
from realrun.workers.pin import available_cores

pytestmark = [
    pytest.mark.skipif(len(available_cores()) < 2, reason="one core for each model"),
    pytest.mark.usefixtures("in_thread"),
]


def run(output: Path, *arguments: str) -> Recording:
    assert main(["run", *SMALL, *arguments, "--output", str(output)]) == 0
    return read_recording(output)


@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_runs_and_is_read_back(
    name: str, models: list[str], tmp_path: Path, capsys: Any
) -> None:
    k = "0" if name == "ar" else "3"
    drafting = [] if name == "ar" else [*models[2:], "--k", k]
    arguments = [*models[:2], *drafting, "--schedule", name, "--seed", "7"]
    found = run(tmp_path / "run.jsonl", *arguments)
    data = found.metadata
    assert (data["tool"], data["schedule"], data["k"]) == ("realrun", name, int(k))
    assert data["max_num_seqs"] == 2
    assert data["capacity"] == 4 if name == "minedraft" else 2
    assert data["acceptance"] == "measured"
    assert (data["seed"], data["partial"], data["n_requests"]) == (7, False, 4)
    assert data["bonus"] is not name.startswith("pearl")
    assert data["target"]["config"]["hidden_size"] == 32
    assert not found.partial
    assert found.requests["output_tokens"].tolist() == [7] * 4
    assert found.requests["prompt_tokens"].tolist() == [5] * 4
    assert found.steps["n_emitted_tokens"].sum() == 28
    assert not np.isnan(found.requests["finish_s"]).any()
    assert found.rounds is not None
    drafted = int(found.steps["n_drafted_tokens"].sum())
    assert (drafted == 0) == (name == "ar")
    assert {span.device for span in found.spans} == {"target"} | ({"draft"} if drafted else set())
    out = capsys.readouterr().out
    assert f"{name} k={k} batch=2: 4 of 4 requests" in out
    assert ("acceptance length" in out) == (name != "ar")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ar"])
def test_check_compares_with_plain_decoding(name: str, trained: list[str], capsys: Any) -> None:
    arguments = ["run", *SMALL, *trained, "--schedule", name, "--k", "3", "--check"]
    assert main(arguments) == 0
    assert "4 of 4 texts equal plain decoding's token for token" in capsys.readouterr().out


def test_check_fails_where_a_text_differs(
    trained: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from realrun.executor import GreedyRule

    honest = GreedyRule.judge

    def generous(self: Any, tested: Any, score: Any) -> Any:
        # Every draft stands.
        outcomes = honest(self, tested, score)
        return [(len(o.drafts.tokens), t) for o, (_, t) in zip(tested, outcomes, strict=True)]

    monkeypatch.setattr(GreedyRule, "judge", generous)
    assert main(["run", *SMALL, *trained, "--schedule", "sd", "--k", "3", "--check"]) == 1
    out = capsys.readouterr().out
    assert ", 0 wrong" not in out
    assert "the best logits" in out


@pytest.mark.parametrize("draft", ["ngram", "early-exit:2"])
def test_other_drafters(draft: str, trained: list[str], capsys: Any) -> None:
    assert main(["run", *SMALL, *trained, "--draft", draft, "--check"]) == 0
    assert "4 of 4 texts equal" in capsys.readouterr().out


def test_forced_acceptance_is_recorded(models: list[str], tmp_path: Path, capsys: Any) -> None:
    rate = run(tmp_path / "a.jsonl", *models, "--accept", "0.7")
    assert rate.metadata["acceptance"] == {"kind": "iid", "alpha": 0.7}
    assert "(forced)" in capsys.readouterr().out
    assert rate.requests["n_accepted_tokens"].sum() > 0


def test_acceptance_of_a_scenario_file(models: list[str], tmp_path: Path) -> None:
    from psdsim.scenario import Scenario

    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(json.dumps(Scenario.builtin({"acceptance.alpha": 0.7}).to_dict()))
    file = run(tmp_path / "b.jsonl", *models, "--accept", str(scenario))
    rate = run(tmp_path / "a.jsonl", *models, "--accept", "0.7")
    assert file.metadata["acceptance"] == rate.metadata["acceptance"]
    assert file.rounds is not None
    assert rate.rounds is not None
    assert [a.tolist() for a in file.rounds.accepted] == [a.tolist() for a in rate.rounds.accepted]


@pytest.mark.parametrize("name", ["sd", "pearl"])
def test_sampled_text_depends_on_the_seed_alone(
    name: str, trained: list[str], tmp_path: Path
) -> None:
    how = [*trained, "--schedule", name, "--temperature", "0.8"]
    counts = []
    for seed, batch in (("1", "2"), ("1", "3"), ("2", "2")):
        found = run(tmp_path / "run.jsonl", *how, "--seed", seed, "--batch", batch)
        assert found.metadata["temperature"] == 0.8
        assert found.rounds is not None
        counts.append([row.tolist() for row in found.rounds.accepted])
    assert counts[0] == counts[1] != counts[2]


def test_sampling_reaches_the_end_of_long_drafts(trained: list[str], tmp_path: Path) -> None:
    for name in ("sd", "pearl"):
        how = ["--schedule", name, "--temperature", "0.1", "--k", "12"]
        found = run(tmp_path / "run.jsonl", *trained, *how)
        assert found.steps["n_emitted_tokens"].sum() == 28


def test_requests_arrive_at_a_rate(models: list[str], tmp_path: Path) -> None:
    found = run(tmp_path / "run.jsonl", *models, "--request-rate", "200")
    arrival = found.requests["arrival_s"]
    assert (np.diff(arrival) > 0).all()
    assert (found.requests["admitted_s"] >= arrival).all()


def test_all_prompts_of_a_file_are_run(trained: list[str], tmp_path: Path) -> None:
    lines = [json.dumps({"prompt": "ab" * n}) for n in (1, 2, 40)]
    prompts = tmp_path / "p.jsonl"
    prompts.write_text("\n".join(lines) + "\n\n")
    output = tmp_path / "run.jsonl"
    shape = ["--prompt-tokens", "9", "--output-tokens", "3", "--batch", "1"]
    assert main(["run", *trained, *shape, "--prompts", str(prompts), "--output", str(output)]) == 0
    # A document start each, and of the longest the last 9 tokens.
    assert read_recording(output).requests["prompt_tokens"].tolist() == [3, 5, 9]


def test_steps_have_kinds(models: list[str], tmp_path: Path) -> None:
    found = run(tmp_path / "run.jsonl", *models, "--schedule", "minedraft", "--k", "2")
    kinds = found.steps["kind"].tolist()
    assert kinds[:2] == [int(StepKind.PREFILL), int(StepKind.DRAFT)]
    assert kinds[2] == int(StepKind.DECODE)


# --- profile ----------------------------------------------------------------------------------

GRID = (
    "--batches", "1,2", "--query-lengths", "1,3", "--contexts", "4,8", "--prompts", "3,6",
    "--rounds", "2", "--repeats", "2",
)  # fmt: skip


@pytest.mark.parametrize("draft", ["model", "ngram", "early-exit:2"])
def test_a_profile_has_every_shape(
    draft: str, models: list[str], tmp_path: Path, capsys: Any
) -> None:
    output = tmp_path / "profile.json"
    drafter = models[2:] if draft == "model" else ["--draft", draft]
    assert main(["profile", *models[:2], *drafter, *GRID, "--output", str(output)]) == 0
    profile = json.loads(output.read_text())
    assert profile["tool"] == "realrun profile"
    assert profile["models"]["draft"]["kind"] == draft.partition(":")[0]
    rows = profile["rows"]
    keys = ("model", "phase", "n_seqs", "query_length", "context", "busy")
    shapes = [tuple(row[key] for key in keys) for row in rows]
    assert len(set(shapes)) == len(shapes)
    alone = {s for s in shapes if not s[-1]}
    expected = {
        ("target", "decode", n, q, c, False) for n in (1, 2) for q in (1, 3) for c in (4, 8)
    }
    expected |= {("draft", "decode", n, 1, c, False) for n in (1, 2) for c in (4, 8)}
    expected |= {
        (model, "prefill", n, prompt, 0, False)
        for model, n, prompt in product(("target", "draft"), (1, 2), (3, 6))
    }
    assert alone == expected
    busy = {s[:5] for s in shapes if s[-1]}
    assert busy == {(m, "decode", n, 1, 8) for m in ("target", "draft") for n in (1, 2)}
    for row in rows:
        assert row["n"] == 4
        assert 0 < row["p25_s"] <= row["median_s"] <= row["p75_s"]
        assert ("gb_per_s" in row) == (row["model"] == "target" or draft != "ngram")
    assert f"written: {output}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--batches", "2,1"), "--batches: found [2, 1]"),
        (("--contexts", "a"), "--contexts: found 'a'"),
        (("--contexts", "600"), "positions"),
        (("--repeats", "0"), "--repeats: found 0"),
    ],
)
def test_bad_profile_options(
    arguments: tuple[str, ...], message: str, models: list[str], tmp_path: Path, capsys: Any
) -> None:
    output = tmp_path / "profile.json"
    assert main(["profile", *models, *GRID, *arguments, "--output", str(output)]) == 2
    assert message in capsys.readouterr().err
    assert not output.exists()
