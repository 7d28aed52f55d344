"""The table of requests: one NumPy column a fact, shared by all replicas of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.records import REQUEST_COLUMNS
from psdsim.workload import Requests

WAITING, PREFILLING, RUNNING, FINISHED = 0, 1, 2, 3


class RequestState:
    """Everything the engine knows about each request.

    Columns of decoding requests are brought up to date when their batch changes
    (`psdsim.engine.batch`), not at every step.
    """

    def __init__(self, requests: Requests) -> None:
        n = len(requests)
        self.arrival_s = requests.arrival_s.copy()
        self.prompt_tokens = requests.prompt_tokens
        self.output_tokens = requests.output_tokens
        self.phase = np.zeros(n, dtype=np.int8)
        self.emitted = np.zeros(n, dtype=np.int64)
        self.computed = np.zeros(n, dtype=np.int64)
        self.base = np.full(n, -1, dtype=np.int64)
        self.last_emit_s = np.zeros(n)
        self.admitted_s = np.full(n, np.nan)
        self.first_token_s = np.full(n, np.nan)
        self.finish_s = np.full(n, np.nan)
        self.n_rounds = np.zeros(n, dtype=np.int64)
        self.n_drafted = np.zeros(n, dtype=np.int64)
        self.n_accepted = np.zeros(n, dtype=np.int64)
        self.n_preemptions = np.zeros(n, dtype=np.int32)
        self.replica = np.zeros(n, dtype=np.int16)

    def __len__(self) -> int:
        return int(self.arrival_s.size)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return `REQUEST_COLUMNS`."""
        values: dict[str, NDArray[Any]] = {
            "request_id": np.arange(len(self)),
            "replica": self.replica,
            "arrival_s": self.arrival_s,
            "admitted_s": self.admitted_s,
            "first_token_s": self.first_token_s,
            "finish_s": self.finish_s,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "n_rounds": self.n_rounds,
            "n_drafted_tokens": self.n_drafted,
            "n_accepted_tokens": self.n_accepted,
            "n_preemptions": self.n_preemptions,
        }
        return {name: values[name].astype(dtype) for name, dtype in REQUEST_COLUMNS.items()}
