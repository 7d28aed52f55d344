"""A target and a drafter on their devices, for as long as a ``with`` block lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from psdsim.errors import InputError
from realrun.build import RunnerSpec
from realrun.workers import DeviceName, ProcessWorker, ThreadWorker, Worker, WorkerError
from realrun.workers.pin import one_torch_thread, pinned


@dataclass
class Pair:
    """Workers that are ready.

    Parameters
    ----------
    target
        The target's: a thread of this process.
    draft
        The drafter's: a process, or a thread where both share one GPU; None: no drafter.
    """

    target: Worker
    draft: Worker | None


@contextmanager
def open_pair(target: RunnerSpec, draft: RunnerSpec | None) -> Iterator[Pair]:
    """Start the workers, wait until both have loaded their models, and stop them at the end.

    The coordinator is whoever calls this: its thread is pinned to the target's core meanwhile,
    and torch is limited to one thread in this process.

    Raises
    ------
    psdsim.errors.InputError
        If a model can't be loaded, or the devices don't fit together.
    """
    if draft is not None:
        _check_devices(target.device, draft.device)
    workers: list[Worker] = []
    quiet = one_torch_thread() if target.device.kind == "cpu" else nullcontext()
    with quiet, pinned(target.device):
        try:
            drafter: Worker | None = None
            if draft is not None:
                drafter = _draft_worker(target, draft)
                workers.append(drafter)
            own = ThreadWorker(target.runner, target.device, "target")
            workers.append(own)
            for worker in (own, drafter):
                if worker is not None:
                    _ready(worker)
            yield Pair(own, drafter)
        finally:
            for worker in workers:
                worker.close()


def _draft_worker(target: RunnerSpec, draft: RunnerSpec) -> Worker:
    if draft.device.kind == "cuda" and draft.device == target.device:
        return ThreadWorker(draft.drafter, draft.device, "draft")
    return ProcessWorker(draft.drafter, draft.device, "draft")


def _ready(worker: Worker) -> None:
    try:
        worker.ready()
    except WorkerError as error:
        raise InputError(f"the {worker.name} worker can't start: {error}") from error


def _check_devices(target: DeviceName, draft: DeviceName) -> None:
    if draft.kind == "cpu" and draft == target:
        raise InputError(
            f"target and drafter are both on {draft}, where neither would be measured alone",
            expected="two cores, or one GPU for both",
            where="--draft-device",
        )
