"""Judges walked by hand, without an engine, take the rounds that the simulator takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter

from psdsim.acceptance import Acceptance, AcceptanceModel
from psdsim.commands import Counts, Ids, Score
from psdsim.engine import simulate_run
from psdsim.run.prepare import prepare
from psdsim.scenario import Scenario
from psdsim.verdict import Tape, make_judge

MODELS: dict[str, dict[str, Any]] = {
    "iid": {"kind": "iid", "alpha": 0.7},
    "position": {"kind": "position", "convention": "conditional", "rates": [0.9, 0.5, 0.8]},
    "rounds": {"kind": "markov_rounds", "after_full": [0.9] * 3, "otherwise": [0.5] * 3},
    "replay": {"kind": "replay", "k": 3, "rounds": [[3, 0, 1, 2] * 8, [1] * 20, [2, 3] * 8]},
}
K, N_REQUESTS, N_TOKENS, SEED = 3, 3, 30, 5


@dataclass
class Walked:
    """What a judge needs of a batch, and no more."""

    ids: Ids
    cursor: NDArray[np.int64]
    n: int


def model_of(name: str) -> AcceptanceModel:
    model: AcceptanceModel = TypeAdapter(Acceptance).validate_python(MODELS[name])
    return model


def walk(model: AcceptanceModel) -> list[int]:
    """Return the rounds that serial speculative decoding takes for each request."""
    lengths = np.full(N_REQUESTS, N_TOKENS)
    tape = None if model.judged_by == "replay" else Tape(model, lengths, N_REQUESTS, SEED, 0)
    judge = make_judge(model, K, tape, N_REQUESTS)
    rounds = []
    for request in range(N_REQUESTS):
        base = tape.take_slot(request) if tape is not None else 0
        emitted, n = 1, 0  # the prefill gives the first token
        while emitted < N_TOKENS:
            one = Walked(np.array([request]), np.array([base + emitted]), 1)
            accepted: Counts = judge.accepted(one, Score(one.ids, K), K)
            emitted += int(accepted[0]) + 1
            n += 1
        rounds.append(n)
    return rounds


@pytest.mark.parametrize("name", MODELS)
def test_a_walk_without_an_engine_takes_the_simulators_rounds(name: str) -> None:
    scenario = Scenario.builtin(
        {
            "acceptance": MODELS[name],
            "workload.n_requests": N_REQUESTS,
            "workload.output_tokens": N_TOKENS,
            "assumed": {},
        }
    )
    raw = simulate_run(prepare(scenario, "sd", K, seed=SEED))
    assert raw.requests["n_rounds"].tolist() == walk(model_of(name))


def test_each_judge_remembers_its_own_rounds() -> None:
    model = model_of("rounds")
    tape = Tape(model, np.full(2, 40), 2, SEED, 0)
    first, second = (make_judge(model, K, tape, 2) for _ in range(2))
    base = tape.take_slot(0)
    tape.uniforms[base : base + 8] = [0.1, 0.1, 0.1, 0.0, 0.8, 0.1, 0.1, 0.0]
    batch = Walked(np.array([0]), np.array([base]), 1)
    score = Score(batch.ids, K)
    assert first.accepted(batch, score, K).tolist() == [3]
    batch.cursor = batch.cursor + 4
    # 0.8 passes after a full round (0.9) and fails after none (0.5).
    assert first.accepted(batch, score, K).tolist() == [3]
    assert second.accepted(batch, score, K).tolist() == [0]
