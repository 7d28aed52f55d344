"""Timeline spans: who was busy with what, from when to when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SpanKind = Literal["prefill", "draft", "verify", "sync", "overhead", "idle"]
"""What a span shows; time without a span is idle."""


@dataclass(frozen=True, slots=True)
class Span:
    """One bar of a timeline.

    Parameters
    ----------
    replica
        Which copy of the deployment.
    device
        ``"target"`` or ``"draft"``; one device for both is ``"target"``.
    group
        Group of the schedule (MineDraft's sub-batch), or -1 where no group is meant.
    kind
        What was done.
    start_s, end_s
        Seconds since the start of the run.
    n_seqs, n_tokens
        Requests in the pass, tokens drafted or fed.
    """

    replica: int
    device: str
    group: int
    kind: SpanKind
    start_s: float
    end_s: float
    n_seqs: int = 0
    n_tokens: int = 0
