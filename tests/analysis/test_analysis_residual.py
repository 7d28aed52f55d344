"""Speculative sampling on explicit laws: lossless, and as often accepted as 1 - TV."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import residual
from psdsim.errors import InputError

MODERATE = settings(max_examples=80, deadline=None)
P = [0.5, 0.2, 0.2, 0.07, 0.03]
Q = [0.3, 0.4, 0.1, 0.1, 0.1]


@st.composite
def two_laws(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(2, 7))
    weights = st.lists(st.integers(0, 20), min_size=n, max_size=n).filter(any)
    p, q = (np.array(draw(weights), dtype=float) for _ in range(2))
    return p / p.sum(), q / q.sum()


def test_published_example() -> None:
    # T-1 and T-2.
    assert residual.acceptance_probability(P, Q) == pytest.approx(0.7, abs=1e-12)
    assert residual.total_variation(P, Q) == pytest.approx(0.3, abs=1e-12)
    assert residual.residual_law(P, Q) == pytest.approx([2 / 3, 0, 1 / 3, 0, 0], abs=1e-12)
    # T-4.
    assert residual.expected_rejections(np.full(100, 0.2)) == pytest.approx(20.0)


def test_sampled_output_is_the_target() -> None:
    # T-3: draw, test, replace; the residual law is the only part of the module used.
    rng, n = np.random.default_rng(4), 400_000
    drafts = rng.choice(5, n, p=Q)
    ratio = np.array(P) / np.array(Q)
    rejected = rng.random(n) >= ratio[drafts]
    tokens = drafts.copy()
    tokens[rejected] = rng.choice(5, int(rejected.sum()), p=residual.residual_law(P, Q))
    share = np.bincount(tokens, minlength=5) / n
    error = np.sqrt(np.array(P) * (1 - np.array(P)) / n)
    assert np.all(np.abs(share - P) < 4.5 * error)
    assert abs(rejected.mean() - 0.3) < 4.5 * np.sqrt(0.21 / n)
    # Replacing from p itself instead would be seen.
    wrong = drafts.copy()
    wrong[rejected] = rng.choice(5, int(rejected.sum()), p=P)
    assert np.any(np.abs(np.bincount(wrong, minlength=5) / n - P) > 9.0 * error)


@MODERATE
@given(two_laws())
def test_identities(laws: tuple[np.ndarray, np.ndarray]) -> None:
    p, q = laws
    beta, tv = residual.acceptance_probability(p, q), residual.total_variation(p, q)
    assert beta + tv == pytest.approx(1.0)
    assert residual.total_variation(q, p) == pytest.approx(float(tv))
    # TV is the greatest difference over events: take the one where p exceeds q.
    assert tv == pytest.approx(float((p - q)[p > q].sum()), abs=1e-12)
    token = residual.token_acceptance(p, q)
    assert np.all((token >= 0.0) & (token <= 1.0))
    assert q @ token == pytest.approx(float(beta))
    if tv > 1e-9:
        rest = residual.residual_law(p, q)
        assert rest.sum() == pytest.approx(1.0)
        assert np.all(rest[p <= q] == 0.0)
        assert residual.output_law(p, q) == pytest.approx(p, abs=1e-12)


def test_identity_in_exact_fractions() -> None:
    # Independent of floating point: the same rule with fractions gives p exactly.
    p, q = [Fraction(x, 10) for x in (5, 3, 2)], [Fraction(x, 10) for x in (2, 2, 6)]
    excess = [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
    law = [x / sum(excess) for x in excess]
    floats = [[float(x) for x in row] for row in (p, q)]
    assert residual.residual_law(*floats) == pytest.approx([float(x) for x in law])
    assert residual.token_acceptance(*floats) == pytest.approx([1.0, 1.0, 1 / 3])


def test_laws_broadcast_over_contexts() -> None:
    contexts = np.array([[0.5, 0.5], [0.9, 0.1], [0.1, 0.9]])
    assert residual.acceptance_probability(contexts, [0.5, 0.5]) == pytest.approx([1.0, 0.6, 0.6])
    assert residual.residual_law(contexts[1:], [0.5, 0.5]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@MODERATE
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_lossy_trade_off_is_linear(reject: float, tv: float) -> None:
    bias = residual.least_bias(reject, tv)
    assert bias == pytest.approx(max(tv - reject, 0.0))
    # Two tokens: accepting more often than min(1, p/q) biases by exactly the difference.
    p, q, extra = 0.3, 0.8, min(reject, 0.4)
    accept_first = p / q + extra
    rejected = q * (1 - accept_first)
    biased = q * accept_first
    assert residual.least_bias(rejected, q - p) == pytest.approx(abs(biased - p), abs=1e-12)


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: residual.total_variation([0.5, 0.4], [0.5, 0.5]), "p doesn't sum to 1"),
        (lambda: residual.total_variation([0.5, 0.5], [1.0]), "p has 2 tokens and q 1"),
        (lambda: residual.total_variation(1.0, [1.0]), "p doesn't sum to 1"),
        (lambda: residual.residual_law([1.5, -0.5], [0.5, 0.5]), "p is 1.5"),
        (lambda: residual.expected_rejections(0.2), "tv is a single number"),
    ],
)
def test_bad_input_is_told(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_equal_laws_have_no_residual() -> None:
    with pytest.raises(residual.NoRejectionError, match="p and q are equal"):
        residual.residual_law(P, P)
