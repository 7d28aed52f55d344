"""The layouts of public traces, each told by its column names.

Every layout takes the columns and the options and returns the requests in the order of the file,
their times in seconds since the earliest one. Of rows that a layout drops only the rows before
the last request asked for are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psdsim.errors import InputError, did_you_mean
from psdsim.workload.kinds import TraceWorkload
from psdsim.workload.traces.columns import USED, TraceColumns
from psdsim.workload.traces.times import seconds_of_dates, seconds_of_numbers

PREFIX_NOTE = "hash_ids: prefix caching is not modelled, so prefill is over-estimated"


@dataclass(frozen=True)
class ReadTrace:
    """What a layout makes of its columns.

    Parameters
    ----------
    arrival_s
        float64, shape (n,): s since the earliest; ``None``: the file has no times.
    prompt_tokens, output_tokens
        int64, shape (n,), each >= 1.
    notes
        Sentences the result must carry.
    """

    arrival_s: NDArray[np.float64] | None
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.prompt_tokens)

    def rows(self, which: NDArray[np.intp]) -> ReadTrace:
        """Return these rows, in this order."""
        return replace(
            self,
            arrival_s=None if self.arrival_s is None else self.arrival_s[which],
            prompt_tokens=self.prompt_tokens[which],
            output_tokens=self.output_tokens[which],
        )


def azure(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """Azure LLM inference 2023 and 2024 (and the 2025 multimodal file, images left out)."""
    images = "NumImages" in trace.names
    return ReadTrace(
        seconds_of_dates(trace, "TIMESTAMP"),
        trace.tokens("ContextTokens"),
        trace.tokens("GeneratedTokens"),
        ("images of the multimodal trace are not modelled",) if images else (),
    )


def burstgpt(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """BurstGPT v1 to v3; a failed request has 0 response (or request) tokens."""
    least = 0 if options.drop_failures else 1
    read = ReadTrace(
        seconds_of_numbers(trace, "Timestamp", "s"),
        trace.tokens("Request tokens", least=least),
        trace.tokens("Response tokens", least=least),
    )
    served = (read.prompt_tokens > 0) & (read.output_tokens > 0)
    kept = np.flatnonzero(served)[: options.n_requests]
    if len(kept) == trace.n_rows:
        return read
    n_seen = int(kept[-1]) + 1 if len(kept) == options.n_requests else trace.n_rows
    read = read.rows(kept)
    if n_seen > len(kept):
        note = f"{n_seen - len(kept)} of {n_seen} rows left out: failed requests with 0 tokens"
        read = replace(read, notes=(note,))
    return read


def vidur(trace: TraceColumns, options: TraceWorkload) -> ReadTrace:
    """Vidur's processed traces; some have no arrival column."""
    timed = "arrived_at" in trace.names
    return ReadTrace(
        seconds_of_numbers(trace, "arrived_at", "s") if timed else None,
        trace.tokens("num_prefill_tokens"),
        trace.tokens("num_decode_tokens"),
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
        if f"timestamp_{unit}" in trace.names:
            if options.time_unit not in (None, unit):
                raise InputError(
                    f"time_unit is {options.time_unit} and the file has timestamp_{unit}",
                    where=str(trace.path),
                )
            return _lengths(trace, f"timestamp_{unit}", unit)
    if options.time_unit is None and "timestamp" in trace.names:
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
        trace.tokens("input_toks"),
        trace.tokens("output_toks"),
    )


def _lengths(trace: TraceColumns, time_name: str, unit: str) -> ReadTrace:
    return ReadTrace(
        seconds_of_numbers(trace, time_name, unit),
        trace.tokens("input_length"),
        trace.tokens("output_length"),
        (PREFIX_NOTE,) if "hash_ids" in trace.names else (),
    )


def detect(trace: TraceColumns) -> str:
    """Return the layout that the column names tell.

    Mooncake and Bailian share theirs; the size of a hash block tells them apart.

    Raises
    ------
    psdsim.errors.InputError
        If no layout has these columns.
    """
    names = set(trace.names)
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
    # The first column is the time, whose names differ by case only; the others tell more.
    guesses = (did_you_mean(name, USED) for name in reversed(trace.names))
    raise InputError(
        f"the columns {', '.join(trace.names)} are those of no known trace"
        + next((guess for guess in guesses if guess), ""),
        expected="Azure, Mooncake, Bailian, BurstGPT, Vidur, LLMServingSim or timed JSON lines",
        where=str(trace.path),
    )


def _by_block_size(trace: TraceColumns) -> str:
    if "chat_id" in trace.names:
        return "bailian"
    lengths = trace.tokens("input_length")
    blocks = trace.numbers("hash_ids")
    # Up to 16 tokens are one block in both; the first longer prompt decides.
    for size, name in ((512, "mooncake"), (16, "bailian")):
        fits = blocks == np.ceil(lengths / size)
        if fits[lengths > 16][:1].any():
            return name
    raise InputError(
        "the number of hash_ids doesn't tell blocks of 512 tokens (Mooncake) from 16 (Bailian)",
        expected="format: mooncake (times in ms) or bailian (times in s)",
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
