"""Relaxed verification: rates turned, uniforms kept, requests that differ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from psdsim.acceptance import (
    BetaAcceptance,
    EnsembleAcceptance,
    HistogramAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    MarkovRoundsAcceptance,
    MeanLengthAcceptance,
    PositionAcceptance,
    RelaxedAcceptance,
    Replay,
    TapeModel,
    relax,
)
from psdsim.seeds import Stream, generator

W = 0.5
STATIC = [
    (IidAcceptance(alpha=0.5), (0.75, 0.75)),
    (MeanLengthAcceptance(length=1.75, k=2, includes_bonus=True), (0.75, 0.75)),
    (PositionAcceptance(rates=(0.5, 0.25), convention="conditional"), (0.75, 0.625)),
    (PositionAcceptance(rates=(0.5, 0.25), convention="unconditional"), (0.75, 0.75)),
    (HistogramAcceptance(counts=(5, 1, 4)), (0.75, 0.9)),
]


@pytest.mark.parametrize("model, rates", STATIC, ids=lambda x: getattr(x, "kind", ""))
def test_every_rate_is_turned(model, rates) -> None:
    assert relax(model, W).conditional_rates(2) == pytest.approx(rates, rel=1e-12)
    assert relax(model, 1.0).conditional_rates(2) == pytest.approx(
        model.conditional_rates(2), rel=1e-12
    )
    assert relax(model, 0.0).conditional_rates(2).tolist() == [1.0, 1.0]


def test_both_rates_of_a_chain_are_turned() -> None:
    chain = relax(MarkovAcceptance(after_accept=0.5, after_reject=0.25), W)
    assert (chain.after_accept, chain.after_reject) == (0.75, 0.625)
    rounds = relax(MarkovRoundsAcceptance(after_full=(0.5,), otherwise=(0.25,)), W)
    assert (rounds.after_full, rounds.otherwise) == ((0.75,), (0.625,))
    two = ((0.5, 0.25), (0.0, 1.0))
    several = EnsembleAcceptance(rates=two, second_share=0.5, mean_run=2.0)
    assert relax(several, W).rates == ((0.75, 0.625), (0.5, 1.0))


def test_relaxing_twice_multiplies_the_weights() -> None:
    base = BetaAcceptance(a=3.0, b=2.0)
    assert relax(relax(base, 0.5), 0.5) == relax(base, 0.25)


def bits(model: TapeModel, n_rows: int = 500, length: int = 64):
    u = generator(11, 0, Stream.ACCEPTANCE).random(n_rows * length)
    own = generator(11, 0, Stream.REQUEST).random(n_rows)
    return model.accept_bits(u, np.arange(n_rows) * length, own)


TAPES = [
    IidAcceptance(alpha=0.6),
    BetaAcceptance(a=2.0, b=1.0),
    BetaAcceptance(a=0.3, b=0.4),
    MarkovAcceptance(after_accept=0.8, after_reject=0.3),
]


@pytest.mark.parametrize("base", TAPES, ids=lambda m: m.kind)
@pytest.mark.parametrize("weight", [1.0, 0.7, 0.2, 0.0])
def test_what_the_base_accepts_the_relaxed_one_accepts(base, weight) -> None:
    strict, loose = bits(base), bits(relax(base, weight))
    assert (loose | ~strict).all()
    assert (loose == strict).all() == (weight == 1.0)


@pytest.mark.parametrize("per", ["request", "position"])
@pytest.mark.parametrize("base", TAPES[:3], ids=lambda m: m.kind)
def test_drawn_weights_keep_that(base, per) -> None:
    loose = relax(base, 0.5, concentration=2.0, drawn_per=per)
    assert (bits(loose) | ~bits(base)).all()


@pytest.mark.parametrize("per", ["request", "position"])
@pytest.mark.parametrize("base", TAPES[:3], ids=lambda m: f"{m.kind}")
def test_the_tape_follows_the_law(base, per) -> None:
    """P(first j accepted) of requests, against the moments of 1 - W (1 - A)."""
    model = relax(base, 0.5, concentration=3.0, drawn_per=per)
    k, n = 4, 40_000
    u = generator(5, 0, Stream.ACCEPTANCE).random(n * k)
    own = generator(5, 0, Stream.REQUEST).random(n)
    rows = model.accept_bits(u, np.arange(n) * k, own).reshape(n, k)
    reach = np.cumprod(rows, axis=1).mean(axis=0)
    wanted = np.cumprod(model.conditional_rates(k))
    error = np.sqrt(wanted * (1 - wanted) / n)
    assert (abs(reach - wanted) < 4.5 * error).all()
    # A weight that is off by 0.05 would be seen.
    off = np.cumprod(relax(base, 0.55, concentration=3.0, drawn_per=per).conditional_rates(k))
    assert (abs(off - wanted) > 9 * error)[1:].all()


def test_the_law_of_drawn_weights_is_that_of_an_integral() -> None:
    model = RelaxedAcceptance(base=IidAcceptance(alpha=0.4), target_weight=0.7, concentration=2.5)
    law = stats.beta(0.7 * 2.5, 0.3 * 2.5)
    for j in (1, 2, 5):
        moment = integrate.quad(lambda w, j=j: law.pdf(w) * (1 - w * 0.6) ** j, 0, 1, limit=200)[0]
        assert math.prod(model.conditional_rates(j)) == pytest.approx(moment, rel=1e-6)
    # Independent per position, only the mean weight counts.
    each = model.model_copy(update={"drawn_per": "position"})
    assert each.conditional_rates(3) == pytest.approx([1 - 0.7 * 0.6] * 3, rel=1e-12)
    assert each.pooled_acceptance_length(3) == pytest.approx(each.acceptance_length(3), rel=1e-12)
    assert model.pooled_acceptance_length(3) < model.acceptance_length(3)


def test_a_weight_of_one_is_the_base_itself() -> None:
    base = BetaAcceptance(a=4.0, b=1.0)
    same = relax(base, 1.0)
    assert same.conditional_rates(5) == pytest.approx(base.conditional_rates(5), rel=1e-12)
    assert same.pooled_acceptance_length(5) == pytest.approx(
        base.pooled_acceptance_length(5), rel=1e-12
    )
    assert same.notes(3) == base.notes(3)


def test_rounds_of_a_request_share_its_rate() -> None:
    model = relax(IidAcceptance(alpha=0.5), 0.5, concentration=1.0)
    rounds = model.sample_requests(3, 2000, 40, np.random.default_rng(3))
    assert rounds.shape == (2000, 40)
    assert rounds.mean() == pytest.approx(model.mean_accepted(3), abs=0.1)
    # Between requests the means vary far more than independent rounds would make them.
    assert rounds.mean(axis=1).var() > 4 * model.var_accepted(3) / 40


@pytest.mark.parametrize(
    "make",
    [
        lambda: relax(IidAcceptance(alpha=0.5), 1.5),
        lambda: relax(Replay(k=2, rounds=((1, 2),)), 0.5),
        lambda: relax(MarkovAcceptance(after_accept=0.5, after_reject=0.5), 0.5, concentration=2.0),
        lambda: relax(relax(IidAcceptance(alpha=0.5), 0.5, concentration=2.0), 0.5),
        lambda: RelaxedAcceptance(
            base=IidAcceptance(alpha=0.5), target_weight=1.0, concentration=2.0
        ),
        lambda: RelaxedAcceptance(
            base=IidAcceptance(alpha=0.5), target_weight=0.5, drawn_per="position"
        ),
    ],
)
def test_what_can_not_be_relaxed_is_refused(make) -> None:
    with pytest.raises(ValueError, match=r"relaxed|weight|drawn_per"):
        make()
