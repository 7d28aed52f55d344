"""Two workers, target and draft: a thread or a process each, with a device of its own."""

from realrun.workers.errors import WorkerError
from realrun.workers.messages import BusyWork, Done, DraftWork, Failed, Reply, TargetWork, Work
from realrun.workers.pin import DeviceName
from realrun.workers.process import ProcessWorker
from realrun.workers.thread import ThreadWorker

Worker = ThreadWorker | ProcessWorker

__all__ = [
    "BusyWork",
    "DeviceName",
    "Done",
    "DraftWork",
    "Failed",
    "ProcessWorker",
    "Reply",
    "TargetWork",
    "ThreadWorker",
    "Work",
    "Worker",
    "WorkerError",
]
