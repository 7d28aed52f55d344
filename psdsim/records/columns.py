"""The columns of the two tables every run writes: one row a step, one row a request."""

from __future__ import annotations

from enum import IntEnum


class StepKind(IntEnum):
    """What an engine step did."""

    PREFILL = 0
    """Prompts were computed; decoding stood still."""
    DRAFT = 1
    """Drafting only: nothing was ready to verify."""
    DECODE = 2
    """A target pass verified drafts or decoded plainly."""


STEP_COLUMNS: dict[str, str] = {
    "replica": "int16",
    "kind": "int8",
    "start_s": "float64",
    "end_s": "float64",
    "draft_group": "int8",
    "verify_group": "int8",
    "n_draft_seqs": "int32",
    "n_drafted_tokens": "int64",
    "n_verify_seqs": "int32",
    "n_verified_tokens": "int64",
    "n_accepted_tokens": "int64",
    "n_emitted_tokens": "int64",
    "n_prefill_tokens": "int64",
    "n_kv_tokens": "int64",
    "draft_time_s": "float64",
    "verify_time_s": "float64",
    "overhead_s": "float64",
    "sync_s": "float64",
    "n_finished": "int32",
    "n_preempted": "int32",
    "n_running": "int32",
    "n_waiting": "int64",
}
"""Step columns with their dtypes; a group of -1 means that nothing was drafted or verified."""

REQUEST_COLUMNS: dict[str, str] = {
    "request_id": "int64",
    "replica": "int16",
    "arrival_s": "float64",
    "admitted_s": "float64",
    "first_token_s": "float64",
    "finish_s": "float64",
    "prompt_tokens": "int64",
    "output_tokens": "int64",
    "n_rounds": "int64",
    "n_drafted_tokens": "int64",
    "n_accepted_tokens": "int64",
    "n_preemptions": "int32",
}
"""Request columns with their dtypes; times of a request that never finished are NaN."""
