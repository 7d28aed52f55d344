"""Bookkeeping of the current step: its record, its share of the totals, its spans."""

from __future__ import annotations

from psdsim.engine.devices import Pass
from psdsim.engine.tally import Tally
from psdsim.records import Span, SpanKind, StepKind, StepLog

_PREFILL, _DRAFT, _DECODE = int(StepKind.PREFILL), int(StepKind.DRAFT), int(StepKind.DECODE)


class StepBook:
    """Fields of the step that is open, closed into a record when the next one opens.

    Parameters
    ----------
    replica
        Index for the records.
    log
        Where records go.
    spans
        Where timeline spans go; None keeps none.
    tally
        Totals that no step column holds are added here directly.
    """

    __slots__ = (
        "_log", "_replica", "draft_group", "draft_time_s", "is_prefill",
        "n_accepted", "n_draft_seqs", "n_drafted", "n_emitted", "n_finished", "n_kv",
        "n_preempted", "n_prefill_tokens", "n_verified", "n_verify_seqs", "overhead_s",
        "spans", "start_s", "sync_s", "tally", "used", "verify_group", "verify_time_s",
    )  # fmt: skip

    def __init__(self, replica: int, log: StepLog, spans: list[Span] | None, tally: Tally) -> None:
        self._replica = replica
        self._log = log
        self.spans = spans
        self.tally = tally
        self.start_s = 0.0
        self._reset(0.0)

    def _reset(self, now: float) -> None:
        self.start_s = now
        self.used = False
        self.draft_group = -1
        self.verify_group = -1
        self.n_draft_seqs = 0
        self.n_drafted = 0
        self.n_verify_seqs = 0
        self.n_verified = 0
        self.n_accepted = 0
        self.n_emitted = 0
        self.n_prefill_tokens = 0
        self.n_kv = 0
        self.draft_time_s = 0.0
        self.verify_time_s = 0.0
        self.overhead_s = 0.0
        self.sync_s = 0.0
        self.n_finished = 0
        self.n_preempted = 0
        self.is_prefill = False

    def turn(self, now: float, n_running: int, n_waiting: int) -> None:
        """Close the open step, if it did anything, and open the next one."""
        if self.used:
            self._close(now, n_running, n_waiting)
            self._reset(now)
        else:
            self.start_s = now

    def _close(self, now: float, n_running: int, n_waiting: int) -> None:
        kind = _PREFILL if self.is_prefill else _DRAFT if self.verify_group < 0 else _DECODE
        self._log.append(
            (
                self._replica, kind, self.start_s, now, self.draft_group,
                self.verify_group, self.n_draft_seqs, self.n_drafted, self.n_verify_seqs,
                self.n_verified, self.n_accepted, self.n_emitted, self.n_prefill_tokens,
                self.n_kv, self.draft_time_s, self.verify_time_s, self.overhead_s,
                self.sync_s, self.n_finished, self.n_preempted, n_running, n_waiting,
            )
        )  # fmt: skip

    def span(
        self,
        device: str,
        group: int,
        kind: SpanKind,
        start_s: float,
        end_s: float,
        n_seqs: int = 0,
        n_tokens: int = 0,
    ) -> None:
        """Add a bar to the timeline."""
        if self.spans is not None and end_s > start_s:
            self.spans.append(
                Span(self._replica, device, group, kind, start_s, end_s, n_seqs, n_tokens)
            )

    def pass_span(self, work: Pass, kind: SpanKind, group: int, n_tokens: int) -> None:
        """Add the bar of a finished pass."""
        if self.spans is not None and work.device is not None:
            n_seqs = int(work.ids.size)
            self.span(work.device.name, group, kind, work.start, work.end, n_seqs, n_tokens)

    def span_when_done(self, work: Pass, kind: SpanKind, group: int, n_tokens: int) -> None:
        """Add the bar of a pass once it ends."""
        assert work.event is not None
        assert work.event.callbacks is not None
        work.event.callbacks.append(lambda _: self.pass_span(work, kind, group, n_tokens))
