"""The steady state of each schedule: composition by hand, finite sizes, what has no closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.schedules import Jitter, NoClosedForm, SteadyState, steady_state
from psdsim.acceptance import (
    AcceptanceModel,
    BetaAcceptance,
    HistogramAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    MarkovRoundsAcceptance,
    MeanLengthAcceptance,
    PositionAcceptance,
    Replay,
)
from psdsim.errors import InputError

IID = IidAcceptance(alpha=0.8)
ALL = ("ar", "sd", "minedraft", "pearl", "pearl-draft-ahead")


def at(
    schedule: str,
    acceptance: AcceptanceModel = IID,
    k: int = 4,
    n_tokens: int | None = None,
    jitter: Jitter | None = None,
    n_seqs: float = 16.0,
) -> SteadyState:
    """Phases that are exact in binary: D = 1/4, V = 1/2, overhead 1/8, sync 1/16."""
    return steady_state(
        schedule,
        n_seqs_per_step=n_seqs,
        acceptance=acceptance,
        k=k,
        draft_time_s=0.25,
        verify_time_s=0.5,
        overhead_s=0.125,
        sync_s=0.0625,
        n_tokens=n_tokens,
        jitter=jitter,
    )


@pytest.mark.parametrize(
    "schedule, tokens, step_s",
    [
        ("ar", 1.0, 0.625),  # overhead + V
        ("sd", 3.3616, 0.875),  # overhead + D + V: one process, no barrier
        ("minedraft", 3.3616, 0.6875),  # overhead + max + sync
        # R(.8, 4) = (1 - .4096) / (.2 x 1.3904)
        ("pearl", 0.5904 / (0.2 * 1.3904), 0.6875),
        ("pearl-draft-ahead", 0.5904 / (0.2 * 1.3904), 0.6875),
    ],
)
def test_composition_by_hand(schedule: str, tokens: float, step_s: float) -> None:
    found = at(schedule)
    assert found.tokens_per_step_per_request == pytest.approx(tokens, rel=1e-12)
    assert found.step_time_s == step_s
    assert found.output_throughput == pytest.approx(16 * tokens / step_s, rel=1e-12)
    assert found.symbols == {
        "n_seqs": 16.0, "k": 4, "D": 0.25, "V": 0.5, "overhead": 0.125, "sync": 0.0625,
    }  # fmt: skip
    assert found.source
    assert any("endless" in text for text in found.assumptions)


@given(st.floats(0.0, 1.0), st.integers(1, 8), st.floats(0.01, 3.0), st.floats(0.01, 3.0))
@settings(max_examples=100, deadline=None)
def test_order_of_the_schedules(alpha: float, k: int, draft_s: float, verify_s: float) -> None:
    def rate(schedule: str) -> float:
        return steady_state(
            schedule,
            n_seqs_per_step=1,
            acceptance=IidAcceptance(alpha=alpha),
            k=k,
            draft_time_s=draft_s,
            verify_time_s=verify_s,
        ).output_throughput

    serial, batches, chain = rate("sd"), rate("minedraft"), rate("pearl")
    # Same requests a step, no overheads: between once and twice SD; PEARL has no bonus token.
    assert serial < batches <= 2.0 * serial * (1 + 1e-12)
    assert batches / serial == pytest.approx(1 + min(draft_s, verify_s) / max(draft_s, verify_s))
    assert chain <= batches * (1 + 1e-12)


@pytest.mark.parametrize(
    "model, length",
    [
        (MeanLengthAcceptance(length=3.3616, k=4, includes_bonus=True), 3.3616),
        # T-20: 1 + .9 + .72 + .504 + .3024
        (PositionAcceptance(rates=(0.9, 0.8, 0.7, 0.6), convention="conditional"), 3.4264),
        # 1 x 2 + 1 x 3 + 2 x 5 tokens in 4 rounds
        (HistogramAcceptance(counts=(0, 1, 1, 0, 2)), 3.75),
        (MarkovAcceptance(after_accept=0.8, after_reject=0.8), 3.3616),
        # T-22
        (
            MarkovRoundsAcceptance(
                after_full=(0.85, 0.8, 0.8, 0.8), otherwise=(0.55, 0.8, 0.8, 0.8)
            ),
            2.918242,
        ),
    ],
)
def test_tokens_of_every_model_of_chain_rounds(model: AcceptanceModel, length: float) -> None:
    for schedule in ("sd", "minedraft"):
        found = at(schedule, model).tokens_per_step_per_request
        assert found == pytest.approx(length, abs=5e-7)


def test_requests_that_differ_pool_harmonically() -> None:
    # k = 1, alpha uniform: E[N | alpha] = 1 + alpha, and 1 / E[1 / (1 + alpha)] = 1 / ln 2.
    model = BetaAcceptance(a=1.0, b=1.0)
    found = at("sd", model, k=1)
    assert found.tokens_per_step_per_request == pytest.approx(1.0 / np.log(2.0), rel=1e-10)
    assert any("pooled" in text for text in found.assumptions)
    # Two tokens of each: 1 + (1 - alpha) rounds, so 2 / 1.5.
    assert at("sd", model, 1, n_tokens=2).tokens_per_step_per_request == pytest.approx(4 / 3)


def test_finite_outputs_t62_t63() -> None:
    for n, rounds in ((128, 38.5420827), (256, 76.6191889)):
        found = at("minedraft", n_tokens=n)
        assert n / found.tokens_per_step_per_request == pytest.approx(rounds, abs=1e-7)
        assert f"every request decodes {n} tokens" in found.assumptions
    # One token is one round of any schedule.
    for schedule in ALL:
        assert at(schedule, n_tokens=1).tokens_per_step_per_request == 1.0


@pytest.mark.parametrize(
    "model",
    [
        IID,
        MarkovAcceptance(after_accept=0.9, after_reject=0.4),
        MarkovRoundsAcceptance(after_full=(0.9, 0.9), otherwise=(0.5, 0.7)),
        PositionAcceptance(rates=(0.9, 0.5), convention="conditional"),
        BetaAcceptance(a=2.0, b=1.0),
    ],
)
def test_finite_outputs_tend_to_endless_ones(model: AcceptanceModel) -> None:
    schedules = ["sd", "minedraft"]
    if isinstance(model, IidAcceptance | MarkovAcceptance):
        schedules += ["pearl", "pearl-draft-ahead"]
    for schedule in schedules:
        endless = at(schedule, model, k=2).tokens_per_step_per_request
        long = at(schedule, model, k=2, n_tokens=4000).tokens_per_step_per_request
        assert long == pytest.approx(endless, rel=1e-3)
        short = at(schedule, model, k=2, n_tokens=7).tokens_per_step_per_request
        assert abs(short - endless) > abs(long - endless)


def test_two_tokens_by_hand_under_each_model_with_memory() -> None:
    # k = 1, two tokens: one round if the first draft is accepted, else two.
    def rounds(schedule: str, model: AcceptanceModel) -> float:
        return 2 / at(schedule, model, k=1, n_tokens=2).tokens_per_step_per_request

    # Stationary first draft: .4 / (1 - .9 + .4) = .8.
    markov = MarkovAcceptance(after_accept=0.9, after_reject=0.4)
    assert rounds("sd", markov) == pytest.approx(2 - 0.8)
    # The first round follows no full one.
    between = MarkovRoundsAcceptance(after_full=(0.9,), otherwise=(0.5,))
    assert rounds("sd", between) == pytest.approx(2 - 0.5)
    # PEARL has no bonus token: two steps whatever is accepted.
    assert rounds("pearl", markov) == 2.0
    # At k = 2 and three tokens: after an accepted first token one step may give both others.
    steps = 3 / at("pearl", markov, k=2, n_tokens=3).tokens_per_step_per_request
    # accept .8: then post; two more tokens in one step unless its first is rejected (.1).
    # reject .2: then pre gives one, and one more step the last.
    assert steps == pytest.approx(1 + 0.8 * (1 + 0.1) + 0.2 * 2)


def test_jitter_lengthens_only_steps_that_wait_for_the_slower() -> None:
    both = Jitter(draft_cv=0.3, verify_cv=0.3)
    for schedule in ("ar", "sd"):
        assert at(schedule, jitter=both).step_time_s == at(schedule).step_time_s
    for schedule in ("minedraft", "pearl"):
        assert at(schedule, jitter=both).step_time_s > at(schedule).step_time_s
        still = at(schedule, jitter=Jitter(0.0, 0.0))
        assert still.step_time_s == at(schedule).step_time_s
    # Exponentials of means 1/4 and 1/2: 1/4 + 1/2 - 1/6.
    wild = at("minedraft", jitter=Jitter(1.0, 1.0, "exponential"))
    assert wild.step_time_s == pytest.approx(0.1875 + 0.75 - 1 / 6)


def test_k_0_is_plain_decoding() -> None:
    found = steady_state(
        "sd", n_seqs_per_step=2, acceptance=IID, k=0, draft_time_s=0.0, verify_time_s=0.5
    )
    assert found.output_throughput == 4.0


@pytest.mark.parametrize(
    "schedule, model, reason",
    [
        ("round-robin", IID, "round-robin"),
        ("sd", Replay(rounds=((1, 2, 0),), k=2), "replayed recording"),
        ("pearl", PositionAcceptance(rates=(0.9, 0.8), convention="conditional"), "position"),
        ("pearl", BetaAcceptance(a=2.0, b=1.0), "beta"),
        ("pearl", MarkovRoundsAcceptance(after_full=(0.9,), otherwise=(0.5,)), "markov_rounds"),
        ("pearl-draft-ahead", Replay(rounds=((1, 2, 0),), k=2), "replay"),
    ],
)
def test_where_no_closed_form_is_known(schedule: str, model: AcceptanceModel, reason: str) -> None:
    with pytest.raises(NoClosedForm, match=reason) as told:
        at(schedule, model, k=2)
    assert isinstance(told.value, InputError)
    assert str(told.value) == told.value.reason
    # Plain decoding drafts nothing, so it needs no law.
    assert at("ar", model, k=2).tokens_per_step_per_request == 1.0


def test_wrong_inputs_are_named() -> None:
    with pytest.raises(InputError, match="k is -1"):
        at("sd", k=-1)
    with pytest.raises(InputError, match="k is 0"):
        at("pearl", k=0)
    with pytest.raises(InputError, match="n_tokens is 0"):
        at("sd", n_tokens=0)
    with pytest.raises(InputError, match="n_seqs is 0"):
        at("sd", n_seqs=0.0)
    with pytest.raises(InputError, match="draft_cv"):
        Jitter(draft_cv=-0.1, verify_cv=0.0)
    with pytest.raises(InputError, match="exponential"):
        at("minedraft", jitter=Jitter(0.5, 1.0, "exponential"))
    with pytest.raises(InputError, match="k=2 and k=4"):
        at("sd", PositionAcceptance(rates=(0.9, 0.8), convention="conditional"))
