"""What a worker does all day, whether it is a thread or a process."""

from __future__ import annotations

import time
import traceback
from typing import Protocol

import numpy as np

from psdsim.errors import InputError
from realrun.workers.messages import BusyWork, Done, DraftWork, Failed, Reply, TargetWork, Work


class Runner(Protocol):
    """Runs pieces of work on one model: `TargetRunner`, `DraftRunner`."""

    def run(self, work: TargetWork | DraftWork) -> Done:
        """Run one piece; the reply's times enclose the model's work, device synchronised."""


def answer(runner: Runner, work: Work) -> Reply:
    """Run a piece of work; whatever goes wrong becomes a `Failed`."""
    try:
        if isinstance(work, BusyWork):
            return _keep_busy(runner, work)
        return runner.run(work)
    except Exception as error:
        return failed(error)


def failed(error: Exception) -> Failed:
    """Return what a worker says of an exception that it has just caught."""
    return Failed(_one_sentence(error), traceback.format_exc())


def _keep_busy(runner: Runner, work: BusyWork) -> Done:
    start = time.perf_counter()
    while time.perf_counter() < work.until:
        runner.run(work.work)
    return Done(start, time.perf_counter(), np.empty(0, dtype=np.int64))


def _one_sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, InputError):
        return text
    if isinstance(error, MemoryError) or "out of memory" in text or "can't allocate" in text:
        return "out of memory; expected a smaller batch, shorter texts or a smaller model"
    return f"{type(error).__name__}: {text[:200]}"
