"""What is raised when a worker can't go on."""

from __future__ import annotations


class WorkerError(RuntimeError):
    """A worker that died or could not do its work.

    Parameters
    ----------
    reason
        One sentence.
    details
        Its traceback, if it left one.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.details = details
