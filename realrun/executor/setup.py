"""What goes into a run on real models, and what comes out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.records import Span
from psdsim.schedules import Schedule

Tokens = NDArray[np.int64]
MAX_NUM_BATCHED_TOKENS = 8192
"""Most tokens in one target pass, as a scenario's `engine.max_num_batched_tokens` has it."""


@dataclass(frozen=True)
class Job:
    """The work: prompts, how much is asked for, and when.

    Parameters
    ----------
    prompts
        Token ids of each request.
    output_tokens
        Tokens to generate, shape (n,), each >= 1.
    arrival_s
        Seconds after the start, shape (n,), non-decreasing.
    eos_id
        Token after which a request stops early; None: it never does.
    """

    prompts: tuple[Tokens, ...]
    output_tokens: Tokens
    arrival_s: NDArray[np.float64]
    eos_id: int | None = None

    @property
    def digest(self) -> str:
        """A name for these prompts: runs that share it had the same ones in the same order."""
        sha = hashlib.sha256()
        for prompt in self.prompts:
            sha.update(np.int64(prompt.size).tobytes() + prompt.astype(np.int64).tobytes())
        return sha.hexdigest()[:16]

    @property
    def max_length(self) -> int:
        """Longest text, prompt and output."""
        lengths = np.array([prompt.size for prompt in self.prompts])
        return int((lengths + self.output_tokens).max())


@dataclass
class RunResult:
    """What a run left behind.

    Parameters
    ----------
    schedule
        What was run.
    steps, requests
        `STEP_COLUMNS` and `REQUEST_COLUMNS`.
    outputs
        Generated tokens of each request, clipped at the stop; short where it never finished.
    tested, accepted
        Drafts tested and accepted in every round of each request.
    discarded
        Drafted tokens of each request that came to nothing: not kept, or of a cancelled phase.
    dropped
        Drafted tokens of each request that a selector left out (`Score.of`).
    spans
        Timeline.
    wait_any
        For every ``WaitAny``, the passes found finished, as ``device:order``.
    total_s
        Seconds from the start to the last token.
    bonus
        Whether target passes had a bonus row (chain rounds); False for PEARL's.
    failure
        Why the run is partial; None: it is complete.
    prompts
        `Job.digest` of the work.
    """

    schedule: Schedule
    steps: dict[str, NDArray[Any]]
    requests: dict[str, NDArray[Any]]
    outputs: list[Tokens]
    tested: list[list[int]]
    accepted: list[list[int]]
    discarded: list[int]
    dropped: list[int]
    spans: list[Span]
    wait_any: list[list[str]] = field(default_factory=list)
    total_s: float = 0.0
    bonus: bool = True
    failure: str | None = None
    prompts: str = ""
