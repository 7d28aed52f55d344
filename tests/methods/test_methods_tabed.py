"""TABED: side-by-side inputs cost rows, the leader is followed, lengths lie between the arms'."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psdsim import simulate
from psdsim.acceptance import EnsembleAcceptance
from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.schedules.tabed import EnsembleDrafting
from tests.engine.kit import Timer, conserved
from tests.methods.method_kit import bound, close, log, rounds_of, run, scenario, work


def ensemble(*rates: tuple[float, float], share: float = 0.0) -> EnsembleAcceptance:
    return EnsembleAcceptance(rates=rates, second_share=share, mean_run=32.0)


def test_hand_trace_of_the_leader() -> None:
    # Arms: 0 accepts nothing, 1 everything, 2 nothing; each is tried once, the last first.
    # Draft: 2 forwards of 1/4 + 2/16; target 1/2. Prefill gives token 0.
    raw = run(
        "sd", 2, work([10]), schedule_class=EnsembleDrafting,
        acceptance=ensemble((0.0, 0.0), (1.0, 1.0), (0.0, 0.0)),
        target=Timer(0.5), draft=Timer(0.25, per_token=0.0625),
    )  # fmt: skip
    assert log(raw) == [
        (0.75, 0.5, 2, 2, 0, 1),  # arm 2
        (0.75, 0.5, 2, 2, 2, 3),  # arm 1
        (0.75, 0.5, 2, 2, 0, 1),  # arm 0
        (0.75, 0.5, 2, 2, 2, 3),  # arm 1 leads
        (0.75, 0.5, 2, 2, 2, 1),
    ]
    conserved(raw)


def test_requests_follow_leaders_of_their_own() -> None:
    # Mostly one stretch a request: half of the requests suit drafter 0, half drafter 1.
    model = EnsembleAcceptance(
        rates=((0.95, 0.05), (0.05, 0.95)), second_share=0.5, mean_run=100_000.0
    )
    cls = bound(EnsembleDrafting, arms=2)
    accepted = rounds_of(cls, 3, model, n=64, n_rounds=100)
    late = accepted[:, 10:].mean()
    assert late > 0.9 * (model.variant_length(0, 3) - 1) / 0.55
    fixed = rounds_of(bound(EnsembleDrafting, arms=2, arm=0), 3, model, n=64, n_rounds=100)
    assert fixed.mean() < 0.7 * late


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_the_leader_lies_between_the_best_arm_and_the_worst(share: float) -> None:
    model = ensemble((0.6, 0.3), (0.5, 0.5), (0.65, 0.55), share=share)
    k = 5
    lengths = [model.variant_length(arm, k) for arm in range(3)]
    found = 1 + rounds_of(EnsembleDrafting, k, model, n=128, n_rounds=400).mean(axis=1)
    error = found.std(ddof=1) / np.sqrt(found.size)
    assert min(lengths) < found.mean() < max(lengths) + 4.5 * error
    # It finds out: better than taking the arms in turn.
    assert found.mean() > np.mean(lengths) + 4.5 * error


@pytest.mark.parametrize("arm", [0, 2])
@pytest.mark.parametrize("odd", [0.0, 0.5])
def test_one_arm_alone_has_a_closed_form(arm: int, odd: float) -> None:
    adapted = method(f"tabed:odd={odd}").adapt(scenario(), 5)
    model = adapted.acceptance
    assert isinstance(model, EnsembleAcceptance)
    accepted = rounds_of(
        bound(EnsembleDrafting, arm=arm), 5, model, n=128, n_rounds=500
    )[:, 100:]  # fmt: skip
    theory = model.variant_length(arm, 5)
    more = tuple((a + 0.05, b + 0.05) for a, b in model.rates)
    mutant = model.model_copy(update={"rates": more}).variant_length(arm, 5)
    close(accepted, theory - 1, mutant - 1)
    if not odd:
        # TABED's first turn: 2.24, 2.23 and 2.31 tokens a round.
        assert theory == pytest.approx((2.24, 2.23, 2.31)[arm], abs=1e-9)


def test_it_runs_by_name_with_the_rates_of_the_scenario() -> None:
    mine = {
        "kind": "ensemble", "rates": [[0.9, 0.1], [0.1, 0.9]], "second_share": 0.5, "mean_run": 16,
    }  # fmt: skip
    base = scenario(acceptance=mine)
    result = simulate(base, "tabed:profile=0", 4)
    conserved(result.raw)
    assert method("tabed:profile=0").notes(base, 4) == []
    said = method("tabed").notes(base, 4)
    assert any(line.startswith("ASSUMED tabed: profile 1") for line in said)
    # One more input is one more row of every drafter forward.
    table = {"kind": "affine", "base_s": 0.25, "per_token_s": 0.0625}
    rows = scenario(step_time={"target": {"kind": "constant", "time_s": 0.5}, "draft": table})
    two, four = (simulate(rows, f"tabed:inputs={n}:arm=0", 2).raw.steps for n in (2, 4))
    decode = np.flatnonzero(two["kind"] == 2)[0]
    n = two["n_draft_seqs"][decode]
    assert four["draft_time_s"][decode] - two["draft_time_s"][decode] == 2 * 2 * n * 0.0625


@settings(max_examples=25)
@given(
    k=st.integers(1, 5),
    m=st.integers(1, 4),
    arms=st.integers(2, 3),
    output=st.lists(st.integers(1, 30), min_size=1, max_size=16),
    gap=st.sampled_from([0.0, 0.4]),
    kv_blocks=st.sampled_from([None, 14, 24]),
    seed=st.integers(0, 3),
)
def test_conservation(k, m, arms, output, gap, kv_blocks, seed) -> None:
    raw = run(
        "sd", k, work(output, prompt=4, arrival=gap * np.arange(len(output))), m=m, seed=seed,
        schedule_class=bound(EnsembleDrafting, arms=arms), kv_blocks=kv_blocks, block_size=4,
        acceptance=ensemble(*[(0.2 * i, 0.9 - 0.3 * i) for i in range(arms)], share=0.5),
    )  # fmt: skip
    conserved(raw)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: method("tabed:profile=0:odd=0.2"), "odd has no effect"),
        (lambda: method("tabed:odd=1.5"), "a number from 0 to 1"),
        (lambda: simulate(scenario(), "tabed:profile=0", 3), "a rate for each drafter"),
        (lambda: simulate(scenario(), "tabed:arm=3", 3), "-1 to 2"),
        (lambda: EnsembleDrafting(3, 4, inputs=0), "at least 1 of each"),
        (lambda: EnsembleDrafting(3, 4, arm=3), "one of the arms"),
    ],
)
def test_bad_settings_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
