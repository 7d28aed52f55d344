"""Bookkeeping of the current step: its record, its share of the totals, its spans."""

from __future__ import annotations

from psdsim.engine.devices import Pass
from psdsim.engine.setup import Tally
from psdsim.records import Span, SpanKind, StepKind, StepLog


class StepBook:
    """Fields of the step that is open, closed into a record when the next one opens.

    Parameters
    ----------
    replica
        Index for the records.
    log
        Where records go; None keeps totals only.
    spans
        Where timeline spans go; None keeps none.
    n_groups
        Groups of the schedule.
    """

    def __init__(
        self, replica: int, log: StepLog | None, spans: list[Span] | None, n_groups: int = 1
    ) -> None:
        self._replica = replica
        self._n_groups = n_groups
        self._log = log
        self.spans = spans
        self.tally = Tally()
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

    def _close(self, now: float, n_running: int, n_waiting: int) -> None:
        tally = self.tally
        tally.n_steps += 1
        tally.n_emitted += self.n_emitted
        tally.n_drafted += self.n_drafted
        tally.n_verified += self.n_verified
        tally.n_accepted += self.n_accepted
        tally.overhead_s += self.overhead_s
        tally.sync_s += self.sync_s
        tally.draft_time_s += self.draft_time_s
        if self.is_prefill:
            kind = StepKind.PREFILL
            tally.prefill_time_s += now - self.start_s
        elif self.verify_group < 0:
            kind = StepKind.DRAFT
            tally.decode_time_s += now - self.start_s
        else:
            kind = StepKind.DECODE
            tally.verify_time_s += self.verify_time_s
            tally.decode_time_s += now - self.start_s
            tally.n_decode_steps += 1
            tally.n_decode_seq_steps += self.n_verify_seqs
            if self._n_groups > 1:
                self._note_groups()
        if self._log is not None:
            self._log.append(
                (
                    self._replica, int(kind), self.start_s, now, self.draft_group,
                    self.verify_group, self.n_draft_seqs, self.n_drafted, self.n_verify_seqs,
                    self.n_verified, self.n_accepted, self.n_emitted, self.n_prefill_tokens,
                    self.n_kv, self.draft_time_s, self.verify_time_s, self.overhead_s,
                    self.sync_s, self.n_finished, self.n_preempted, n_running, n_waiting,
                )
            )  # fmt: skip

    def _note_groups(self) -> None:
        """Count steps that only one group took part in, and how unequal the others were."""
        if self.draft_group in (-1, self.verify_group):
            self.tally.n_single_group_steps += 1
            return
        self.tally.imbalance_sum += abs(self.n_draft_seqs - self.n_verify_seqs)
        self.tally.paired_seqs += self.n_draft_seqs + self.n_verify_seqs

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
