"""What goes into one simulated run and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from psdsim.acceptance import AcceptanceModel
from psdsim.engine.tally import Tally
from psdsim.latency import StepTimer
from psdsim.records import Rounds, Span
from psdsim.schedules.base import Schedule
from psdsim.stats import GapLog
from psdsim.verdict import PLAIN, Proposals
from psdsim.workload import Requests

Placement = Literal["colocated", "separate", "shared"]
"""One device for both models; a device each; two lanes that slow each other while both work."""

JitterLaw = Literal["lognormal", "exponential"]


@dataclass(frozen=True)
class Costs:
    """Where time goes.

    Parameters
    ----------
    target, draft
        Seconds of one forward pass of each model.
    step_overhead_s
        CPU time of the engine before the first pass of every step.
    step_overhead_per_seq_s
        Added to it for each request in the step (`psdsim.engine.overhead`).
    sync_s
        Cost of the barrier that hands drafts from one device to the other.
    comm_per_token_s
        Added to it for each drafted token handed over.
    draft_start_s
        Added to every drafting phase: starting it, and bringing its drafts back.
    target_resume_s
        Added to a target pass that waited for drafts of its own step on another device.
    target_jitter_cv, draft_jitter_cv
        Coefficient of variation of the duration of a target pass, of a drafting phase.
    target_jitter_law, draft_jitter_law
        Its distribution; exponential fixes the CV at 1.
    prefill, draft_prefill
        Step times of prompt passes, where they differ from `target` and `draft`.
    """

    target: StepTimer
    draft: StepTimer | None
    step_overhead_s: float = 0.0
    step_overhead_per_seq_s: float = 0.0
    sync_s: float = 0.0
    comm_per_token_s: float = 0.0
    target_jitter_cv: float = 0.0
    draft_jitter_cv: float = 0.0
    draft_start_s: float = 0.0
    target_resume_s: float = 0.0
    target_jitter_law: JitterLaw = "lognormal"
    draft_jitter_law: JitterLaw = "lognormal"
    prefill: StepTimer | None = None
    draft_prefill: StepTimer | None = None


@dataclass(frozen=True)
class EngineSetup:
    """One run of one schedule: everything resolved, nothing to read or to guess.

    Parameters
    ----------
    make_schedule
        Builds the schedule; called once per replica.
    acceptance
        Decides verdicts.
    costs
        Step times.
    requests
        The work.
    placement
        Which devices there are.
    proposals
        What the drafter has beyond a first choice: siblings, confidences, candidates.
    n_targets
        Copies of the target in one replica that a schedule gives passes to.
    slow_down
        With ``shared``: factors, >= 1, by which target passes and draft passes slow down while
        the other lane works.
    max_num_batched_tokens
        Most tokens in one target pass.
    kv_blocks
        Blocks of each replica; None is unlimited.
    block_size
        Tokens per block.
    n_replicas
        Copies of the deployment.
    routing
        How requests are spread over them.
    seed, replication
        Keys of all randomness.
    record_steps, record_spans, record_rounds
        Keep step records; keep timeline spans; keep what each round tested and accepted.
    steps_parquet
        Stream step records to this file instead of keeping them.
    progress
        Called with the number of finished requests, now and then.
    """

    make_schedule: Callable[[], Schedule]
    acceptance: AcceptanceModel
    costs: Costs
    requests: Requests
    placement: Placement = "separate"
    proposals: Proposals = PLAIN
    n_targets: int = 1
    slow_down: tuple[float, float] = (1.0, 1.0)
    max_num_batched_tokens: int = 8192
    kv_blocks: int | None = None
    block_size: int = 16
    n_replicas: int = 1
    routing: Literal["round_robin", "least_loaded"] = "round_robin"
    seed: int = 0
    replication: int = 0
    record_steps: bool = True
    record_spans: bool = False
    record_rounds: bool = False
    steps_parquet: Path | None = None
    progress: Callable[[int], None] | None = None


@dataclass
class RawRun:
    """What a run left behind.

    Parameters
    ----------
    requests
        `REQUEST_COLUMNS`, shape (n_requests,) each.
    steps
        `STEP_COLUMNS`, shape (n_steps,) each; empty if streamed to a file or not recorded.
    gaps
        Inter-token latencies: one per chunk a request received after its first token.
    tally
        Totals over all replicas.
    makespan_s
        Time at which the last request finished.
    spans
        Timeline, if asked for.
    rounds
        Drafts tested and accepted in every round, if asked for and if anything was drafted.
    notes
        What was flagged on the way (extrapolated step times, ...).
    """

    requests: dict[str, NDArray[Any]]
    steps: dict[str, NDArray[Any]]
    gaps: GapLog
    tally: Tally
    makespan_s: float
    spans: list[Span] = field(default_factory=list)
    rounds: Rounds | None = None
    notes: list[str] = field(default_factory=list)
