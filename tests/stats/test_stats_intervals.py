"""Confidence intervals: by hand, against SciPy, and by how often they cover."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from psdsim.errors import InputError
from psdsim.stats import Estimate, batch_means_rate, t_interval


def test_t_interval_by_hand() -> None:
    # Mean 4, deviations -3 -1 1 3: s^2 = 20 / 3, error sqrt(20 / 12); t(.975, 3) = 3.18245.
    e = t_interval([1.0, 3.0, 5.0, 7.0])
    assert (e.mean, e.n, e.level) == (4.0, 4, 0.95)
    assert e.standard_error == pytest.approx(math.sqrt(20 / 12))
    assert (e.low, e.high) == pytest.approx(
        (4.0 - 3.182446 * math.sqrt(20 / 12), 4.0 + 3.182446 * math.sqrt(20 / 12)), abs=1e-5
    )


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_t_interval_is_scipys(level: float) -> None:
    x = np.random.default_rng(1).exponential(size=17)
    e = t_interval(x, level)
    low, high = stats.ttest_1samp(x, 0.0).confidence_interval(level)
    assert [e.low, e.high] == pytest.approx([float(low), float(high)])
    assert e.level == level


def test_t_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    hits = sum((e := t_interval(rng.normal(3.0, 2.0, 5))).low <= 3.0 <= e.high for _ in range(4000))
    assert abs(hits / 4000 - 0.95) < 4.5 * math.sqrt(0.95 * 0.05 / 4000)


def test_too_few_values_have_no_interval() -> None:
    one = t_interval([2.5])
    assert (one.mean, one.n) == (2.5, 1)
    assert all(math.isnan(x) for x in (one.standard_error, one.low, one.high))
    none = t_interval([])
    assert none.n == 0
    assert math.isnan(none.mean)
    assert t_interval([2.0, 2.0]) == Estimate(2.0, 0.0, 2.0, 2.0, 2)


def test_batch_means_by_hand() -> None:
    # Two batches of two steps: (3, 2 s) and (9, 2 s). Rate 12 / 4 = 3; residuals -3 and 3 with
    # deviation sqrt(18), over sqrt(2) batches and 2 s a batch: sqrt(18) / (2 sqrt 2) = 1.5.
    e = batch_means_rate([1, 2, 4, 5], [0.5, 1.5, 1.0, 1.0], n_batches=2, warm_up=0.0)
    assert (e.mean, e.n) == (3.0, 2)
    assert e.standard_error == pytest.approx(1.5)
    assert e.high - e.mean == pytest.approx(12.7062 * 1.5, rel=1e-5)  # t(.975, 1)
    assert e.mean - e.low == pytest.approx(e.high - e.mean)


def test_warm_up_and_remainder_are_cut() -> None:
    # 23 steps: the first 2 (10 %) and, with 20 batches of one step, the last are left out.
    amount = np.ones(23)
    amount[[0, 1, 22]] = 1000.0
    e = batch_means_rate(amount, np.ones(23))
    assert (e.mean, e.standard_error, e.n) == (1.0, 0.0, 20)


def rates(rho: float, seed: int, n_runs: int) -> list[Estimate]:
    """Return estimates of a rate of 2 from steps that depend on each other (AR(1))."""
    rng = np.random.default_rng(seed)
    n = 4000
    noise = rng.normal(size=(n_runs, n))
    level = np.empty_like(noise)
    level[:, 0] = noise[:, 0] / math.sqrt(1.0 - rho**2)
    for i in range(1, n):
        level[:, i] = rho * level[:, i - 1] + noise[:, i]
    time_s = rng.uniform(0.5, 1.5, size=(n_runs, n))
    amount = 2.0 * time_s + level
    return [batch_means_rate(a, t) for a, t in zip(amount, time_s, strict=True)]


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_batch_means_cover_as_often_as_they_say(rho: float) -> None:
    n_runs = 1000
    estimates = rates(rho, 7, n_runs)
    hits = sum(e.low <= 2.0 <= e.high for e in estimates)
    # 180 steps a batch: batches of the correlated steps still depend a little on each other.
    slack = 0.02 if rho else 0.0
    assert abs(hits / n_runs - 0.95) < 4.5 * math.sqrt(0.95 * 0.05 / n_runs) + slack
    # The stated error is the spread of the estimates.
    spread = float(np.std([e.mean for e in estimates], ddof=1))
    stated = float(np.sqrt(np.mean([e.standard_error**2 for e in estimates])))
    assert stated == pytest.approx(spread, rel=0.12)


def test_single_steps_as_batches_would_not_cover_correlated_steps() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        level = np.zeros(400)
        noise = rng.normal(size=400)
        for i in range(1, 400):
            level[i] = 0.8 * level[i - 1] + noise[i]
        e = batch_means_rate(2.0 + level, np.ones(400), n_batches=400, warm_up=0.0)
        hits += e.low <= 2.0 <= e.high
    assert hits / 200 < 0.7


def test_a_ratio_is_not_the_mean_of_ratios() -> None:
    # Long steps yield more a second: 2 tokens in 1 s and 60 in 10 s are 62 / 11, not 4.
    e = batch_means_rate([2.0, 60.0] * 20, [1.0, 10.0] * 20, warm_up=0.0)
    assert e.mean == pytest.approx(62 / 11)


@pytest.mark.parametrize("n", [1, 5, 19])
def test_too_few_steps_for_the_batches(n: int) -> None:
    e = batch_means_rate(np.arange(n), np.ones(n))
    assert e.mean == pytest.approx((n - 1) / 2)
    assert all(math.isnan(x) for x in (e.standard_error, e.low, e.high))


def test_no_steps_and_no_time() -> None:
    assert math.isnan(batch_means_rate([], []).mean)
    assert math.isnan(batch_means_rate(np.ones(100), np.zeros(100)).mean)
    only_first = np.zeros(100)
    only_first[0] = 2.0
    e = batch_means_rate(np.ones(100), only_first)
    assert (e.mean, e.n) == (50.0, 1)


@pytest.mark.parametrize(
    "amount, time_s, options",
    [
        ([1.0, 2.0], [1.0], {}),
        ([[1.0]], [[1.0]], {}),
        ([1.0] * 40, [1.0] * 40, {"n_batches": 1}),
        ([1.0] * 40, [1.0] * 40, {"warm_up": 1.0}),
        ([1.0] * 40, [1.0] * 40, {"warm_up": -0.1}),
    ],
)
def test_nonsense_is_refused(amount: Any, time_s: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        batch_means_rate(amount, time_s, **options)
