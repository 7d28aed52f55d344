"""Estimators: the likelihood they maximise, their limits, and whether their errors are honest."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from analysis import estimators
from analysis.rounds import acceptance_length_iid, acceptance_length_position
from psdsim.errors import InputError

MODERATE = settings(max_examples=60, deadline=None)


@st.composite
def rounds(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    drafted = draw(st.lists(st.integers(1, 6), min_size=2, max_size=30))
    return [draw(st.integers(0, k)) for k in drafted], drafted


def draw_rounds(rng: np.random.Generator, rates: np.ndarray, drafted: np.ndarray) -> np.ndarray:
    """Return accepted counts by testing draft after draft."""
    bits = rng.random((drafted.size, rates.size)) < rates
    return np.minimum(np.cumprod(bits, axis=1).sum(axis=1), drafted)


@MODERATE
@given(rounds())
def test_per_test_rate_maximises_the_censored_likelihood(data: tuple[list[int], list[int]]) -> None:
    accepted, drafted = data

    def minus_log_likelihood(alpha: float) -> float:
        return -sum(
            n * math.log(alpha) + (math.log(1.0 - alpha) if n < k else 0.0)
            for n, k in zip(accepted, drafted, strict=True)
        )

    found = estimators.per_test_rate(accepted, drafted)
    if 0.0 < found.value < 1.0:
        best = minimize_scalar(minus_log_likelihood, bounds=(1e-9, 1 - 1e-9), method="bounded")
        assert found.value == pytest.approx(best.x, abs=1e-4)
        # The observed information gives the same error: by a central second difference.
        a, h = found.value, 1e-4 * min(found.value, 1.0 - found.value)
        curve = (
            minus_log_likelihood(a + h) - 2 * minus_log_likelihood(a) + minus_log_likelihood(a - h)
        ) / h**2
        assert found.standard_error == pytest.approx(1.0 / math.sqrt(curve), rel=1e-2)


def test_errors_are_honest() -> None:
    # 400 data sets of 500 rounds: the spread of the estimates is what each one states.
    rng = np.random.default_rng(11)
    alpha, k, n, repeats = 0.8, 4, 500, 400
    scores: dict[str, list[float]] = {"test": [], "length": [], "censored": []}
    drafted = rng.integers(2, 7, n)
    truth = float(acceptance_length_iid(alpha, k))
    for _ in range(repeats):
        accepted = draw_rounds(rng, np.full(6, alpha), drafted)
        found = estimators.per_test_rate(accepted, drafted)
        scores["test"].append((found.value - alpha) / found.standard_error)
        cut = draw_rounds(rng, np.full(k, alpha), np.full(n, k))
        found = estimators.alpha_from_mean_length(1.0 + cut.mean(), k, n)
        scores["length"].append((found.value - alpha) / found.standard_error)
        found = estimators.acceptance_length_censored(accepted, drafted, k)
        scores["censored"].append((found.value - truth) / found.standard_error)
    for values in scores.values():
        z = np.array(values)
        # A standard normal: mean 0 +- 1/20, variance 1 +- sqrt(2/400), at 4.5 errors each.
        assert abs(z.mean()) < 4.5 / math.sqrt(repeats)
        assert abs(z.var() - 1.0) < 4.5 * math.sqrt(2.0 / repeats)


def test_ignoring_the_censoring_is_biased() -> None:
    rng = np.random.default_rng(3)
    accepted = draw_rounds(rng, np.full(4, 0.8), np.full(20_000, 4))
    found = estimators.per_test_rate(accepted, 4)
    assert abs(found.value - 0.8) < 4.5 * found.standard_error
    # Counting a full round as if it had been rejected afterwards is what theory note 1.5 warns of.
    naive = accepted.sum() / (accepted.sum() + accepted.size)
    assert naive < 0.8 - 9.0 * found.standard_error


@MODERATE
@given(rounds())
def test_conditional_rates_by_counting(data: tuple[list[int], list[int]]) -> None:
    accepted, drafted = data
    found = estimators.conditional_rates(accepted, drafted)
    for j in range(1, max(drafted) + 1):
        tested = [n for n, k in zip(accepted, drafted, strict=True) if k >= j and n >= j - 1]
        assert found.n[j - 1] == len(tested)
        if tested:
            assert found.value[j - 1] == pytest.approx(sum(n >= j for n in tested) / len(tested))
        else:
            assert math.isnan(found.value[j - 1])


@MODERATE
@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_length_at_the_drafted_k_is_the_plain_mean(accepted: list[int]) -> None:
    found = estimators.acceptance_length_censored(accepted, 4, 4)
    assert found.value == pytest.approx(1.0 + np.mean(accepted))
    # With one k for all, Greenwood's error is the plain one.
    plain = np.std(accepted) / math.sqrt(len(accepted))
    assert found.standard_error == pytest.approx(plain, abs=1e-9)


def test_length_from_mixed_k() -> None:
    rng = np.random.default_rng(5)
    rates = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    drafted = rng.integers(1, 6, 40_000)
    accepted = draw_rounds(rng, rates, drafted)
    found = estimators.acceptance_length_censored(accepted, drafted, 4)
    assert abs(found.value - acceptance_length_position(rates[:4])) < 4.5 * found.standard_error
    # The mean over rounds of all k is another number.
    assert abs(1.0 + accepted.mean() - found.value) > 9.0 * found.standard_error


@MODERATE
@given(st.floats(0.0, 1.0), st.integers(1, 8))
def test_alpha_from_its_own_mean_length(alpha: float, k: int) -> None:
    found = estimators.alpha_from_mean_length(float(acceptance_length_iid(alpha, k)), k, 100)
    assert found.value == pytest.approx(alpha, abs=1e-9)
    # The information in the mean is never more than in all tests of 100 rounds.
    tests = 100 * sum(alpha**j for j in range(k))
    assert found.standard_error >= math.sqrt(alpha * (1 - alpha) / tests) * (1 - 1e-9) - 1e-9


def test_memory_of_rounds() -> None:
    accepted = [2, 2, 0, 1, 2, 0, 2]
    after_rejection, after_full = estimators.first_rates_by_memory(accepted, 2)
    # After 0, 1, 0 come 1, 2, 2; after 2, 2, 2 come 2, 0, 0.
    assert (after_rejection.value, after_rejection.n) == (1.0, 3)
    assert (after_full.value, after_full.n) == (pytest.approx(1 / 3), 3)


def test_pooled_and_mean() -> None:
    # T-25's requests: 256 tokens each at these lengths.
    tokens = np.array([256.0, 256.0])
    rounds_each = tokens / np.array([1.9375, 4.0951])
    assert estimators.pooled_length(tokens, rounds_each).value == pytest.approx(2.6304599, abs=5e-8)
    assert estimators.mean_of_lengths(tokens, rounds_each).value == pytest.approx(3.0163)


def test_pooled_error_against_the_jackknife() -> None:
    rng = np.random.default_rng(8)
    rounds_each = rng.integers(20, 60, 300).astype(float)
    tokens = rounds_each * rng.normal(3.0, 0.4, 300)
    found = estimators.pooled_length(tokens, rounds_each)
    left_out = (tokens.sum() - tokens) / (rounds_each.sum() - rounds_each)
    jackknife = math.sqrt(299 / 300 * ((left_out - left_out.mean()) ** 2).sum())
    assert found.standard_error == pytest.approx(jackknife, rel=0.02)


def test_ratio_error() -> None:
    # T-61: .1 % needs about 227 000 rounds.
    one = estimators.ratio_relative_error(3.3616, 2.57004544, 1.0, 0.0, 0.0)
    assert one == pytest.approx(0.4768967, abs=1e-7)
    assert (one / 0.001) ** 2 == pytest.approx(227_000, rel=3e-3)
    # Tokens and time that rise together make the ratio certain.
    assert estimators.ratio_relative_error(2.0, 1.0, 4.0, 4.0, 2.0) == pytest.approx(0.0)


def test_one_request_has_no_error() -> None:
    assert math.isnan(float(estimators.pooled_length([8.0], [4.0]).standard_error))
    assert math.isnan(float(estimators.mean_of_lengths([8.0], [4.0]).standard_error))


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: estimators.per_test_rate([3], 2), "accepts more than it drafts"),
        (lambda: estimators.per_test_rate([0, 0], 0), "no draft was tested"),
        (lambda: estimators.per_test_rate([], []), "no draft was tested"),
        (lambda: estimators.conditional_rates([0], 0), "no draft was tested"),
        (lambda: estimators.acceptance_length_censored([1], 2, 3), "k is 3"),
        (lambda: estimators.acceptance_length_censored([2, 0, 1], [2, 3, 1], 3), "k is 3"),
        (lambda: estimators.first_rates_by_memory([2, 2], 2), "after a rejection"),
        (lambda: estimators.pooled_length([1.0], [1.0, 2.0]), "one of each per request"),
        (lambda: estimators.mean_of_lengths([], []), "there is no request"),
        (
            lambda: estimators.ratio_relative_error(1.0, 0.0, 1.0, 0.0, 1.0),
            "covariance is beyond the variances",
        ),
    ],
)
def test_bad_input_is_told(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
