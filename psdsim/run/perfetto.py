"""Timelines as Chrome trace events: open the file in Perfetto or chrome://tracing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from psdsim.records import Span

COLOURS = {
    "prefill": "grey",
    "draft": "thread_state_runnable",
    "verify": "thread_state_running",
    "sync": "terrible",
    "overhead": "bad",
    "idle": "white",
}
"""Reserved colour names of the trace viewer by span kind."""


def lane(span: Span) -> str:
    """Return the lane a span belongs to: a device, and a group where there are several."""
    return span.device if span.group < 0 else f"{span.device} group {span.group}"


def to_chrome_trace(
    spans: Iterable[Span], *, name: str, until_s: float | None = None
) -> dict[str, Any]:
    """Return a Chrome trace: one process a replica, one lane a device and one a device's group.

    Parameters
    ----------
    spans
        What devices did.
    name
        Title of the processes.
    until_s
        Leave out what starts later, s.

    Notes
    -----
    Times are microseconds. Idle time of a device is written as a span of its own in the
    device's lane, so that it can be counted.
    """
    shown = [s for s in spans if until_s is None or s.start_s < until_s]
    events: list[dict[str, Any]] = []
    for replica in sorted({s.replica for s in shown}):
        own = [s for s in shown if s.replica == replica]
        events.append(_meta("process_name", replica, 0, name=f"{name} replica {replica}"))
        names = [device for device in ("target", "draft") if any(s.device == device for s in own)]
        for device in list(names):
            names += sorted({lane(s) for s in own if s.device == device and s.group >= 0})
        lanes = {text: index + 1 for index, text in enumerate(names)}
        for text, tid in lanes.items():
            events.append(_meta("thread_name", replica, tid, name=text))
            events.append(_meta("thread_sort_index", replica, tid, sort_index=tid))
        for span in own:
            events.append(_complete(span, replica, lanes[span.device]))
            if span.group >= 0:
                events.append(_complete(span, replica, lanes[lane(span)]))
        for device in ("target", "draft"):
            events.extend(_complete(gap, replica, lanes[device]) for gap in idle_spans(own, device))
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def idle_spans(spans: Iterable[Span], device: str) -> list[Span]:
    """Return the gaps between a device's spans as spans of kind idle."""
    own = sorted((s for s in spans if s.device == device), key=lambda s: s.start_s)
    gaps: list[Span] = []
    for before, after in pairwise(own):
        if after.start_s > before.end_s:
            gaps.append(Span(before.replica, device, -1, "idle", before.end_s, after.start_s))
    return gaps


def _meta(what: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": args}


def _complete(span: Span, pid: int, tid: int) -> dict[str, Any]:
    return {
        "name": span.kind,
        "cat": span.device,
        "ph": "X",
        "ts": span.start_s * 1e6,
        "dur": (span.end_s - span.start_s) * 1e6,
        "pid": pid,
        "tid": tid,
        "cname": COLOURS[span.kind],
        "args": {"group": span.group, "n_seqs": span.n_seqs, "n_tokens": span.n_tokens},
    }
