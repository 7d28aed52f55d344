"""Step and request records as JSON lines: a superset of MineDraft's trace.

Simulated and measured runs are the same kind of file. One object a line:
``{"metadata": ...}`` first, then ``{"type": "Step", ...}``, ``{"type": "Request", ...}`` (with
``tested`` and ``accepted``, a list of rounds each, where they were kept) and, where a timeline was
kept, ``{"type": "Span", ...}``. MineDraft's field names are kept (times in microseconds, fields
without a value left out); our own columns stand beside them under their own names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from psdsim.records.columns import REQUEST_COLUMNS, STEP_COLUMNS, StepKind
from psdsim.records.recording import Columns, read_recording
from psdsim.records.rounds import Rounds
from psdsim.records.spans import Span


def to_lines(
    metadata: Mapping[str, Any],
    steps: Columns,
    requests: Columns,
    rounds: Rounds | None = None,
    spans: Iterable[Span] = (),
) -> Iterator[str]:
    """Yield the lines of a trace, without line ends.

    Parameters
    ----------
    metadata
        What was run.
    steps, requests
        `STEP_COLUMNS` and `REQUEST_COLUMNS`, shape (n,) each.
    rounds
        Drafts tested and accepted, in the order of `requests`.
    spans
        Timeline.
    """
    yield json.dumps({"metadata": dict(metadata)})
    for i in range(steps["kind"].size):
        row = {name: steps[name][i].item() for name in STEP_COLUMNS}
        yield json.dumps({"type": "Step", "tid": i, **_minedraft_step(row), **row})
    for i in range(requests["request_id"].size):
        row = {name: _or_null(requests[name][i].item()) for name in REQUEST_COLUMNS}
        theirs = {
            "start_us": row["arrival_s"] * 1e6,
            "end_us": None if row["finish_s"] is None else row["finish_s"] * 1e6,
            "prompt_len": row["prompt_tokens"],
            "gen_len": row["output_tokens"],
        }
        if rounds is not None:
            row["tested"] = rounds.tested[i].tolist()
            row["accepted"] = rounds.accepted[i].tolist()
        yield json.dumps({"type": "Request", "tid": row["request_id"], **theirs, **row})
    for span in spans:
        yield json.dumps({"type": "Span", **asdict(span)})


def _or_null(value: Any) -> Any:
    """Return None for the NaN of a time that never came: JSON has no NaN."""
    return None if value != value else value


def _minedraft_step(row: Mapping[str, Any]) -> dict[str, Any]:
    n = row["n_verify_seqs"]
    fields = {
        "start_us": row["start_s"] * 1e6,
        "end_us": row["end_s"] * 1e6,
        "is_prompt_run": row["kind"] == int(StepKind.PREFILL),
        "batched_requests": n,
        "is_parallelised": row["draft_group"] >= 0
        and row["verify_group"] >= 0
        and row["draft_group"] != row["verify_group"],
        "proposed_len": row["n_drafted_tokens"],
        "verify_len": row["n_verified_tokens"],
        "accepted_num": row["n_accepted_tokens"],
        "generated_num": row["n_emitted_tokens"],
        "measured_draft_time": row["draft_time_s"] * 1e6,
        "measured_target_time": row["verify_time_s"] * 1e6,
        "measured_overhead_time": (row["overhead_s"] + row["sync_s"]) * 1e6,
        "measured_avg_seq_len": row["n_kv_tokens"] / n if n else None,
        "preempted_requests": row["n_preempted"],
    }
    return {name: value for name, value in fields.items() if value is not None}


def read_lines(path: Path) -> tuple[dict[str, Any], Columns, Columns]:
    """Read metadata, step columns and request columns of a trace; `read_recording` reads all.

    Raises
    ------
    psdsim.errors.InputError
        If a line is not JSON or lacks a column; the line is named.
    """
    recording = read_recording(path)
    return recording.metadata, recording.steps, recording.requests
