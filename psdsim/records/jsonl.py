"""Step and request records as JSON lines: a superset of MineDraft's trace.

Simulated and measured runs are the same kind of file. One object a line:
``{"metadata": ...}`` first, then ``{"type": "Step", ...}`` and
``{"type": "Request", ...}``. MineDraft's field names are kept (times in microseconds, fields
without a value left out); our own columns stand beside them under their own names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.errors import InputError
from psdsim.records.columns import REQUEST_COLUMNS, STEP_COLUMNS, StepKind

Columns = dict[str, NDArray[Any]]


def to_lines(metadata: Mapping[str, Any], steps: Columns, requests: Columns) -> Iterator[str]:
    """Yield the lines of a trace, without line ends.

    Parameters
    ----------
    metadata
        What was run.
    steps, requests
        `STEP_COLUMNS` and `REQUEST_COLUMNS`, shape (n,) each.
    """
    yield json.dumps({"metadata": dict(metadata)})
    for i in range(steps["kind"].size):
        row = {name: steps[name][i].item() for name in STEP_COLUMNS}
        yield json.dumps({"type": "Step", "tid": i, **_minedraft_step(row), **row})
    for i in range(requests["request_id"].size):
        row = {name: requests[name][i].item() for name in REQUEST_COLUMNS}
        theirs = {
            "start_us": row["arrival_s"] * 1e6,
            "end_us": row["finish_s"] * 1e6,
            "prompt_len": row["prompt_tokens"],
            "gen_len": row["output_tokens"],
        }
        yield json.dumps({"type": "Request", "tid": row["request_id"], **theirs, **row})


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
    """Read a trace that `to_lines` wrote: metadata, step columns, request columns.

    Raises
    ------
    psdsim.errors.InputError
        If a line is not JSON or lacks a column; the line is named.
    """
    metadata: dict[str, Any] = {}
    rows: dict[str, list[dict[str, Any]]] = {"Step": [], "Request": []}
    wanted = {"Step": STEP_COLUMNS, "Request": REQUEST_COLUMNS}
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{path}: line {number}"
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise InputError(f"is not JSON: {error.msg}", where=where) from None
            if "metadata" in record:
                metadata = record["metadata"]
                continue
            kind = record.get("type")
            if kind not in rows:
                raise InputError(f"type is {kind!r}", expected="'Step' or 'Request'", where=where)
            missing = [name for name in wanted[kind] if name not in record]
            if missing:
                raise InputError(f"the key '{missing[0]}' is missing", where=where)
            rows[kind].append(record)
    return (
        metadata,
        _columns(rows["Step"], STEP_COLUMNS),
        _columns(rows["Request"], REQUEST_COLUMNS),
    )


def _columns(rows: list[dict[str, Any]], columns: Mapping[str, str]) -> Columns:
    return {
        name: np.array([row[name] for row in rows], dtype=dtype) for name, dtype in columns.items()
    }
