"""PEARL's chain against brute enumeration and its published ablations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import pearl, pipespec, specbranch
from analysis.rounds import acceptance_length_iid
from psdsim.errors import InputError

ALPHA = st.floats(0.01, 0.99)
K = st.integers(1, 12)


def stationary_tokens(matrix: np.ndarray, tokens: np.ndarray) -> float:
    """Return the long-run tokens per step of a chain, by solving its balance equations."""
    n = len(matrix)
    system = np.vstack([matrix.T - np.eye(n), np.ones(n)])
    share = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]
    return float(share @ tokens)


@pytest.mark.parametrize(
    "alpha, k, full, no_post, no_pre",
    [
        (0.5, 3, 1.2727, 1.2500, 0.9655),
        (0.8, 5, 2.2832, 2.0496, 2.0921),
        (0.9, 5, 3.1272, 2.4661, 3.0324),
        (0.96, 5, 4.0325, 2.7709, 4.0066),
    ],
)
def test_reference_values_of_the_variants(
    alpha: float, k: int, full: float, no_post: float, no_pre: float
) -> None:
    assert pearl.tokens_per_step(alpha, k) == pytest.approx(full, abs=5e-5)
    assert pearl.tokens_per_step_no_post_verify(alpha, k) == pytest.approx(no_post, abs=5e-5)
    assert pearl.tokens_per_step_no_pre_verify(alpha, k) == pytest.approx(no_pre, abs=5e-5)


@given(ALPHA, ALPHA, K)
@settings(max_examples=100, deadline=None)
def test_rates_solve_the_chains_balance_equations(a: float, a0: float, k: int) -> None:
    # States: pre-verify, post-verify. Tokens of a post step: those before the first rejection,
    # plus the corrected one, or the whole block.
    post = sum(a**j * (1 - a) * (j + 1) for j in range(k)) + a**k * k
    chain = np.array([[1 - a0, a0], [1 - a**k, a**k]])
    assert pearl.tokens_per_step(a, k, a0) == pytest.approx(
        stationary_tokens(chain, np.array([1.0, post])), rel=1e-9
    )
    # Without post-verify: from the second state always back.
    bonus = sum(a**j for j in range(k))
    chain = np.array([[1 - a, a], [1.0, 0.0]])
    assert pearl.tokens_per_step_no_post_verify(a, k) == pytest.approx(
        stationary_tokens(chain, np.array([1.0, bonus])), rel=1e-9
    )
    # Without pre-verify: draft only, first test of k + 1 rows, later tests of k rows.
    first = sum(a**j * (1 - a) * (j + 1) for j in range(k + 1)) + a ** (k + 1) * (k + 1)
    chain = np.array(
        [[0.0, 1.0, 0.0], [1 - a ** (k + 1), 0.0, a ** (k + 1)], [1 - a**k, 0.0, a**k]]
    )
    assert pearl.tokens_per_step_no_pre_verify(a, k) == pytest.approx(
        stationary_tokens(chain, np.array([0.0, first, post])), rel=1e-9
    )


@given(ALPHA, K)
@settings(max_examples=100, deadline=None)
def test_floor_cap_and_order_of_the_variants(alpha: float, k: int) -> None:
    rate = float(pearl.tokens_per_step(alpha, k))
    assert 1.0 - 1e-12 <= rate <= k
    assert rate <= float(acceptance_length_iid(alpha, k))
    assert float(pearl.tokens_per_step_no_pre_verify(alpha, k)) < rate
    assert float(pearl.tokens_per_step_no_post_verify(alpha, k)) <= rate * (1 + 1e-12)
    # Accepted and corrected tokens add up: drafted k = kept + discarded.
    assert pearl.discarded_per_step(alpha, k) == pytest.approx(k - alpha * rate)
    # PipeSpec is the same chain with one more.
    assert pipespec.tokens_per_step(alpha, k - 1) == pytest.approx(rate, rel=1e-12)


def test_limits() -> None:
    assert pearl.tokens_per_step([0.0, 1.0], 6).tolist() == [1.0, 6.0]
    assert pearl.tokens_per_step(0.3, 1) == pytest.approx(1.0)  # k = 1 is plain decoding
    assert pearl.tokens_per_step_no_pre_verify([0.0, 1.0], 6).tolist() == [0.5, 6.0]
    assert pearl.tokens_per_step_no_post_verify([0.0, 1.0], 6).tolist() == [1.0, 3.5]
    # Cap 1/c as acceptance goes to 1, whatever k.
    assert pearl.speedup(1.0, [4, 8, 16], 0.25).tolist() == [4.0, 4.0, 4.0]


@given(ALPHA, st.floats(0.05, 0.9), st.floats(0.0, 1.0))
@settings(max_examples=200, deadline=None)
def test_best_k_is_that_of_a_search_over_all_k(alpha: float, cost: float, sync: float) -> None:
    k = np.arange(1, 65)
    rates = np.array([(1 - alpha**n) / ((1 - alpha) * (1 + alpha - alpha**n)) for n in k]) / (
        np.maximum(k * cost, 1.0) + sync
    )
    found = int(pearl.best_k(alpha, cost, sync))
    assert rates[found - 1] >= rates.max() * (1 - 1e-10)
    without = int(pearl.best_k(alpha, cost))
    assert without in {np.floor(1 / cost), np.ceil(1 / cost)}
    assert found >= without - 1  # a sync cost does not shorten, but for rounding


def test_best_k_is_not_always_the_nearest_to_the_speed_ratio() -> None:
    assert pearl.best_k(0.964, 1 / 5.36) == 6
    assert pearl.best_k(0.95, 0.1, 5.0) > pearl.best_k(0.95, 0.1)


def test_finite_outputs_tend_to_the_steady_rate() -> None:
    n = 4000
    for alpha, k in ((0.5, 3), (0.8, 5)):
        steps = pearl.expected_steps(n, alpha, k)
        assert n / steps == pytest.approx(float(pearl.tokens_per_step(alpha, k)), rel=2e-3)


@pytest.mark.parametrize("n, alpha, k", [(1, 0.6, 3), (4, 0.6, 2), (5, 0.3, 3)])
def test_expected_steps_by_walking_every_path(n: int, alpha: float, k: int) -> None:
    def walk(left: int, post: bool) -> float:
        if left <= 0:
            return 0.0
        if not post:
            return 1 + alpha * walk(left - 1, True) + (1 - alpha) * walk(left - 1, False)
        total = 1 + alpha**k * walk(left - k, True)
        return total + sum((1 - alpha) * alpha**j * walk(left - j - 1, False) for j in range(k))

    assert pearl.expected_steps(n, alpha, k) == pytest.approx(walk(n, False), rel=1e-12)


def test_chains_of_other_papers_t53_t54() -> None:
    for alpha, k, wanted in ((0.8, 4, 2.2831993), (0.5, 2, 1.2727273), (0.9, 4, 3.1272003)):
        assert pipespec.tokens_per_step(alpha, k) == pytest.approx(wanted, abs=5e-8)
    printed = float(specbranch.printed_speedup(0.8, 5, 5.0).value)
    assert printed == pytest.approx(1.785252, abs=5e-7)
    assert printed / float(pearl.speedup(0.8, 5, 0.2)) == pytest.approx(0.78, abs=0.005)
    # Its ideal: c tokens' time for k tokens, at most min(k, c) times plain decoding.
    assert specbranch.ideal_speedup([3, 5, 9], 5.0).value.tolist() == [3.0, 5.0, 5.0]


def test_wrong_inputs_are_named() -> None:
    with pytest.raises(InputError, match="k is 0"):
        pearl.tokens_per_step(0.5, 0)
    with pytest.raises(InputError, match="alpha"):
        pearl.best_k(1.5, 0.1)
    with pytest.raises(InputError, match="sync_ratio"):
        pearl.speedup(0.5, 2, 0.1, -1.0)
