"""Laws, moments and samples of every model, against theory's worked numbers and brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

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
from psdsim.acceptance.law import invert, two_state_path

MODELS = [
    pytest.param(IidAcceptance(alpha=0.8), 4, id="iid"),
    pytest.param(IidAcceptance(alpha=0.0), 3, id="never"),
    pytest.param(IidAcceptance(alpha=1.0), 3, id="always"),
    pytest.param(MeanLengthAcceptance(length=1.4, k=3, includes_bonus=False), 3, id="mean"),
    pytest.param(
        PositionAcceptance(rates=(0.9, 0.8, 0.7, 0.6), convention="conditional"), 4, id="position"
    ),
    pytest.param(
        PositionAcceptance(rates=(0.9, 0.5), convention="unconditional", extend="last"),
        5,
        id="extended",
    ),
    pytest.param(HistogramAcceptance(counts=(40, 0, 10, 50)), 3, id="histogram"),
    pytest.param(HistogramAcceptance(counts=(40, 20, 0, 0)), 3, id="histogram-never-beyond-1"),
    pytest.param(MarkovAcceptance(after_accept=0.9, after_reject=0.5), 4, id="markov"),
    pytest.param(
        MarkovRoundsAcceptance(after_full=(0.9, 0.8), otherwise=(0.5, 0.8)), 2, id="rounds"
    ),
    pytest.param(BetaAcceptance(a=4.0, b=1.0), 5, id="beta"),
    pytest.param(Replay(k=3, rounds=((0, 3, 3, 1), (2, 2, 0, 3, 3))), 3, id="replay"),
]


@pytest.mark.parametrize("model, k", MODELS)
def test_law_is_a_law_and_its_moments_agree(model: AcceptanceModel, k: int) -> None:
    for length in range(k + 1) if not isinstance(model, Replay) else (0, k):
        law = model.pmf(length)
        assert law.shape == (length + 1,)
        assert law.min() >= 0.0
        assert math.fsum(law) == pytest.approx(1.0, abs=1e-14)
        values = np.arange(length + 1)
        mean = math.fsum(values * law)
        assert model.mean_accepted(length) == pytest.approx(mean, abs=1e-13)
        assert model.acceptance_length(length) == pytest.approx(1.0 + mean, abs=1e-13)
        variance = math.fsum(values**2 * law) - mean**2
        assert model.var_accepted(length) == pytest.approx(variance, abs=1e-12)
        assert model.pooled_acceptance_length(length) <= 1.0 + mean + 1e-12


@pytest.mark.parametrize("model, k", MODELS)
def test_sample_follows_the_law(model: AcceptanceModel, k: int) -> None:
    drawn = model.sample(k, 120_000, np.random.default_rng(17))
    assert drawn.dtype == np.int64
    # Every sixth round: a chain's memory is gone by then, so counts are independent.
    drawn = drawn[::6]
    law = model.pmf(k)
    counts = np.bincount(drawn, minlength=k + 1)
    assert counts.size == k + 1
    assert counts[law == 0.0].sum() == 0
    used = law > 0.0
    if used.sum() > 1:
        expected = law[used] / law.sum() * drawn.size
        assert stats.chisquare(counts[used], expected).pvalue > 1e-3


@pytest.mark.parametrize("model, k", MODELS)
def test_every_round_of_a_sampled_request_follows_the_law(model: AcceptanceModel, k: int) -> None:
    drawn = model.sample_requests(k, 4000, 3, np.random.default_rng(23))
    assert drawn.shape == (4000, 3)
    assert drawn.dtype == np.int64
    law = model.pmf(k)
    used = law > 0.0
    for column in drawn.T:
        counts = np.bincount(column, minlength=k + 1)
        assert counts[~used].sum() == 0
        if used.sum() > 1:
            expected = law[used] / law.sum() * 4000
            assert stats.chisquare(counts[used], expected).pvalue > 1e-3


@pytest.mark.parametrize("model, k", MODELS)
def test_sample_of_nothing_and_of_no_drafts(model: AcceptanceModel, k: int) -> None:
    rng = np.random.default_rng(0)
    assert model.sample(k, 0, rng).shape == (0,)
    assert model.sample(0, 5, rng).tolist() == [0] * 5
    with pytest.raises(ValueError, match="the sample size is -1"):
        model.sample(k, -1, rng)
    with pytest.raises(ValueError, match="the draft length k is False"):
        model.sample(False, 3, rng)
    assert model.sample_requests(k, 0, 4, rng).shape == (0, 4)
    assert model.sample_requests(k, 4, 0, rng).shape == (4, 0)
    assert model.sample_requests(0, 2, 2, rng).tolist() == [[0, 0], [0, 0]]
    for n_requests, n_rounds in ((-1, 2), (2, -1)):
        with pytest.raises(ValueError, match="the sample size is -1"):
            model.sample_requests(k, n_requests, n_rounds, rng)


@pytest.mark.parametrize(
    "alpha, k, mean, variance",
    # T-5 to T-9 of the theory notes.
    [(0.8, 4, 3.3616, 2.57004544), (0.7, 5, 2.94117, 3.310189), (0.6, 3, 2.176, 1.377024),
     (0.9, 8, 6.1257951, 9.1290533), (0.8, 5, 3.68928, None), (0.9, 10, 6.861894, None)],
)  # fmt: skip
def test_leviathan_numbers(alpha: float, k: int, mean: float, variance: float | None) -> None:
    model = IidAcceptance(alpha=alpha)
    assert model.acceptance_length(k) == pytest.approx(mean, abs=1e-7)
    if variance is not None:
        assert model.var_accepted(k) == pytest.approx(variance, abs=1e-6)


@pytest.mark.parametrize(
    "rates, mean, variance",
    [((0.9, 0.8, 0.7, 0.6), 3.4264, 1.809383),
     ((0.667, 0.646, 0.636, 0.659, 0.629), 2.6661089, 2.8404196)],
)  # fmt: skip
def test_position_dependent_numbers(
    rates: tuple[float, ...], mean: float, variance: float
) -> None:  # T-20, T-21
    model = PositionAcceptance(rates=rates, convention="conditional")
    assert model.acceptance_length(len(rates)) == pytest.approx(mean, abs=1e-7)
    assert model.var_accepted(len(rates)) == pytest.approx(variance, abs=1e-6)


def test_markov_between_rounds_numbers() -> None:  # T-22
    r, f, p = 0.55, 0.85, 0.8
    model = MarkovRoundsAcceptance(after_full=(f, p, p, p), otherwise=(r, p, p, p))
    assert model.acceptance_length(4) == pytest.approx(2.918242, abs=1e-6)
    assert model.pmf(4)[4] == pytest.approx(0.33270321, abs=1e-8)  # the share of full rounds


@pytest.mark.parametrize(
    "rates, after_rejection, after_full, length, full_share, iid_alpha, variance, iid_variance",
    # Section 2.3 of the theory notes: four sets of measured traces, k = 5. Columns: conditional
    # rates; first draft after a rejected and after a full round; predicted length and share of
    # full rounds; alpha matched to the mean; Var(L) measured and i.i.d. (the table rounds them).
    [((.667, .646, .636, .659, .629), .669, .748, 2.694, .1155, .6543, 2.839, 2.926),
     ((.608, .641, .692, .749, .769), .568, .864, 2.642, .1570, .6471, 3.300, 2.864),
     ((.605, .596, .647, .695, .729), .582, .787, 2.482, .1185, .6193, 2.864, 2.621),
     ((.635, .627, .644, .664, .685), .625, .757, 2.590, .1176, .6383, 2.868, 2.787)],
)  # fmt: skip
def test_measured_traces(
    rates: tuple[float, ...], after_rejection: float, after_full: float, length: float,
    full_share: float, iid_alpha: float, variance: float, iid_variance: float,
) -> None:  # fmt: skip
    chain = MarkovRoundsAcceptance(
        after_full=(after_full, *rates[1:]), otherwise=(after_rejection, *rates[1:])
    )
    assert chain.acceptance_length(5) == pytest.approx(length, abs=6e-4)
    assert chain.pmf(5)[5] == pytest.approx(full_share, abs=6e-5)
    table = PositionAcceptance(rates=rates, convention="conditional")
    assert table.var_accepted(5) == pytest.approx(variance, abs=3e-3)
    assert IidAcceptance(alpha=iid_alpha).var_accepted(5) == pytest.approx(iid_variance, abs=1e-3)


def test_markov_between_rounds_equals_power_iteration_of_its_chain() -> None:
    full, other = np.array([0.9, 0.7, 0.4]), np.array([0.3, 0.8, 0.95])

    def law(rates: np.ndarray) -> np.ndarray:
        out, reach = [], 1.0
        for rate in rates:
            out.append(reach * (1.0 - rate))
            reach *= rate
        return np.array([*out, reach])

    step = np.array([law(other) if j < 3 else law(full) for j in range(4)])
    stationary = np.linalg.matrix_power(step, 200)[0]
    model = MarkovRoundsAcceptance(after_full=tuple(full), otherwise=tuple(other))
    np.testing.assert_allclose(model.pmf(3), stationary, atol=1e-12)

    drawn = model.sample(3, 150_000, np.random.default_rng(4))
    for before in range(4):
        after = drawn[1:][drawn[:-1] == before]
        counts = np.bincount(after, minlength=4)
        assert stats.chisquare(counts, step[before] * after.size).pvalue > 1e-3


def test_beta_numbers() -> None:  # T-23, T-24
    assert BetaAcceptance(a=4.0, b=1.0).acceptance_length(5) == pytest.approx(3.9825397, abs=1e-7)
    assert BetaAcceptance(a=0.8, b=0.2).acceptance_length(5) == pytest.approx(4.443264, abs=1e-7)


@pytest.mark.parametrize("a, b", [(4.0, 1.0), (2.5, 3.0), (1.0, 1.0), (60.0, 15.0)])
def test_beta_law_equals_quadrature_over_the_rate(a: float, b: float) -> None:
    k = 4
    model = BetaAcceptance(a=a, b=b)

    def mean(function: Callable[[float], float]) -> float:
        return float(integrate.quad(lambda x: stats.beta.pdf(x, a, b) * function(x), 0, 1)[0])

    def moment(j: int) -> float:
        return mean(lambda x: x**j)

    expected = [moment(j) - moment(j + 1) for j in range(k)] + [moment(k)]
    np.testing.assert_allclose(model.pmf(k), expected, atol=1e-9)
    pooled = 1.0 / mean(lambda x: 1.0 / sum(x**j for j in range(k + 1)))
    assert model.pooled_acceptance_length(k) == pytest.approx(pooled, rel=1e-8)


@pytest.mark.parametrize("k", [1, 4, 64])
def test_beta_pooled_length_in_the_hard_corners(k: int) -> None:
    iid = IidAcceptance(alpha=0.8).acceptance_length(k)
    # Requests all alike: i.i.d. in the limit. Concentrations of 1e4 and more overflow the Beta
    # function; the second-order term of the mean is var(alpha) ~ 0.16 / concentration.
    for concentration in (1e4, 1e7):
        model = BetaAcceptance(mean=0.8, concentration=concentration)
        assert model.pooled_acceptance_length(k) == pytest.approx(iid, rel=20.0 / concentration)
    # a + b = 1, which has a 0/0 in the textbook recurrence.
    odd = BetaAcceptance(a=0.8, b=0.2).pooled_acceptance_length(k)
    near = [BetaAcceptance(a=0.8, b=0.2 + d).pooled_acceptance_length(k) for d in (-1e-7, 1e-7)]
    assert near[1] < odd < near[0]
    # Rates of almost only 0 and 1, half of each: rounds of 1 and of k + 1 tokens.
    ends = BetaAcceptance(a=1e-5, b=1e-5).pooled_acceptance_length(k)
    assert ends == pytest.approx(1.0 / (0.5 + 0.5 / (k + 1)), rel=1e-3)


def test_pooling_is_the_harmonic_mean() -> None:  # T-25
    lengths = [IidAcceptance(alpha=a).acceptance_length(4) for a in (0.5, 0.9)]
    assert lengths == pytest.approx([1.9375, 4.0951], abs=1e-12)
    assert 2 / (1 / lengths[0] + 1 / lengths[1]) == pytest.approx(2.6304599, abs=1e-7)


def test_markov_with_equal_rates_is_iid() -> None:
    for k in range(6):
        np.testing.assert_allclose(
            MarkovAcceptance(after_accept=0.7, after_reject=0.7).pmf(k),
            IidAcceptance(alpha=0.7).pmf(k),
            atol=1e-15,
        )


def test_variance_does_not_cancel_near_certain_acceptance() -> None:
    eps = 1e-12
    # L is k except with probability ~ k eps: Var = eps (1 + 4 + 9 + 16) to first order.
    alpha = 1.0 - eps
    assert IidAcceptance(alpha=alpha).var_accepted(4) == pytest.approx(30 * (1 - alpha), rel=1e-6)


def test_inverse_transform_can_not_leave_the_range() -> None:
    law = np.full(10, 0.1)  # its cumulative sum ends at 0.9999999999999999
    assert invert(law, np.array([np.nextafter(1.0, 0.0), 0.0])).tolist() == [9, 0]
    # A value of probability 0 is never drawn, not even on its edge.
    assert invert(np.array([0.0, 0.5, 0.0, 0.5]), np.array([0.0, 0.5])).tolist() == [1, 3]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40), st.booleans())
def test_two_state_path_equals_the_loop(steps: list[tuple[bool, bool]], first: bool) -> None:
    maps = np.array([(first, first), *steps], dtype=np.bool_)
    state, loop = False, []
    for after_false, after_true in maps.tolist():
        state = after_true if state else after_false
        loop.append(state)
    assert two_state_path(maps[:, 0], maps[:, 1]).tolist() == loop


def test_two_state_path_of_every_short_sequence() -> None:
    options = list(product((False, True), repeat=2))
    for steps in product(options, repeat=4):
        maps = np.array([(True, True), *steps])
        state, loop = True, [True]
        for after_false, after_true in steps:
            state = after_true if state else after_false
            loop.append(state)
        assert two_state_path(maps[:, 0], maps[:, 1]).tolist() == loop
