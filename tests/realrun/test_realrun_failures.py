"""What goes wrong is told in one sentence; what was measured so far is kept, nothing else is."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from realrun_kit import (
    LoggedTarget,
    Trap,
    execute,
    make_job,
    run_main,
    threads,
)

from psdsim.errors import InputError
from psdsim.records.recording import read_recording
from psdsim.schedules import SCHEDULES
from realrun.workers import DeviceName, ProcessWorker, TargetWork, ThreadWorker, WorkerError
from realrun.workers.pin import available_cores

pytestmark = pytest.mark.skipif(len(available_cores()) < 2, reason="one core for each model")
CORES = available_cores()


@pytest.fixture(autouse=True)
def _ctrl_c_interrupts() -> Iterator[None]:
    """A shell starts what runs in its background with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """After every failure: no child process, the same cores, no half-written file."""
    cores = available_cores()
    yield
    assert multiprocessing.active_children() == []
    assert available_cores() == cores == CORES
    assert not [p for p in tmp_path.rglob("*") if p.name.startswith(".")]


def check_partial(output: Path, failure: str) -> None:
    found = read_recording(output)
    assert found.partial
    assert failure in found.metadata["failure"]
    assert np.isnan(found.requests["finish_s"]).any()
    assert found.steps["kind"].size >= 2
    assert 0 < found.steps["n_emitted_tokens"].sum() < 28
    assert len(found.requests["request_id"]) == 4


# --- processes that die, and interruptions ------------------------------------------------------


def test_a_killed_draft_process(
    models: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: list[int] = []

    def kill() -> None:
        (child,) = multiprocessing.active_children()
        pids.append(child.pid or 0)
        os.kill(pids[0], signal.SIGKILL)

    trap = Trap(monkeypatch, (1, 3), kill)
    output = tmp_path / "run.jsonl"
    assert run_main(models, "--schedule", "sd", "--output", str(output)) == 2
    assert trap.sprung
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "the draft worker was killed by SIGKILL (out of memory?)" in error
    assert f"the records in {output} are partial" in error
    check_partial(output, "SIGKILL")
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_ctrl_c_in_the_middle(
    models: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = Trap(monkeypatch, (1, 3), lambda: os.kill(os.getpid(), signal.SIGINT))
    output = tmp_path / "run.jsonl"
    assert run_main(models, "--schedule", "pearl", "--output", str(output)) == 130
    assert trap.sprung
    error = capsys.readouterr().err.splitlines()
    assert error == [f"realrun: the records in {output} are partial", "realrun: interrupted"]
    check_partial(output, "interrupted")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.usefixtures("in_thread")
def test_ctrl_c_before_the_run_itself(
    which: int, models: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the warm-up, or in the plain run of --check: nothing of the run is there to be kept."""
    trap = Trap(monkeypatch, (which, 3), lambda: os.kill(os.getpid(), signal.SIGINT))
    output = tmp_path / "run.jsonl"
    assert run_main(models, "--check", "--output", str(output)) == 130
    assert trap.sprung
    assert trap.run == which  # no further run was begun on workers in the middle of another
    assert capsys.readouterr().err == "realrun: interrupted\n"
    assert not output.exists()


@pytest.mark.parametrize(
    "error, message",
    [
        (MemoryError(), "out of memory; expected a smaller batch"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "out of memory; expected"),
        (RuntimeError("[enforce] DefaultCPUAllocator: can't allocate memory"), "out of memory; ex"),
        (KeyError("some\nthing"), r"KeyError: 'some\nthing'"),
    ],
)
@pytest.mark.usefixtures("in_thread")
def test_a_worker_that_raises(
    error: Exception,
    message: str,
    models: list[str],
    tmp_path: Path,
    capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise error

    for which, kept in ((1, True), (0, False)):
        output = tmp_path / f"run{which}.jsonl"
        with monkeypatch.context() as patch:
            trap = Trap(patch, (which, 3), fail)
            assert run_main(models, "--output", str(output)) == 2
        assert trap.sprung
        told = capsys.readouterr().err
        assert f"the target worker failed: {message}" in told
        assert told.count("\n") == 1
        assert output.exists() == kept
        if kept:
            check_partial(output, message)


class Refuses:
    def run(self, work: Any) -> Any:
        raise MemoryError


def test_a_failure_names_its_worker_and_keeps_its_traceback() -> None:
    job = make_job(4, [[1, 2]])
    result = execute(SCHEDULES["sd"](2, 1), job, LoggedTarget(lambda text: 1), Refuses())
    assert result.failure is not None
    assert result.failure.startswith("the draft worker failed: out of memory")
    with threads(Refuses(), None) as pair:
        pair.target.send(TargetWork(*(np.zeros(1, dtype=np.int64),) * 4, last_only=True))
        reply: Any = pair.target.receive()
    assert "Traceback" in reply.details


def broken() -> Any:
    raise MemoryError


def test_a_worker_that_cannot_start_says_why() -> None:
    for make, message in ((broken, "out of memory"), (_refused, "no such model; expected")):
        worker = ThreadWorker(make, None, "target")
        with pytest.raises(WorkerError, match=message):
            worker.ready()
        worker.close()
        worker.close()  # twice does no harm


def _refused() -> Any:
    raise InputError("no such model", expected="another")


def test_a_process_that_cannot_start_and_one_whose_pipe_breaks(models: list[str]) -> None:
    device = DeviceName("cpu", CORES[1])
    worker = ProcessWorker(broken, device, "draft")
    work = TargetWork(*(np.zeros(1, dtype=np.int64),) * 4, last_only=True)
    try:
        with pytest.raises(WorkerError, match="out of memory"):
            worker.ready()
        worker.process.join()
        for ask in (worker.receive, lambda: worker.send(work)):
            with pytest.raises(WorkerError, match="the draft worker ended with exit code 0"):
                ask()
    finally:
        worker.close()


def test_a_reply_cut_off_in_the_middle_is_a_death(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = ProcessWorker.__new__(ProcessWorker)
    ours, theirs = multiprocessing.Pipe()
    worker.name, worker._connection = "draft", ours
    monkeypatch.setattr(ProcessWorker, "_obituary", lambda self: "gone")
    os.write(theirs.fileno(), b"\0\0\0\x20half")
    theirs.close()
    with pytest.raises(WorkerError, match="gone"):
        worker.receive()
    ours.close()


def test_metadata_of_a_partial_run_can_be_read(
    models: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, in_thread: Any
) -> None:
    """Even one that was cut short before its first token."""

    def fail() -> None:
        raise MemoryError

    Trap(monkeypatch, (1, 1), fail)
    output = tmp_path / "run.jsonl"
    assert run_main(models, "--output", str(output)) == 2
    found = read_recording(output)
    assert found.partial
    assert found.steps["kind"].size == 0
    assert np.isnan(found.requests["first_token_s"]).all()
    first = json.loads(output.read_text().splitlines()[0])
    assert first["metadata"]["partial"] is True
