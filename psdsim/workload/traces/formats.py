"""The layouts of public traces, each told by its column names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psdsim.errors import InputError
from psdsim.workload.kinds import TraceWorkload
from psdsim.workload.traces.columns import TraceColumns
from psdsim.workload.traces.times import seconds_of_dates, seconds_of_numbers

PREFIX_NOTE = "hash_ids: prefix caching is not modelled yet, so prefill is over-estimated"


@dataclass(frozen=True)
class ReadTrace:
    """What a layout makes of its columns: arrival (None: no times), prompts, outputs, notes."""

    arrival_s: NDArray[np.float64] | None
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    notes: tuple[str, ...] = ()


def azure(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """Azure LLM inference 2023 and 2024 (and the 2025 multimodal file, images left out)."""
    notes = (
        ("images of the multimodal trace are not modelled",) if "NumImages" in trace.values else ()
    )
    if "TIMESTAMP" not in trace.values:
        trace.numbers("TIMESTAMP")
    return ReadTrace(
        seconds_of_dates(trace, "TIMESTAMP"),
        trace.tokens("ContextTokens", least=1),
        trace.tokens("GeneratedTokens", least=1),
        notes,
    )


def burstgpt(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """BurstGPT v1 to v3; failed requests have no response tokens."""
    notes: list[str] = []
    if options.drop_failures:
        response = trace.tokens("Response tokens", least=0)
        failed = (response == 0) | (trace.tokens("Request tokens", least=0) == 0)
        if failed.all():
            raise InputError("all requests have failed (0 tokens)", where=str(trace.path))
        if failed.any():
            notes.append(f"{int(failed.sum())} of {len(trace)} rows with 0 tokens left out")
            trace = trace.drop(failed)
    return ReadTrace(
        seconds_of_numbers(trace, "Timestamp", "s"),
        trace.tokens("Request tokens", least=1),
        trace.tokens("Response tokens", least=1),
        tuple(notes),
    )


def vidur(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """Vidur's processed traces; some have no arrival column."""
    timed = "arrived_at" in trace.values
    return ReadTrace(
        seconds_of_numbers(trace, "arrived_at", "s") if timed else None,
        trace.tokens("num_prefill_tokens", least=1),
        trace.tokens("num_decode_tokens", least=1),
        () if timed else ("the trace has no arrival times: all requests at t = 0",),
    )


def mooncake(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """Mooncake: milliseconds, 512-token hash blocks."""
    return _lengths(trace, "timestamp", "ms")


def bailian(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """Qwen-Bailian: seconds, 16-token hash blocks."""
    return _lengths(trace, "timestamp", "s")


def timed_jsonl(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """Read timed JSON lines: the unit is in the name (timestamp_s, ...) or stated."""
    for unit in ("s", "ms", "us", "ns"):
        if f"timestamp_{unit}" in trace.values:
            if options.time_unit not in (None, unit):
                raise InputError(
                    f"time_unit is {options.time_unit} and the file has timestamp_{unit}",
                    where=str(trace.path),
                )
            return _lengths(trace, f"timestamp_{unit}", unit)
    if options.time_unit is None and "timestamp" in trace.values:
        raise InputError(
            "the unit of 'timestamp' is not known",
            expected="time_unit: s, ms, us or ns in the workload, or a key timestamp_s",
            where=str(trace.path),
        )
    return _lengths(trace, "timestamp", options.time_unit or "s")


def llmservingsim(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """LLMServingSim: nanoseconds."""
    return ReadTrace(
        seconds_of_numbers(trace, "arrival_time_ns", "ns"),
        trace.tokens("input_toks", least=1),
        trace.tokens("output_toks", least=1),
    )


def _lengths(trace: TraceColumns, time_name: str, unit: str) -> ReadTrace:
    return ReadTrace(
        seconds_of_numbers(trace, time_name, unit),
        trace.tokens("input_length", least=1),
        trace.tokens("output_length", least=1),
        (PREFIX_NOTE,) if "hash_ids" in trace.values else (),
    )


def detect(trace: TraceColumns) -> str:
    """Return the layout that the column names tell.

    Mooncake and Bailian share theirs; the size of a hash block tells them apart.

    Raises
    ------
    psdsim.errors.InputError
        If no layout has these columns.
    """
    names = set(trace.values)
    if {"TIMESTAMP", "ContextTokens"} & names:
        return "azure"
    if {"Request tokens", "Response tokens"} & names:
        return "burstgpt"
    if {"num_prefill_tokens", "num_decode_tokens"} & names:
        return "vidur"
    if "arrival_time_ns" in names:
        return "llmservingsim"
    if "hash_ids" in names and "timestamp" in names and "input_length" in names:
        return _by_block_size(trace)
    if any(name.startswith("timestamp") for name in names):
        return "timed_jsonl"
    raise InputError(
        f"the columns {', '.join(sorted(names))} are those of no known trace",
        expected="Azure, Mooncake, Bailian, BurstGPT, Vidur, LLMServingSim or timed JSON lines",
        where=str(trace.path),
    )


def _by_block_size(trace: TraceColumns) -> str:
    if "chat_id" in trace.values:
        return "bailian"
    lengths = trace.tokens("input_length", least=1)
    for row, hashes in enumerate(trace.values["hash_ids"]):
        if not isinstance(hashes, list):
            continue
        for size, name in ((512, "mooncake"), (16, "bailian")):
            # Short prompts have one block in both; the first longer one decides.
            if lengths[row] > 16 and len(hashes) == -(-int(lengths[row]) // size):
                return name
    raise InputError(
        "the size of a hash block is neither 512 (Mooncake) nor 16 (Bailian)",
        expected="format: mooncake (ms) or bailian (s)",
        where=str(trace.path),
    )


LAYOUTS = {
    "azure": azure,
    "burstgpt": burstgpt,
    "vidur": vidur,
    "mooncake": mooncake,
    "bailian": bailian,
    "timed_jsonl": timed_jsonl,
    "llmservingsim": llmservingsim,
}
"""Layout name to reader."""
