"""The workload of a run: fixed lengths where all are equal, else a trace of its requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psdsim.calibrate.runs import MeasuredRun

TRACE_HEADER = "arrived_at,num_prefill_tokens,num_decode_tokens"


def workload(runs: Sequence[MeasuredRun], trace_name: str) -> tuple[dict[str, Any], str, str]:
    """Return the workload section, the text of its trace (empty: none needed), and a comment.

    The run with the most finished requests is taken; what a partial run didn't finish is left
    out.
    """
    run = max(runs, key=lambda run: int(run.finished.sum()))
    requests = {name: column[run.finished] for name, column in run.recording.requests.items()}
    arrival = requests["arrival_s"]
    prompt, output = requests["prompt_tokens"], requests["output_tokens"]
    comment = f"the {arrival.size} finished requests of {run.file}"
    fixed = len(set(prompt.tolist())) == len(set(output.tolist())) == 1
    if fixed and not arrival.any():
        section: dict[str, Any] = {
            "kind": "batch",
            "n_requests": int(arrival.size),
            "prompt_tokens": int(prompt[0]),
            "output_tokens": int(output[0]),
        }
        return section, "", comment
    rows = zip(arrival.tolist(), prompt.tolist(), output.tolist(), strict=True)
    lines = [TRACE_HEADER, *(f"{a!r},{p},{o}" for a, p, o in sorted(rows, key=lambda r: r[0]))]
    return {"kind": "trace", "path": trace_name}, "\n".join(lines) + "\n", comment
