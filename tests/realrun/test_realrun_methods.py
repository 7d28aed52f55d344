"""Methods under `realrun run --schedule`: they run as they are, or say what is lacking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from realrun_kit import SMALL

from psdsim import Scenario
from psdsim.acceptance import IidAcceptance
from psdsim.calibrate.runs import read_run
from psdsim.engine import simulate_run
from psdsim.errors import InputError
from psdsim.methods import METHODS, method
from psdsim.records.recording import read_recording
from psdsim.run.prepare import prepare
from psdsim.schedules import SCHEDULES
from psdsim.verdict import PLAIN
from psdsim.workload import Requests
from realrun.cli.main import main
from realrun.methods import check_knobs, make_schedule, proposals, runnable
from realrun.workers.pin import available_cores

RUN = {*SCHEDULES, "tetris", "minedraft+tetris", "smartspec", "pearl-adaptive"}
# These pass as methods, and are refused by the executor.
BY_COMMAND = {"specdec++": "Draft.stop", "pacer": "Draft.stop", "dsi": "copies of the target"}
pytestmark = [
    pytest.mark.skipif(len(available_cores()) < 2, reason="one core for each model"),
    pytest.mark.usefixtures("in_thread"),
]


@pytest.mark.parametrize("name", ["tetris:extra=2", "minedraft+tetris", "smartspec:interval=2",
                                  "pearl-adaptive"])  # fmt: skip
def test_a_method_keeps_the_text(
    name: str, trained: list[str], tmp_path: Path, capsys: Any
) -> None:
    output = tmp_path / "run.jsonl"
    arguments = ["run", *SMALL, *trained, "--schedule", name, "--k", "3", "--check"]
    assert main([*arguments, "--output", str(output)]) == 0
    out = capsys.readouterr().out
    assert "4 of 4 texts equal plain decoding's token for token" in out
    assert f"{name} k=3 batch=2: 4 of 4 requests" in out
    data = read_recording(output).metadata
    assert (data["schedule"], data["k"], data["partial"]) == (name, 3, False)
    with pytest.raises(InputError, match="drafts are chosen by confidences or times"):
        read_run(output)


def test_knobs_reach_the_schedule(trained: list[str], tmp_path: Path) -> None:
    drafted = []
    for extra in (0, 4):
        output = tmp_path / f"{extra}.jsonl"
        arguments = ["run", *SMALL, *trained, "--schedule", f"tetris:extra={extra}", "--k", "2"]
        assert main([*arguments, "--output", str(output)]) == 0
        steps = read_recording(output).steps
        drafts = steps["n_draft_seqs"] > 0
        each = steps["n_drafted_tokens"] / np.maximum(steps["n_draft_seqs"], 1)
        drafted.append(int(each.max()))
        assert (steps["n_verified_tokens"][drafts] <= 2 * steps["n_verify_seqs"][drafts]).all()
    assert drafted == [2, 6]


@pytest.mark.parametrize("name", ["tetris:extra=3:auc=0.7", "tetris:extra=3:auc=0.95",
                                  "minedraft+tetris:temperature=0.4", "sd"])  # fmt: skip
def test_forced_acceptance_takes_the_simulators_steps(
    name: str, models: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "run.jsonl"
    forced = ["--schedule", name, "--accept", "0.7", "--k", "3", "--seed", "5", "--requests", "9"]
    small = ["--batch", "3", "--prompt-tokens", "5", "--output-tokens", "17"]
    assert main(["run", *models, *forced, *small, "--output", str(output)]) == 0
    found = read_recording(output)
    scenario = Scenario.builtin(
        {"acceptance": {"kind": "iid", "alpha": 0.7}, "engine.max_num_seqs": 3}
    )
    work = Requests(np.zeros(9), np.full(9, 5), np.full(9, 17))
    raw = simulate_run(prepare(scenario, name, 3, seed=5, requests=work))
    for column in ("n_verify_seqs", "n_drafted_tokens", "n_verified_tokens", "n_accepted_tokens"):
        assert found.steps[column].tolist() == raw.steps[column].tolist(), column


def test_confidences_are_as_good_as_the_knob_says() -> None:
    forced = IidAcceptance(alpha=0.7)
    for spec in ("tetris:auc=0.6", "tetris:auc=0.9:temperature=0.5"):
        known = proposals(spec, 3, forced)
        scenario = Scenario.builtin({"acceptance": forced.model_dump()})
        assert known == method(spec).proposals(scenario, 3)
        assert known != PLAIN
    assert proposals("sd", 3, forced) == PLAIN


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_or_says_what_is_lacking(
    name: str, trained: list[str], capsys: Any
) -> None:
    if name in RUN:
        assert make_schedule(name, 3 if name != "ar" else 0, 2).name == method(name).schedule.name
        return
    code = main(["run", *SMALL, *trained, "--schedule", name, "--k", "3"])
    error = capsys.readouterr().err
    assert code == 2, error
    assert f"'{name}'" in error
    assert "realrun lacks" in error or "realrun takes" in error
    if name in BY_COMMAND:
        assert BY_COMMAND[name] in error


def test_what_refusals_name() -> None:
    for spec, words in {
        "sd+distillspec": "changes the models",
        "diversed": "lossy verifier",
        "reflective": "lossy verifier",
        "eagle": "drafter .* that realrun lacks",
        "pearl-rc": "drafter .*last GPU",
        "tetris:nothing=1": "no knob",
        "minedarft": "no schedule or method 'minedarft'; did you mean",
    }.items():
        with pytest.raises(InputError, match=words) as caught:
            runnable(spec)
        assert "--schedule" in str(caught.value)
        assert "--methods" not in str(caught.value)


def test_a_real_drafter_has_no_simulated_confidences() -> None:
    for spec in ("tetris:extra=2", "smartspec:prior=0.5", "dsi:targets=1", "pacer:send=0"):
        check_knobs(spec)
    with pytest.raises(InputError, match="auc says what a simulated drafter is like"):
        check_knobs("tetris:extra=2:auc=0.7")
