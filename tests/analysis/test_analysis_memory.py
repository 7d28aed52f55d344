"""Finite outputs of rounds with memory, and means over Beta laws: enumeration and quadrature."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betaln

from analysis import finite, finite_memory, pearl, rounds, rounds_mixed
from analysis.beta_mean import beta_quadrature
from analysis.rounds_correlated import acceptance_length_markov, acceptance_length_markov_rounds
from psdsim.errors import InputError

RATE = st.floats(0.02, 0.98)


def walk(n: int, laws: tuple[list[float], list[float]], law: list[float]) -> float:
    """Mean rounds for n tokens along every path, `law` first; laws: after a rejection, after full.

    The slow recursion that the filters replace.
    """
    if n <= 0:
        return 0.0
    total = 1.0
    for accepted, chance in enumerate(law):
        follow = laws[accepted == len(law) - 1]
        total += chance * walk(n - accepted - 1, laws, follow)
    return total


@given(RATE, RATE, RATE, RATE, st.integers(1, 3), st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_rounds_of_a_chain_by_walking_every_path(
    slow: float, fast: float, first: float, later: float, k: int, n: int
) -> None:
    laws = [
        rounds.accepted_pmf_position([rate, *[later] * (k - 1)]).tolist()
        for rate in (slow, fast, first)
    ]
    found = finite_memory.expected_rounds_markov_rounds(n, *laws)
    assert found == pytest.approx(walk(n, (laws[0], laws[1]), laws[2]), rel=1e-10)
    default = finite_memory.expected_rounds_markov_rounds(n, laws[0], laws[1])
    assert default == pytest.approx(walk(n, (laws[0], laws[1]), laws[0]), rel=1e-10)


def serial_rounds(bits: tuple[int, ...], k: int, n: int) -> int:
    """Rounds for n tokens on one path of position bits, counted token by token."""
    at = count = 0
    while at < n:
        run = 0
        while run < k and bits[at + run]:
            run += 1
        at += run + 1
        count += 1
    return count


@pytest.mark.parametrize("a1, a0, k", [(0.9, 0.3, 2), (0.25, 0.75, 2), (0.5, 0.5, 3)])
def test_rounds_of_a_chain_over_positions_by_enumerating_all_texts(
    a1: float, a0: float, k: int
) -> None:
    n = 6
    stationary = a0 / (1 - a1 + a0)
    total = 0.0
    for bits in itertools.product((0, 1), repeat=n + k):
        chance = stationary if bits[0] else 1 - stationary
        for before, bit in itertools.pairwise(bits):
            rate = a1 if before else a0
            chance *= rate if bit else 1 - rate
        total += chance * serial_rounds(bits, k, n)
    found = finite_memory.expected_rounds_markov(n, a1, a0, k)
    assert found == pytest.approx(total, rel=1e-12)
    assert finite_memory.stationary_rate(a1, a0) == pytest.approx(stationary)


@given(RATE, st.integers(1, 9), st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_without_memory_both_are_the_renewal_value(alpha: float, k: int, n: int) -> None:
    pmf = rounds.tokens_pmf(rounds.accepted_pmf_iid(alpha, k))
    plain = finite.expected_rounds(n, pmf)
    assert finite_memory.expected_rounds_markov(n, alpha, alpha, k) == pytest.approx(plain)


@pytest.mark.parametrize("a1, a0", [(0.95, 0.3), (0.5, 0.9)])
def test_long_outputs_tend_to_the_stationary_chain(a1: float, a0: float) -> None:
    k, n = 4, 100_000
    per_round = n / finite_memory.expected_rounds_markov(n, a1, a0, k)
    assert per_round == pytest.approx(float(acceptance_length_markov(a1, a0, k)), rel=1e-4)
    steps = pearl.expected_steps(20_000, a1, k, a0, a0 / (1 - a1 + a0))
    assert 20_000 / steps == pytest.approx(float(pearl.tokens_per_step(a1, k, a0)), rel=1e-3)
    # T-22: rates 0.55 after a rejection, 0.85 after a full round, 0.8 later.
    laws = [rounds.accepted_pmf_position([rate, 0.8, 0.8, 0.8]) for rate in (0.55, 0.85)]
    per_round = n / finite_memory.expected_rounds_markov_rounds(n, *laws)
    assert per_round == pytest.approx(2.918242, rel=1e-4)
    assert float(acceptance_length_markov_rounds(0.55, 0.85, [0.8] * 3)) == pytest.approx(
        2.918242, abs=5e-7
    )


def test_an_absorbing_full_state_is_no_problem_for_a_finite_output() -> None:
    # Once in full rounds of two tokens, always: 1/2 of the first rounds, else again.
    found = finite_memory.expected_rounds_markov_rounds(1000, [0.0, 1.0], [0.0, 1.0])
    assert found == pytest.approx(500.0, rel=1e-12)


@pytest.mark.parametrize(
    "n, alpha, a0, first, k", [(5, 0.6, 0.2, 0.4, 2), (6, 0.3, 0.9, 0.5, 3), (4, 0.8, 0.1, 1.0, 3)]
)
def test_pearl_steps_with_memory_by_walking_every_path(
    n: int, alpha: float, a0: float, first: float, k: int
) -> None:
    def steps(left: int, post: bool, accept: float) -> float:
        if left <= 0:
            return 0.0
        if not post:
            return (
                1 + accept * steps(left - 1, True, a0) + (1 - accept) * steps(left - 1, False, a0)
            )
        total = 1 + alpha**k * steps(left - k, True, a0)
        return total + sum(
            (1 - alpha) * alpha**j * steps(left - j - 1, False, a0) for j in range(k)
        )

    found = pearl.expected_steps(n, alpha, k, a0, first)
    assert found == pytest.approx(steps(n, False, first), rel=1e-12)


@given(RATE, RATE, st.integers(1, 10))
@settings(max_examples=60, deadline=None)
def test_pearls_matrix_keeps_its_shares_and_its_drafts_add_up(
    alpha: float, a0: float, k: int
) -> None:
    matrix = pearl.transition_probabilities(alpha, k, a0)
    pre = float(pearl.pre_verify_share(alpha, k, a0))
    np.testing.assert_allclose(np.array([pre, 1 - pre]) @ matrix, [pre, 1 - pre], atol=1e-12)
    # Kept drafts: all tokens but the corrected ones, counted state by state.
    post = sum(j * (1 - alpha) * alpha**j for j in range(k)) + k * alpha**k
    kept = pre * a0 + (1 - pre) * post
    assert pearl.discarded_per_step(alpha, k, a0) == pytest.approx(k - kept, abs=1e-9)


def beta_mean_of_inverse(a: float, b: float, k: int) -> float:
    """E[1/E[N]] by adaptive quadrature on the two halves, singular ends as weights."""

    def smooth(x: float) -> float:
        return 1.0 / sum(x**j for j in range(k + 1))

    def left(x: float) -> float:
        return float(smooth(x) * (1 - x) ** (b - 1))

    def right(x: float) -> float:
        return float(smooth(x) * x ** (a - 1))

    low = quad(left, 0.0, 0.5, weight="alg", wvar=(a - 1, 0.0))[0]
    high = quad(right, 0.5, 1.0, weight="alg", wvar=(0.0, b - 1))[0]
    return float((low + high) / np.exp(betaln(a, b)))


@pytest.mark.parametrize("a, b, k", [(0.8, 0.2, 5), (0.3, 0.7, 8), (0.5, 0.5, 3), (4.0, 1.0, 5)])
def test_pooled_length_of_a_beta_law_by_adaptive_quadrature(a: float, b: float, k: int) -> None:
    # a + b = 1 is where the recurrence has a removable 0/0.
    found = rounds_mixed.pooled_acceptance_length_beta(a, b, k)
    assert found == pytest.approx(1.0 / beta_mean_of_inverse(a, b, k), rel=1e-9)


@pytest.mark.parametrize("a, b", [(1e5, 1e4), (1e9, 1e9), (3e4, 7.0)])
def test_narrow_beta_laws_tend_to_one_rate(a: float, b: float) -> None:
    mean = a / (a + b)
    found = rounds_mixed.pooled_acceptance_length_beta(a, b, 4)
    assert found == pytest.approx(float(rounds.acceptance_length_iid(mean, 4)), rel=5e-4)


@given(st.floats(0.05, 50.0), st.floats(0.05, 50.0), st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_beta_quadrature_has_the_moments_of_the_law(a: float, b: float, power: int) -> None:
    nodes, weights = beta_quadrature(a, b, 12)
    moment = np.prod([(a + i) / (a + b + i) for i in range(power)])
    assert float(weights @ nodes**power) == pytest.approx(moment, rel=1e-10)


def test_rounds_under_a_beta_law_are_the_exact_polynomial_mean() -> None:
    # n = 3, k = 2: E[R | x] as a polynomial in x by hand. P(N = 1, 2, 3) = 1-x, x(1-x), x^2, and
    # E[R_1] = 1, E[R_2] = 1 + (1-x), E[R_3] = 1 + (1-x) E[R_2] + x(1-x) E[R_1] = 3 - 2x.
    for a, b in ((Fraction(2), Fraction(1)), (Fraction(1, 2), Fraction(1, 2))):
        wanted = 3 - 2 * a / (a + b)
        found = finite_memory.expected_rounds_beta(3, float(a), float(b), 2)
        assert found == pytest.approx(float(wanted), rel=1e-12)


@pytest.mark.parametrize("a, b, k", [(4.0, 1.0, 5), (0.6, 0.4, 3)])
def test_long_outputs_under_a_beta_law_pool(a: float, b: float, k: int) -> None:
    n = 20_000
    per_round = n / finite_memory.expected_rounds_beta(n, a, b, k)
    pooled = rounds_mixed.pooled_acceptance_length_beta(a, b, k)
    assert per_round == pytest.approx(pooled, rel=5e-4)
    assert pooled < float(rounds_mixed.acceptance_length_beta(a, b, k))


def test_wrong_inputs_are_named() -> None:
    with pytest.raises(InputError, match="different lengths"):
        finite_memory.expected_rounds_markov_rounds(3, [0.5, 0.5], [1.0])
    with pytest.raises(InputError, match="sums to"):
        finite_memory.expected_rounds_markov_rounds(3, [0.5, 0.4], [0.5, 0.5])
    with pytest.raises(InputError, match="mixing"):
        finite_memory.stationary_rate(1.0, 0.0)
    with pytest.raises(InputError, match="b is 0"):
        beta_quadrature(1.0, 0.0, 8)
    with pytest.raises(InputError, match="n_nodes is 1"):
        beta_quadrature(1.0, 1.0, 1)
    with pytest.raises(InputError, match="alpha_at_start"):
        pearl.expected_steps(3, 0.5, 2, 0.5, 1.5)
