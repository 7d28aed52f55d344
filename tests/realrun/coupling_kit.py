"""The same schedule on the same tape, simulated and executed, and the comparison of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from realrun_kit import Blank, execute, make_job

from psdsim.acceptance import AcceptanceModel
from psdsim.engine import Costs, EngineSetup, RawRun, simulate_run
from psdsim.records import REQUEST_COLUMNS, STEP_COLUMNS
from psdsim.schedules import Schedule
from psdsim.verdict import PLAIN, Proposals
from psdsim.workload import Requests
from realrun.executor import ForcedRule, GreedyRule, RunResult

SEED = 11
OUTPUTS = [13, 1, 18, 6, 2, 11, 7]
PROMPTS = [[0] * n for n in (3, 9, 1, 4, 7, 2, 8)]
STEP = [
    c for c in STEP_COLUMNS if c.startswith("n_") or c in ("kind", "draft_group", "verify_group")
]
REQUEST = [c for c in REQUEST_COLUMNS if c.startswith("n_")] + ["prompt_tokens", "output_tokens"]
Make = Callable[[], Schedule]


@dataclass
class Constant:
    """A step time."""

    seconds: float
    jitter: str = "none"
    notes: set[str] = field(default_factory=set)

    @property
    def affine(self) -> tuple[float, float, float, float]:
        return self.seconds, 0.0, 0.0, 0.0

    def __call__(self, n_seqs: Any, n_tokens: Any, n_kv_tokens: Any) -> float:
        return self.seconds


def simulated(
    make: Make,
    model: AcceptanceModel,
    outputs: list[int],
    proposals: Proposals = PLAIN,
    prompts: list[list[int]] = PROMPTS,
) -> RawRun:
    """Run a schedule in the simulator."""
    schedule = make()
    drafts = schedule.drafts and schedule.k > 0
    lengths = np.array([len(p) for p in prompts])
    return simulate_run(
        EngineSetup(
            make_schedule=make,
            acceptance=model,
            costs=Costs(Constant(0.25), Constant(0.0625) if drafts else None),
            requests=Requests(np.zeros(len(prompts)), lengths, np.array(outputs)),
            placement="separate" if schedule.overlaps else "colocated",
            proposals=proposals,
            seed=SEED,
            record_rounds=True,
        )
    )


def executed(
    make: Make,
    model: AcceptanceModel,
    outputs: list[int],
    proposals: Proposals = PLAIN,
    prompts: list[list[int]] = PROMPTS,
) -> RunResult:
    """Run it in realrun with forced acceptance, on models that say nothing."""
    schedule = make()
    job = make_job(outputs, prompts)
    rule: Any = GreedyRule()
    if schedule.drafts and schedule.k:
        capacity, k = schedule.capacity, schedule.k
        rule = ForcedRule(model, job.output_tokens, capacity, k, SEED, proposals)
    return execute(schedule, job, Blank(), Blank(), rule)


def assert_same(raw: RawRun, result: RunResult) -> None:
    """All that is counted is the same, step by step, request by request, round by round."""
    for name in STEP:
        assert result.steps[name].tolist() == raw.steps[name].tolist(), name
    for name in REQUEST:
        assert result.requests[name].tolist() == raw.requests[name].tolist(), name
    if raw.rounds is None:
        assert not any(result.tested)
    else:
        assert result.tested == [row.tolist() for row in raw.rounds.tested]
        assert result.accepted == [row.tolist() for row in raw.rounds.accepted]
    discarded, dropped = sum(result.discarded), sum(result.dropped)
    steps = result.steps
    assert discarded == raw.tally.n_discarded
    assert dropped == raw.tally.n_dropped
    assert steps["n_drafted_tokens"].sum() == steps["n_verified_tokens"].sum() + discarded + dropped
