"""Forced acceptance and the simulator read one tape: they take the same steps, column by column."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from realrun_kit import (
    NAMES,
    Blank,
    LoggedDrafter,
    LoggedTarget,
    execute,
    make_job,
    make_schedule,
)

from psdsim.acceptance import (
    AcceptanceModel,
    BetaAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    MarkovRoundsAcceptance,
    PositionAcceptance,
    Replay,
)
from psdsim.engine import Costs, EngineSetup, RawRun, simulate_run
from psdsim.errors import InputError
from psdsim.records import REQUEST_COLUMNS, STEP_COLUMNS
from psdsim.workload import Requests
from realrun.executor import ForcedRule, GreedyRule, RunResult

MODELS: dict[str, AcceptanceModel] = {
    "iid": IidAcceptance(alpha=0.7),
    "markov": MarkovAcceptance(after_accept=0.85, after_reject=0.4),
    "beta": BetaAcceptance(mean=0.65, concentration=3.0),
}
OUTPUTS = [13, 1, 18, 6, 2, 11, 7]
PROMPTS = [[0] * n for n in (3, 9, 1, 4, 7, 2, 8)]
SEED = 11
STEP = [
    c for c in STEP_COLUMNS if c.startswith("n_") or c in ("kind", "draft_group", "verify_group")
]
REQUEST = [c for c in REQUEST_COLUMNS if c.startswith("n_")] + ["prompt_tokens", "output_tokens"]


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


def simulated(name: str, k: int, batch: int, model: AcceptanceModel, outputs: Any) -> RawRun:
    schedule = make_schedule(name, k, batch)
    drafts = schedule.drafts and schedule.k > 0
    prompts = np.array([len(p) for p in PROMPTS])
    return simulate_run(
        EngineSetup(
            make_schedule=lambda: make_schedule(name, k, batch),
            acceptance=model,
            costs=Costs(Constant(0.25), Constant(0.0625) if drafts else None),
            requests=Requests(np.zeros(len(PROMPTS)), prompts, np.array(outputs)),
            placement="separate" if schedule.overlaps else "colocated",
            seed=SEED,
            record_rounds=True,
        )
    )


def executed(name: str, k: int, batch: int, model: AcceptanceModel, outputs: Any) -> RunResult:
    schedule = make_schedule(name, k, batch)
    job = make_job(outputs, PROMPTS)
    rule: Any = GreedyRule()
    if schedule.drafts and schedule.k:
        rule = ForcedRule(model, job.output_tokens, schedule.capacity, k, SEED)
    return execute(schedule, job, Blank(), Blank(), rule)


def assert_same(raw: RawRun, result: RunResult) -> None:
    for name in STEP:
        assert result.steps[name].tolist() == raw.steps[name].tolist(), name
    for name in REQUEST:
        assert result.requests[name].tolist() == raw.requests[name].tolist(), name
    if raw.rounds is None:
        assert not any(result.tested)
    else:
        assert result.tested == [row.tolist() for row in raw.rounds.tested]
        assert result.accepted == [row.tolist() for row in raw.rounds.accepted]
    discarded = sum(result.discarded)
    steps = result.steps
    assert discarded == raw.tally.n_discarded
    assert steps["n_drafted_tokens"].sum() == steps["n_verified_tokens"].sum() + discarded


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("name", NAMES)
def test_forced_acceptance_takes_the_simulators_steps(name: str, k: int, batch: int) -> None:
    for kind, outputs in (*product(MODELS, (OUTPUTS,)), ("iid", [9] * len(PROMPTS))):
        model = MODELS[kind]
        result = executed(name, k, batch, model, outputs)
        assert_same(simulated(name, k, batch, model, outputs), result)
        assert [text.size for text in result.outputs] == outputs


@pytest.mark.parametrize("name", ["sd", "minedraft"])
@pytest.mark.parametrize(
    "model",
    [
        MarkovRoundsAcceptance(after_full=(0.9, 0.9, 0.8), otherwise=(0.5, 0.6, 0.4)),
        PositionAcceptance(convention="conditional", rates=(0.9, 0.5, 0.8)),
    ],
    ids=["rounds", "position"],
)
def test_models_of_whole_rounds_take_the_simulators_steps(
    name: str, model: AcceptanceModel
) -> None:
    assert_same(simulated(name, 3, 2, model, OUTPUTS), executed(name, 3, 2, model, OUTPUTS))


@pytest.mark.parametrize("name", ["sd", "minedraft", "pearl"])
def test_a_measured_run_replayed_by_the_simulator_takes_its_steps(name: str) -> None:
    outputs = [n + 1 for n in OUTPUTS]  # a replay wants a round of every request
    schedule = make_schedule(name, 3, 2)
    job = make_job(outputs, PROMPTS)
    target = LoggedTarget(lambda text: (sum(text) * 7 + len(text)) % 50)
    draft = LoggedDrafter(lambda text: (sum(text) * 7 + len(text) + (len(text) % 4 == 0)) % 50)
    result = execute(schedule, job, target, draft)
    assert 0 < result.steps["n_accepted_tokens"].sum() < result.steps["n_verified_tokens"].sum()
    model = Replay(k=3, bonus=result.bonus, rounds=tuple(map(tuple, result.accepted)))
    assert_same(simulated(name, 3, 2, model, outputs), result)
    # And the other way round: realrun replays itself, on models that agree about nothing.
    assert_same(simulated(name, 3, 2, model, outputs), executed(name, 3, 2, model, outputs))


def test_another_rate_takes_other_steps() -> None:
    raw = simulated("sd", 3, 2, IidAcceptance(alpha=0.7), OUTPUTS)
    result = executed("sd", 3, 2, IidAcceptance(alpha=0.5), OUTPUTS)
    assert raw.tally.n_accepted > result.steps["n_accepted_tokens"].sum()


def test_a_model_of_chain_rounds_refuses_pearl() -> None:
    model = MarkovRoundsAcceptance(after_full=(0.9,) * 3, otherwise=(0.5,) * 3)
    with pytest.raises(InputError, match="whole chain rounds"):
        executed("pearl", 3, 2, model, OUTPUTS)
