"""Round laws against hand-computed numbers, enumeration and the chains they come from."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import beta as beta_function

from analysis import rounds, rounds_correlated, rounds_mixed, rounds_rates
from psdsim.acceptance import BetaAcceptance, MarkovAcceptance, MarkovRoundsAcceptance
from psdsim.errors import InputError

MODERATE = settings(max_examples=60, deadline=None)
ALPHA = st.floats(0.0, 1.0)
INNER = st.floats(0.01, 0.99)
K = st.integers(0, 12)


@pytest.mark.parametrize(
    "alpha,k,mean,variance",
    [
        (0.8, 4, 3.3616, 2.57004544),
        (0.7, 5, 2.94117, 3.310189),
        (0.6, 3, 2.176, 1.377024),
        (0.9, 8, 6.1257951, 9.1290533),
    ],
)
def test_published_iid_moments(alpha: float, k: int, mean: float, variance: float) -> None:
    # T-5 to T-8.
    assert rounds.acceptance_length_iid(alpha, k) == pytest.approx(mean, abs=6e-8)
    assert rounds.accepted_variance_iid(alpha, k) == pytest.approx(variance, abs=6e-7)


def test_published_iid_lengths() -> None:
    # T-9 (Leviathan's Table 1 prints 3.69 and 6.86) and T-18.
    assert rounds.acceptance_length_iid(0.8, 5) == pytest.approx(3.68928, abs=1e-9)
    assert rounds.acceptance_length_iid(0.9, 10) == pytest.approx(6.861894, abs=5e-7)
    assert rounds.acceptance_length_iid(0.75, 7) == pytest.approx(3.5995483, abs=5e-8)


def test_published_position_moments() -> None:
    # T-20, T-21 and T-72.
    first = [0.9, 0.8, 0.7, 0.6]
    second = [0.667, 0.646, 0.636, 0.659, 0.629]
    assert rounds.acceptance_length_position(first) == pytest.approx(3.4264, abs=1e-12)
    assert rounds.accepted_variance_position(first) == pytest.approx(1.809383, abs=5e-7)
    assert rounds.acceptance_length_position(second) == pytest.approx(2.6661089, abs=5e-8)
    assert rounds.accepted_variance_position(second) == pytest.approx(2.8404196, abs=5e-8)
    eagle = [[0.74, 0.69, 0.67, 0.67, 0.66], [0.75, 0.69, 0.65, 0.64, 0.64]]
    assert rounds.acceptance_length_position(eagle) == pytest.approx(
        [2.9731878, 2.9569342], abs=5e-8
    )


def test_published_correlated_numbers() -> None:
    # T-22 to T-26.
    later = [0.8, 0.8, 0.8]
    assert rounds_correlated.full_round_share(0.55, 0.85, later) == pytest.approx(
        0.33270321, abs=5e-9
    )
    assert rounds_correlated.acceptance_length_markov_rounds(0.55, 0.85, later) == pytest.approx(
        2.918242, abs=5e-7
    )
    assert rounds_mixed.acceptance_length_beta(4.0, 1.0, 5) == pytest.approx(3.9825397, abs=5e-8)
    assert rounds_mixed.acceptance_length_beta(0.8, 0.2, 5) == pytest.approx(4.443264, abs=1e-9)
    lengths = rounds.acceptance_length_iid([0.5, 0.9], 4)
    assert lengths == pytest.approx([1.9375, 4.0951], abs=1e-12)
    assert rounds_mixed.pooled_acceptance_length(lengths) == pytest.approx(2.6304599, abs=5e-8)
    assert rounds_mixed.mean_of_acceptance_lengths(lengths) == pytest.approx(3.0163, abs=1e-12)
    assert rounds.batch_min_length_iid(0.8, 4, [2, 4, 8]) == pytest.approx(
        [2.4795162, 1.6742391, 1.2014343], abs=5e-8
    )


def test_published_rates_table() -> None:
    # Theory note 1.5 and T-19, at alpha = 0.8, k = 4.
    assert rounds_rates.per_test_rate_iid(0.8) == 0.8
    assert rounds_rates.acceptance_rate_iid(0.8, 4) == pytest.approx(0.5904, abs=1e-12)
    assert rounds_rates.mean_match_iid(0.8) == pytest.approx(4.0)
    assert rounds_rates.mean_match_with_corrected_iid(0.8) == pytest.approx(5.0)
    assert rounds_rates.dsi_rate(4.0) == pytest.approx(0.8)
    wasted = rounds.wasted_drafts_iid(0.8, 4)
    assert wasted == pytest.approx(1.6384, abs=1e-12)
    assert wasted / rounds.acceptance_length_iid(0.8, 4) == pytest.approx(0.48739, abs=5e-6)


def enumerate_pmf(rates: list[float]) -> list[float]:
    """Sum the probability of every outcome of k tests, of which the first miss counts."""
    k = len(rates)
    out = [0.0] * (k + 1)
    for bits in itertools.product([0, 1], repeat=k):
        weight = np.prod([p if bit else 1.0 - p for p, bit in zip(rates, bits, strict=True)])
        out[next((i for i, bit in enumerate(bits) if not bit), k)] += float(weight)
    return out


@MODERATE
@given(st.lists(ALPHA, min_size=1, max_size=7))
def test_position_law_is_the_enumeration(rates: list[float]) -> None:
    brute = np.array(enumerate_pmf(rates))
    j = np.arange(brute.size)
    pmf = rounds.accepted_pmf_position(rates)
    assert pmf == pytest.approx(brute, abs=1e-12)
    assert rounds.acceptance_length_position(rates) == pytest.approx(1.0 + brute @ j)
    variance = brute @ j**2 - (brute @ j) ** 2
    assert rounds.accepted_variance_position(rates) == pytest.approx(variance, abs=1e-10)
    assert rounds.pmf_variance(pmf) == pytest.approx(variance, abs=1e-10)


@MODERATE
@given(ALPHA, K, st.floats(0.0, 1.0))
def test_iid_forms_agree(alpha: float, k: int, z: float) -> None:
    pmf = rounds.accepted_pmf_iid(alpha, k)
    assert pmf.sum() == pytest.approx(1.0)
    assert 1.0 + rounds.pmf_mean(pmf) == pytest.approx(
        float(rounds.acceptance_length_iid(alpha, k))
    )
    assert rounds.pmf_variance(pmf) == pytest.approx(
        float(rounds.accepted_variance_iid(alpha, k)), abs=1e-9
    )
    assert rounds.accepted_pgf_iid(z, alpha, k) == pytest.approx(
        float(rounds.accepted_pgf(z, pmf)), abs=1e-12
    )


@MODERATE
@given(INNER, K)
def test_iid_variance_is_the_printed_closed_form(a: float, k: int) -> None:
    printed = (a - (2 * k + 1) * (1 - a) * a ** (k + 1) - a ** (2 * k + 2)) / (1 - a) ** 2
    assert rounds.accepted_variance_iid(a, k) == pytest.approx(printed, rel=1e-7, abs=1e-9)


def test_limits() -> None:
    assert rounds.acceptance_length_iid([0.0, 1.0], 5).tolist() == [1.0, 6.0]
    assert rounds.acceptance_length_iid(0.3, 0) == 1.0
    assert rounds.acceptance_length_iid(0.8, 10_000) == pytest.approx(5.0)
    assert rounds.acceptance_length_iid(1.0 - 1e-12, 7) == pytest.approx(8.0, rel=1e-10)


@MODERATE
@given(st.floats(0.1, 0.99), st.integers(1, 12))
def test_length_rises_with_alpha_and_k(alpha: float, k: int) -> None:
    here = rounds.acceptance_length_iid(alpha, k)
    assert rounds.acceptance_length_iid(alpha + 0.005, k) > here
    assert rounds.acceptance_length_iid(alpha, k + 1) > here


def chain_matrix(r: float, f: float, later: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the transition matrix over (L of this round) and its stationary law."""
    slow = enumerate_pmf([r, *later])
    fast = enumerate_pmf([f, *later])
    k = len(slow) - 1
    matrix = np.array([fast if j == k else slow for j in range(k + 1)])
    law = np.linalg.lstsq(
        np.vstack([matrix.T - np.eye(k + 1), np.ones(k + 1)]), [0.0] * (k + 1) + [1.0], rcond=None
    )[0]
    return matrix, law


@MODERATE
@given(INNER, INNER, st.lists(INNER, max_size=4))
def test_chain_of_rounds_against_its_matrix(r: float, f: float, later: list[float]) -> None:
    matrix, law = chain_matrix(r, f, later)
    j = np.arange(law.size)
    mean = law @ j
    assert rounds_correlated.accepted_pmf_markov_rounds(r, f, later) == pytest.approx(law, abs=1e-9)
    assert rounds_correlated.acceptance_length_markov_rounds(r, f, later) == pytest.approx(1 + mean)
    variance = law @ (j - mean) ** 2
    assert rounds_correlated.accepted_variance_markov_rounds(r, f, later) == pytest.approx(
        variance, abs=1e-9
    )
    lags, total, power = [], variance, np.eye(law.size)
    for _ in range(4000):
        power = power @ matrix
        lags.append(float((law * (j - mean)) @ power @ (j - mean)))
        total += 2.0 * lags[-1]
        if abs(lags[-1]) < 1e-13:
            break
    found = rounds_correlated.lag_covariance_markov_rounds(r, f, later, [1, 2, 3])
    expected = [*lags, 0.0, 0.0][:3]
    assert found == pytest.approx(expected, abs=1e-9)
    assert rounds_correlated.long_run_variance_markov_rounds(r, f, later) == pytest.approx(
        total, abs=1e-6
    )


@MODERATE
@given(INNER, INNER, st.integers(1, 6))
def test_markov_over_positions_against_the_parameter_object(a1: float, a0: float, k: int) -> None:
    model = MarkovAcceptance(after_accept=a1, after_reject=a0)
    pmf = rounds_correlated.accepted_pmf_markov(a1, a0, k)
    assert pmf == pytest.approx(model.pmf(k), abs=1e-12)
    assert rounds_correlated.acceptance_length_markov(a1, a0, k) == pytest.approx(
        model.acceptance_length(k)
    )
    assert rounds_correlated.accepted_variance_markov(a1, a0, k) == pytest.approx(
        model.var_accepted(k)
    )


def test_markov_over_positions_against_the_walk() -> None:
    # Follow the bits themselves: a state is (bit before the round), moved by one serial round.
    a1, a0, k = 0.9, 0.35, 3

    def after(bit: int) -> float:
        return a1 if bit else a0

    move, mean = np.zeros((2, 2)), np.zeros(2)
    for before in (0, 1):
        for bits in itertools.product([0, 1], repeat=k + 1):  # the last one is the bonus position
            weight, last = 1.0, before
            for bit in bits:
                weight *= after(last) if bit else 1.0 - after(last)
                last = bit
            miss = next((i for i, bit in enumerate(bits[:k]) if not bit), k)
            move[before, bits[k] if miss == k else 0] += weight
            mean[before] += weight * (miss + 1)
    one = move[0, 1] / (move[0, 1] + move[1, 0])
    assert rounds_correlated.acceptance_length_markov(a1, a0, k) == pytest.approx(
        (1 - one) * mean[0] + one * mean[1], rel=1e-12
    )


def test_markov_rounds_against_the_parameter_object() -> None:
    model = MarkovRoundsAcceptance(after_full=(0.85, 0.8, 0.8), otherwise=(0.55, 0.8, 0.8))
    pmf = rounds_correlated.accepted_pmf_markov_rounds(0.55, 0.85, [0.8, 0.8])
    assert pmf == pytest.approx(model.pmf(3), abs=1e-12)


def test_a_chain_that_never_leaves_a_state_is_named() -> None:
    with pytest.raises(rounds_correlated.NotMixingError, match="leaves both states"):
        rounds_correlated.acceptance_length_markov_rounds(0.0, 1.0, [1.0])
    with pytest.raises(rounds_correlated.NotMixingError):
        rounds_correlated.acceptance_length_markov(1.0, 0.0, 3)
    with pytest.raises(rounds_correlated.NotMixingError, match="alternate"):
        rounds_correlated.long_run_variance_markov_rounds(1.0, 0.0, [1.0])


@MODERATE
@given(st.floats(0.3, 30.0), st.floats(0.3, 30.0), st.integers(1, 8))
def test_beta_rounds_against_quadrature(a: float, b: float, k: int) -> None:
    # E over alpha of the i.i.d. law, by another route: algebraic-weight quadrature.
    norm = beta_function(a, b)

    def mixed(g: object) -> float:
        return quad(g, 0.0, 1.0, weight="alg", wvar=(a - 1.0, b - 1.0))[0] / norm

    pmf = [mixed(lambda x, j=j: (1.0 - x) * x**j if j < k else x**k) for j in range(k + 1)]
    assert rounds_mixed.accepted_pmf_beta(a, b, k) == pytest.approx(pmf, abs=1e-7)
    pooled = 1.0 / mixed(lambda x: 1.0 / sum(x**j for j in range(k + 1)))
    assert rounds_mixed.pooled_acceptance_length_beta(a, b, k) == pytest.approx(pooled, rel=1e-7)
    j = np.arange(k + 1)
    assert rounds_mixed.accepted_variance_beta(a, b, k) == pytest.approx(
        np.dot(pmf, j**2) - np.dot(pmf, j) ** 2, abs=1e-5
    )


@MODERATE
@given(st.floats(0.05, 50.0), st.floats(0.05, 50.0), st.integers(1, 16))
def test_beta_orders_pooled_iid_and_mean(a: float, b: float, k: int) -> None:
    mean = float(rounds_mixed.acceptance_length_beta(a, b, k))
    pooled = rounds_mixed.pooled_acceptance_length_beta(a, b, k)
    iid = float(rounds.acceptance_length_iid(a / (a + b), k))
    assert pooled <= mean * (1 + 1e-12)
    assert iid <= mean * (1 + 1e-12)
    assert pooled == pytest.approx(BetaAcceptance(a=a, b=b).pooled_acceptance_length(k), rel=1e-8)


@MODERATE
@given(st.lists(st.tuples(st.floats(1.0, 9.0), st.integers(1, 500)), min_size=1, max_size=8))
def test_pooled_is_tokens_over_rounds(requests: list[tuple[float, int]]) -> None:
    lengths = np.array([length for length, _ in requests])
    tokens = np.array([float(n) for _, n in requests])
    pooled = rounds_mixed.pooled_acceptance_length(lengths, tokens)
    assert pooled == pytest.approx(tokens.sum() / (tokens / lengths).sum())
    assert rounds_mixed.pooled_acceptance_length(
        lengths
    ) <= rounds_mixed.mean_of_acceptance_lengths(lengths) * (1 + 1e-12)


@MODERATE
@given(ALPHA, st.integers(1, 40))
def test_rates_convert_back(alpha: float, k: int) -> None:
    length = rounds.acceptance_length_iid(alpha, k)
    assert rounds_rates.alpha_from_acceptance_length(length, k) == pytest.approx(alpha, abs=1e-9)
    rate = rounds_rates.acceptance_rate_iid(alpha, k)
    assert rounds_rates.alpha_from_acceptance_rate(rate, k) == pytest.approx(alpha, abs=1e-9)
    run = rounds_rates.mean_match_iid(alpha)
    assert rounds_rates.alpha_from_mean_match(run) == pytest.approx(alpha)
    corrected = rounds_rates.mean_match_with_corrected_iid(alpha)
    assert rounds_rates.alpha_from_mean_match_with_corrected(corrected) == pytest.approx(alpha)


def test_batch_minimum_against_the_product_of_laws() -> None:
    pmf = rounds.accepted_pmf_iid(0.7, 3)
    brute = sum(
        pmf[i] * pmf[j] * pmf[m] * (1 + min(i, j, m))
        for i, j, m in itertools.product(range(4), repeat=3)
    )
    assert rounds.batch_min_length_iid(0.7, 3, 3) == pytest.approx(float(brute))


def test_functions_broadcast() -> None:
    alpha, k = np.linspace(0, 1, 5)[:, None], np.arange(1, 4)
    assert rounds.acceptance_length_iid(alpha, k).shape == (5, 3)
    assert rounds.accepted_variance_iid(alpha, k).shape == (5, 3)
    assert rounds_correlated.acceptance_length_markov(alpha, 0.5, k).shape == (5, 3)
    assert rounds_rates.alpha_from_acceptance_rate(alpha, k).shape == (5, 3)
    assert rounds_mixed.accepted_pmf_beta([1.0, 2.0], 3.0, 4).shape == (2, 5)


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: rounds.acceptance_length_iid(1.2, 3), "alpha is 1.2"),
        (lambda: rounds.acceptance_length_iid(float("nan"), 3), "alpha is not finite"),
        (lambda: rounds.acceptance_length_iid(True, 3), "alpha is True"),
        (lambda: rounds.acceptance_length_iid(0.5, 2.5), "k is 2.5"),
        (lambda: rounds.accepted_pmf_position(0.5), "rates is a single number"),
        (lambda: rounds_mixed.acceptance_length_beta(0.0, 1.0, 3), "a is 0"),
        (lambda: rounds_mixed.pooled_acceptance_length([1.0], [1.0, 2.0]), "n_tokens has shape"),
        (lambda: rounds_rates.alpha_from_acceptance_length(9.0, 3), "length is outside"),
        (lambda: rounds_correlated.full_round_share(0.5, 0.5, 0.5), "later is a single number"),
        (lambda: rounds.accepted_pgf(1.0, [0.5, 0.6]), "accepted_pmf sums to 1.1"),
    ],
)
def test_bad_input_is_told(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
