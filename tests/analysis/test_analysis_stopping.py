"""Adaptive stopping: exact round law, optimality against all policies, limits."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import sd, stopping
from analysis._kinds import AssumptionError
from psdsim.errors import InputError

LAW = ([0.95, 0.3], [0.7, 0.3])


def test_two_kinds_of_tokens_t35() -> None:
    rule = stopping.best_threshold(*LAW, 0.1)
    assert rule.rate == pytest.approx(2.44032329, abs=5e-9)
    assert rule.threshold == pytest.approx(0.32322, abs=5e-6)
    k, fixed = stopping.best_fixed(*LAW, 0.1)
    assert k == 5
    assert fixed == pytest.approx(2.21709560, abs=5e-9)
    assert rule.rate / fixed - 1.0 == pytest.approx(0.101, abs=5e-4)
    assert rule.rate == pytest.approx(rule.tokens_per_round / (1 + 0.1 * rule.drafts_per_round))


def test_round_of_a_threshold_by_walking_every_path() -> None:
    values, weights, threshold, most = LAW[0], LAW[1], 0.2, 6
    tokens = drafts = 0.0
    for path in itertools.product((0, 1), repeat=most):
        chance = np.prod([weights[i] for i in path])
        survival, emitted, made = 1.0, 1.0, 0
        for i in path:
            if survival < threshold:
                break
            made += 1
            survival *= values[i]
            emitted += survival
        tokens += chance * emitted
        drafts += chance * made
    found = stopping.threshold_round(values, weights, threshold, max_k=most)
    assert found == (pytest.approx(tokens), pytest.approx(drafts))


@pytest.mark.parametrize("cost", [0.05, 0.1, 0.4])
def test_no_stopping_rule_beats_the_threshold(cost: float) -> None:
    """Backward induction over every state of at most 12 drafts, at the threshold's own rate."""
    values, weights = LAW
    most = 12
    rule = stopping.best_threshold(values, weights, cost, max_k=most)

    @cache
    def gain(good: int, bad: int) -> float:
        if good + bad == most:
            return 0.0
        survival = values[0] ** good * values[1] ** bad
        on = -rule.rate * cost
        for i in (0, 1):
            on += weights[i] * (survival * values[i] + gain(good + (i == 0), bad + (i == 1)))
        return max(0.0, on)

    # The best policy gains 1 - rate + gain(0, 0) over the rate in a round: nothing.
    assert 1.0 - rule.rate + gain(0, 0) == pytest.approx(0.0, abs=1e-9)


@given(
    st.lists(st.tuples(st.floats(0.05, 0.99), st.floats(0.05, 1.0)), min_size=1, max_size=3),
    st.floats(0.02, 1.2),
)
@settings(max_examples=50, deadline=None)
def test_between_the_best_fixed_length_and_the_oracle(
    law: list[tuple[float, float]], cost: float
) -> None:
    values = [v for v, _ in law]
    weights = np.array([w for _, w in law])
    weights = weights / weights.sum()
    rule = stopping.best_threshold(values, weights, cost, max_k=40)
    _, fixed = stopping.best_fixed(values, weights, cost, max_k=40)
    top = max(stopping.oracle_rate(values, weights, cost), 1.0)
    assert fixed * (1 - 1e-9) <= rule.rate <= top * (1 + 1e-9)


def test_one_kind_of_token_is_the_best_fixed_length() -> None:
    for alpha, cost in ((0.8, 0.1), (0.7, 0.2), (0.3, 0.5)):
        rule = stopping.best_threshold([alpha], [1.0], cost)
        k = int(sd.best_k(alpha, cost))
        assert rule.rate == pytest.approx(float(sd.speedup(alpha, k, cost)))
        assert rule.drafts_per_round == pytest.approx(k)


def test_wrong_laws_are_named() -> None:
    with pytest.raises(AssumptionError, match="every value is 0"):
        stopping.best_threshold([0.0], [1.0], 0.1)
    with pytest.raises(InputError, match="differ in shape"):
        stopping.best_fixed([0.5, 0.6], [1.0], 0.1)
    with pytest.raises(InputError, match="draft_cost_ratio"):
        stopping.best_threshold([0.5], [1.0], 0.0)
