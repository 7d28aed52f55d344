"""Records of a run on real models: the simulator's own columns, filled with measured times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.records import REQUEST_COLUMNS, Span, SpanKind, StepKind, StepLog
from realrun.executor.devices import Pass

_PREFILL, _DRAFT, _DECODE = int(StepKind.PREFILL), int(StepKind.DRAFT), int(StepKind.DECODE)


class Book:
    """The open step, and everything that is closed.

    Times are seconds since the run began. ``draft_time_s`` and ``verify_time_s`` are what the
    workers measured around their models; ``overhead_s`` is the part of a step during which
    neither model ran: Python, queues, synchronisation.

    Parameters
    ----------
    zero
        `time.perf_counter` at the start of the run.
    """

    def __init__(self, zero: float) -> None:
        self.zero = zero
        self.log = StepLog()
        self.spans: list[Span] = []
        self.wait_any: list[list[str]] = []
        self._busy: list[tuple[float, float]] = []
        self._reset(0.0)

    def _reset(self, now: float) -> None:
        self.start_s = now
        self.used = False
        self.is_prefill = False
        self.draft_group = self.verify_group = -1
        self.n_draft_seqs = self.n_drafted = 0
        self.n_verify_seqs = self.n_verified = self.n_accepted = 0
        self.n_emitted = self.n_prefill_tokens = self.n_kv = self.n_finished = 0
        self.draft_time_s = self.verify_time_s = 0.0
        self._busy.clear()

    def turn(self, now: float, n_running: int, n_waiting: int) -> None:
        """Close the open step, if it did anything, and open the next one."""
        if not self.used:
            self.start_s = now
            return
        kind = _PREFILL if self.is_prefill else _DRAFT if self.verify_group < 0 else _DECODE
        overhead = max(now - self.start_s - self._union(), 0.0)
        self.log.append(
            (
                0, kind, self.start_s, now, self.draft_group, self.verify_group,
                self.n_draft_seqs, self.n_drafted, self.n_verify_seqs, self.n_verified,
                self.n_accepted, self.n_emitted, self.n_prefill_tokens, self.n_kv,
                self.draft_time_s, self.verify_time_s, overhead, 0.0,
                self.n_finished, 0, n_running, n_waiting,
            )
        )  # fmt: skip
        self._reset(now)

    def _union(self) -> float:
        """Return how long at least one model ran in this step, s."""
        total, reached = 0.0, self.start_s
        for start, end in sorted(self._busy):
            total += max(end - max(start, reached), 0.0)
            reached = max(reached, end)
        return total

    def ran(self, work: Pass, kind: SpanKind, group: int, n_tokens: int) -> None:
        """Put a finished pass into the step and on the timeline."""
        assert work.result is not None
        assert work.device is not None
        start, end = work.result.start - self.zero, work.result.end - self.zero
        self.used = True
        self._busy.append((start, end))
        if work.device.name == "draft":
            self.draft_time_s += end - start
        else:
            self.verify_time_s += end - start
        self.spans.append(
            Span(0, work.device.name, group, kind, start, end, int(work.ids.size), n_tokens)
        )


def request_columns(n: int) -> dict[str, NDArray[Any]]:
    """Return empty `REQUEST_COLUMNS` of n requests: counts 0, times NaN."""
    columns = {name: np.zeros(n, dtype=dtype) for name, dtype in REQUEST_COLUMNS.items()}
    for name in ("admitted_s", "first_token_s", "finish_s"):
        columns[name][:] = np.nan
    columns["request_id"] = np.arange(n, dtype=np.int64)
    return columns
