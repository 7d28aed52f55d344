"""Forced acceptance and the simulator read one tape: they take the same steps, column by column."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest

pytest.importorskip("torch")

from coupling_kit import OUTPUTS, PROMPTS, assert_same, executed, simulated
from realrun_kit import (
    NAMES,
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
from psdsim.errors import InputError

MODELS: dict[str, AcceptanceModel] = {
    "iid": IidAcceptance(alpha=0.7),
    "markov": MarkovAcceptance(after_accept=0.85, after_reject=0.4),
    "beta": BetaAcceptance(mean=0.65, concentration=3.0),
}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("name", NAMES)
def test_forced_acceptance_takes_the_simulators_steps(name: str, k: int, batch: int) -> None:
    for kind, outputs in (*product(MODELS, (OUTPUTS,)), ("iid", [9] * len(PROMPTS))):
        model = MODELS[kind]
        make = partial(make_schedule, name, k, batch)
        result = executed(make, model, outputs)
        assert_same(simulated(make, model, outputs), result)
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
    make = partial(make_schedule, name, 3, 2)
    assert_same(simulated(make, model, OUTPUTS), executed(make, model, OUTPUTS))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "ar"])
def test_a_measured_run_replayed_by_the_simulator_takes_its_steps(name: str) -> None:
    outputs = [n + 1 for n in OUTPUTS]  # a replay wants a round of every request
    make = partial(make_schedule, name, 3, 2)
    job = make_job(outputs, PROMPTS)
    target = LoggedTarget(lambda text: (sum(text) * 7 + len(text)) % 50)
    draft = LoggedDrafter(lambda text: (sum(text) * 7 + len(text) + (len(text) % 4 == 0)) % 50)
    result = execute(make(), job, target, draft)
    assert 0 < result.steps["n_accepted_tokens"].sum() < result.steps["n_verified_tokens"].sum()
    model = Replay(k=3, bonus=result.bonus, rounds=tuple(map(tuple, result.accepted)))
    assert_same(simulated(make, model, outputs), result)
    # And the other way round: realrun replays itself, on models that agree about nothing.
    assert_same(simulated(make, model, outputs), executed(make, model, outputs))


@pytest.mark.parametrize("name", ["ar", "sd", "minedraft", "pearl"])
def test_prompts_are_admitted_up_to_the_simulators_token_budget(name: str) -> None:
    """8192 a pass, first come first served: nobody overtakes one who does not fit."""
    prompts = [[0] * n for n in (5000, 4000, 4192, 1, 8192, 300)]
    outputs = [4, 7, 2, 5, 3, 6]
    make = partial(make_schedule, name, 0 if name == "ar" else 3, 6)
    model = IidAcceptance(alpha=0.7)
    result = executed(make, model, outputs, prompts=prompts)
    assert_same(simulated(make, model, outputs, prompts=prompts), result)
    prefills = result.steps["n_prefill_tokens"]
    assert prefills[prefills > 0].tolist() == [5000, 8192, 1, 8192, 300]


def test_another_rate_takes_other_steps() -> None:
    make = partial(make_schedule, "sd", 3, 2)
    raw = simulated(make, IidAcceptance(alpha=0.7), OUTPUTS)
    result = executed(make, IidAcceptance(alpha=0.5), OUTPUTS)
    assert raw.tally.n_accepted > result.steps["n_accepted_tokens"].sum()


def test_a_model_of_chain_rounds_refuses_pearl() -> None:
    model = MarkovRoundsAcceptance(after_full=(0.9,) * 3, otherwise=(0.5,) * 3)
    with pytest.raises(InputError, match="whole chain rounds"):
        executed(partial(make_schedule, "pearl", 3, 2), model, OUTPUTS)
