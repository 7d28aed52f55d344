"""Totals of a run, added up from step columns chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.records import StepKind


@dataclass
class Tally:
    """Token and time totals of a run over all replicas.

    Drafted = accepted + rejected (verified - accepted) + dropped + discarded.
    """

    n_steps: int = 0
    n_drafted: int = 0
    n_verified: int = 0
    n_accepted: int = 0
    n_discarded: int = 0
    n_dropped: int = 0
    n_emitted: int = 0
    n_preemptions: int = 0
    n_decode_steps: int = 0
    n_decode_seq_steps: int = 0
    n_round_tokens: int = 0
    n_single_group_steps: int = 0
    imbalance_sum: int = 0
    paired_seqs: int = 0
    decode_time_s: float = 0.0
    prefill_time_s: float = 0.0
    verify_time_s: float = 0.0
    draft_time_s: float = 0.0
    overhead_s: float = 0.0
    sync_s: float = 0.0
    target_busy_s: float = 0.0
    draft_busy_s: float = 0.0

    def add_steps(self, c: dict[str, NDArray[Any]]) -> None:
        """Add a chunk of step columns."""
        duration = c["end_s"] - c["start_s"]
        prefill = c["kind"] == int(StepKind.PREFILL)
        decode = c["kind"] == int(StepKind.DECODE)
        self.n_steps += duration.size
        self.n_drafted += int(c["n_drafted_tokens"].sum())
        self.n_verified += int(c["n_verified_tokens"].sum())
        self.n_accepted += int(c["n_accepted_tokens"].sum())
        self.n_emitted += int(c["n_emitted_tokens"].sum())
        self.n_preemptions += int(c["n_preempted"].sum())
        self.n_decode_steps += int(np.count_nonzero(decode))
        self.n_decode_seq_steps += int(c["n_verify_seqs"].sum())
        self.prefill_time_s += float(duration[prefill].sum())
        self.decode_time_s += float(duration[~prefill].sum())
        self.verify_time_s += float(c["verify_time_s"].sum())
        self.draft_time_s += float(c["draft_time_s"].sum())
        self.overhead_s += float(c["overhead_s"].sum())
        self.sync_s += float(c["sync_s"].sum())
        alone = (c["draft_group"] < 0) | (c["draft_group"] == c["verify_group"])
        self.n_single_group_steps += int(np.count_nonzero(decode & alone))
        both = decode & ~alone
        drafted, verified = c["n_draft_seqs"][both], c["n_verify_seqs"][both]
        self.imbalance_sum += int(np.abs(drafted - verified).sum())
        self.paired_seqs += int((drafted + verified).sum())
