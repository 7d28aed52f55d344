"""Conversions between acceptance figures: worked numbers, round trips, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psdsim.acceptance import (
    MatConvention,
    acceptance_length_from_alpha,
    acceptance_length_from_unconditional,
    acceptance_rate_from_alpha,
    alpha_from_acceptance_length,
    alpha_from_acceptance_rate,
    alpha_from_histogram,
    alpha_from_mat,
    conditional_from_unconditional,
    length_with_bonus,
    length_without_bonus,
    mat_from_alpha,
    unconditional_from_conditional,
    unconditional_from_histogram,
)
from psdsim.errors import InputError

ALPHA = st.floats(0.0, 1.0)
K = st.integers(1, 64)


def wrong(value: Any) -> Any:
    """Pass a value of the wrong type by the type checker."""
    return value


def test_the_four_acceptance_rates_in_circulation() -> None:  # theory notes 1.5, at (.8, 4)
    assert acceptance_rate_from_alpha(0.8, 4) == pytest.approx(0.5904, abs=1e-12)
    assert acceptance_length_from_alpha(0.8, 4) == pytest.approx(3.3616, abs=1e-12)
    assert mat_from_alpha(0.8, "without_corrected") == pytest.approx(4.0)
    assert mat_from_alpha(0.8, "with_corrected") == pytest.approx(5.0)
    # 2.3 of the notes: alpha matched to tau at k = 5, measured on four trace sets.
    for tau, alpha in [(2.6655, 0.6543), (2.6254, 0.6471), (2.4784, 0.6193), (2.5778, 0.6383)]:
        assert alpha_from_acceptance_length(tau, 5) == pytest.approx(alpha, abs=1e-4)


@given(ALPHA, K)
def test_length_and_rate_round_trips(alpha: float, k: int) -> None:
    length = acceptance_length_from_alpha(alpha, k)
    assert 1.0 <= length <= k + 1.0
    # Slope >= 1, so the root is as sharp as the length: a few roundings of a number up to k + 1.
    assert alpha_from_acceptance_length(length, k) == pytest.approx(alpha, abs=1e-13 * (k + 1))
    rate = acceptance_rate_from_alpha(alpha, k)
    assert alpha_from_acceptance_rate(rate, k) == pytest.approx(alpha, abs=1e-13 * (k + 1))
    assert length_with_bonus(rate * k) == pytest.approx(length)
    assert length_without_bonus(length) == pytest.approx(length - 1.0)


@given(st.floats(0.0, 0.999))
def test_mat_round_trip(alpha: float) -> None:
    conventions: tuple[MatConvention, ...] = ("without_corrected", "with_corrected")
    for convention in conventions:
        mat = mat_from_alpha(alpha, convention)
        assert alpha_from_mat(mat, convention) == pytest.approx(alpha, abs=1e-12)


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=16))
def test_conditional_unconditional_round_trip(rates: list[float]) -> None:
    joint = unconditional_from_conditional(rates)
    for i in range(len(rates)):
        assert joint[i] == pytest.approx(math.prod(rates[: i + 1]), rel=1e-12)
    np.testing.assert_allclose(conditional_from_unconditional(joint), rates, rtol=1e-12)
    assert acceptance_length_from_unconditional(joint) == pytest.approx(1.0 + math.fsum(joint))


@given(st.lists(st.integers(0, 50), min_size=2, max_size=8).filter(any))
def test_histogram_figures_equal_a_count_over_single_rounds(counts: list[int]) -> None:
    rounds = [j for j, n in enumerate(counts) for _ in range(n)]
    k = len(counts) - 1
    expected = [sum(r >= i for r in rounds) / len(rounds) for i in range(1, k + 1)]
    np.testing.assert_allclose(unconditional_from_histogram(counts), expected, rtol=1e-14)
    accepted, rejections = sum(rounds), sum(r < k for r in rounds)
    assert alpha_from_histogram(counts) == pytest.approx(accepted / (accepted + rejections))


def test_behind_a_rate_of_zero_nothing_is_reached() -> None:
    assert conditional_from_unconditional([0.5, 0.0, 0.0]).tolist() == [0.5, 0.0, 0.0]
    assert conditional_from_unconditional([]).tolist() == []


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: acceptance_length_from_alpha(1.7, 4), "alpha is 1.7; expected a number of at"),
        (lambda: acceptance_length_from_alpha(math.nan, 4), "alpha is nan"),
        (lambda: acceptance_length_from_alpha(True, 4), "alpha is True"),
        (lambda: acceptance_length_from_alpha(wrong("0.8"), 4), "alpha is '0.8'"),
        (lambda: acceptance_length_from_alpha(0.8, -1), "draft length k is -1"),
        (lambda: acceptance_length_from_alpha(0.8, wrong(2.0)), "draft length k is 2.0"),
        (lambda: acceptance_length_from_alpha(0.8, True), "draft length k is True"),
        (lambda: alpha_from_acceptance_length(0.9, 4), "at least 1 and at most 5"),
        (lambda: alpha_from_acceptance_length(5.1, 4), "at least 1 and at most 5"),
        (lambda: alpha_from_acceptance_length(1.0, 0), "a whole number of at least 1"),
        (lambda: alpha_from_acceptance_rate(59.04, 4), "acceptance rate is 59.04"),
        (lambda: length_without_bonus(0.5), "acceptance length is 0.5"),
        (lambda: length_with_bonus(-0.1), "accepted drafts per round is -0.1"),
        (lambda: alpha_from_mat(0.5, "with_corrected"), "MAT with the corrected token is 0.5"),
        (lambda: alpha_from_mat(-0.5, "without_corrected"), "MAT without the corrected"),
        (lambda: alpha_from_mat(2.0, wrong("corrected")), "convention is 'corrected'"),
        (lambda: mat_from_alpha(1.0, "with_corrected"), "no run ever ends"),
        (lambda: conditional_from_unconditional([0.5, 0.6]), "0.6 at position 1 exceeds 0.5"),
        (lambda: acceptance_length_from_unconditional([0.5, 0.6]), "non-increasing"),
        (lambda: unconditional_from_conditional([0.5, 1.2]), "each between 0 and 1"),
        (lambda: unconditional_from_conditional([0.5, math.nan]), "each between 0 and 1"),
        (lambda: unconditional_from_conditional([True, False]), "not a flat list"),
        (lambda: unconditional_from_conditional([[0.5], [0.6]]), "not a flat list"),
        (lambda: unconditional_from_conditional([[0.5], [0.6, 0.7]]), "not a flat list"),
        (lambda: unconditional_from_conditional(["a"]), "not a flat list"),
        (lambda: unconditional_from_histogram([0, 0]), "not all 0"),
        (lambda: unconditional_from_histogram([1, -1]), "whole counts of at least 0"),
        (lambda: unconditional_from_histogram([1.5, 2.0]), "whole counts of at least 0"),
        (lambda: unconditional_from_histogram([]), "whole counts of at least 0"),
        (lambda: unconditional_from_histogram([[1, 2], [3, 4]]), "whole counts of at least 0"),
        (lambda: unconditional_from_histogram(wrong([[1], [2, 3]])), "whole counts of at least 0"),
        (lambda: unconditional_from_histogram(wrong([True, False])), "whole counts of at least 0"),
        (lambda: unconditional_from_histogram([2**62] * 4), "4611686018427387904"),
        (lambda: alpha_from_histogram([3]), "whole number of at least 1"),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]


def test_numpy_whole_numbers_are_draft_lengths() -> None:
    assert acceptance_length_from_alpha(0.5, wrong(np.int64(2))) == 1.75
