"""Quantiles of weighted samples, and the log of inter-token gaps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from psdsim.stats import GapLog, gaps, quantile, weighted_quantile

PAIRS = st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 30)), min_size=1, max_size=40)
Q = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.99, 1.0]))


@given(PAIRS, Q)
def test_weighted_quantile_is_numpys_on_the_repeated_sample(
    pairs: list[tuple[float, int]], q: float
) -> None:
    values = np.array([value for value, _ in pairs])
    weights = np.array([weight for _, weight in pairs])
    expected = np.quantile(np.repeat(values, weights), q)
    found = weighted_quantile(values, weights.astype(np.float64), q)
    assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-6)


@given(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=1, max_size=12), Q)
def test_ties_and_unit_weights(values: list[float], q: float) -> None:
    x = np.array(values)
    expected = float(np.quantile(x, q))
    assert quantile(x, q) == expected
    assert weighted_quantile(x, np.ones(x.size), q) == pytest.approx(expected, abs=1e-12)


def test_by_hand() -> None:
    # 1 1 1 5 5: the median is the third, 0.75 falls on the fourth, 0.7 at rank 2.8.
    values, weights = np.array([5.0, 1.0]), np.array([2.0, 3.0])
    assert weighted_quantile(values, weights, 0.5) == 1.0
    assert weighted_quantile(values, weights, 0.75) == 5.0
    assert weighted_quantile(values, weights, 0.7) == pytest.approx(1.0 + 0.8 * 4.0)
    assert weighted_quantile(values, weights, 0.0) == 1.0
    assert weighted_quantile(values, weights, 1.0) == 5.0


def test_nothing_has_no_quantile() -> None:
    assert math.isnan(quantile(np.empty(0), 0.5))
    assert math.isnan(weighted_quantile(np.empty(0), np.empty(0), 0.5))


def test_weights_too_large_to_repeat() -> None:
    assert weighted_quantile(np.array([1.0, 2.0]), np.array([1e12, 1e12 + 1]), 0.5) == 2.0
    assert weighted_quantile(np.array([1.0, 2.0]), np.array([1e12 + 1, 1e12]), 0.5) == 1.0


# The log of gaps.

RNG = np.random.default_rng(12)
GAPS = RNG.lognormal(-4.0, 1.5, 4000)  # 0.1 ms to some seconds
WEIGHTS = RNG.integers(1, 65, GAPS.size)
MEAN = float(np.average(GAPS, weights=WEIGHTS))


def filled(gap: NDArray[np.float64], weight: NDArray[np.int64]) -> GapLog:
    log = GapLog()
    for g, w in zip(gap.tolist(), weight.tolist(), strict=True):
        log.add(g, w)
    return log


def quantiles(log: GapLog) -> list[float]:
    values, weights = log.values()
    return [weighted_quantile(values, weights, q) for q in (0.0, 0.01, 0.5, 0.9, 0.99, 1.0)]


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go over to bins above 1000 pairs, and take pairs in by 128."""
    monkeypatch.setattr(gaps, "_EXACT", 1000)
    monkeypatch.setattr(gaps, "_FLUSH", 128)


EXACT_QUANTILES = quantiles(filled(GAPS, WEIGHTS))


def test_empty_log() -> None:
    log = GapLog()
    assert math.isnan(log.mean())
    assert [x.size for x in log.values()] == [0, 0]
    log.merge(GapLog())
    assert log.exact
    assert math.isnan(log.mean())


def test_exact_mode_keeps_every_pair() -> None:
    log = filled(GAPS, WEIGHTS)
    assert log.exact
    values, weights = log.values()
    assert sorted(zip(values, weights, strict=True)) == sorted(zip(GAPS, WEIGHTS, strict=True))
    assert log.mean() == pytest.approx(MEAN, rel=1e-13)
    repeated = np.repeat(GAPS, WEIGHTS)
    assert (
        pytest.approx(
            [float(np.quantile(repeated, q)) for q in (0.0, 0.01, 0.5, 0.9, 0.99, 1.0)], rel=1e-12
        )
        == EXACT_QUANTILES
    )


def test_add_many_is_add_with_weight_one() -> None:
    log = GapLog()
    log.add_many(GAPS[:100])
    log.add_many(np.empty(0))
    one_by_one = filled(GAPS[:100], np.ones(100, dtype=np.int64))
    assert quantiles(log) == quantiles(one_by_one)
    assert log.mean() == one_by_one.mean()


@pytest.mark.usefixtures("small_limit")
def test_bins_are_within_a_tenth_of_a_per_cent_and_the_mean_stays_exact() -> None:
    log = filled(GAPS, WEIGHTS)
    assert not log.exact
    assert log.mean() == pytest.approx(MEAN, rel=1e-13)
    assert quantiles(log) == pytest.approx(EXACT_QUANTILES, rel=1e-3)
    assert log.values()[1].sum() == WEIGHTS.sum()
    # Each value on its own: the centre of its bin is within half a bin, 0.05 %.
    for x in (1e-8, 1e-5, 3.7e-3, 0.02, 1.0, 250.0, 9e5):
        single = filled(np.full(1001, x), np.ones(1001, dtype=np.int64))
        (centre,), (weight,) = single.values()
        assert centre == pytest.approx(x, rel=5.1e-4)
        assert weight == 1001


@pytest.mark.usefixtures("small_limit")
def test_gaps_outside_the_bins_are_kept_at_the_ends() -> None:
    log = filled(np.array([0.0] * 600 + [1e9] * 600), np.ones(1200, dtype=np.int64))
    values, weights = log.values()
    assert weights.tolist() == [600.0, 600.0]
    assert values[0] == pytest.approx(1e-9, rel=1e-3)
    assert values[1] == pytest.approx(1e6, rel=2e-3)
    assert log.mean() == pytest.approx(5e8)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("sizes", [(400, 500), (900, 900), (900, 3000), (3000, 900), (2000, 2000),
                                   (0, 3000), (3000, 0)])  # fmt: skip
def test_merge_in_every_mode(sizes: tuple[int, int]) -> None:
    first, second = sizes
    total = first + second
    log = filled(GAPS[:first], WEIGHTS[:first])
    other = filled(GAPS[first:total], WEIGHTS[first:total])
    before = quantiles(other) if second else []
    log.merge(other)
    assert log.exact == (total <= 1000)
    values, weights = log.values()
    assert weights.sum() == WEIGHTS[:total].sum()
    assert log.mean() == pytest.approx(np.average(GAPS[:total], weights=WEIGHTS[:total]), rel=1e-12)
    repeated = np.repeat(GAPS[:total], WEIGHTS[:total])
    for q in (0.05, 0.5, 0.99):
        assert weighted_quantile(values, weights, q) == pytest.approx(
            float(np.quantile(repeated, q)), rel=1e-3
        )
    if second:
        assert quantiles(other) == before  # the other log is left as it was
    log.add(0.5, 3)
    assert log.values()[1].sum() == WEIGHTS[:total].sum() + 3


@pytest.mark.usefixtures("small_limit")
def test_merging_bins_again_and_again_does_not_move_them() -> None:
    log = GapLog()
    part = filled(GAPS, WEIGHTS)
    for _ in range(20):
        log.merge(part)
    assert log.values()[0].tolist() == part.values()[0].tolist()
    assert log.values()[1].tolist() == (20 * part.values()[1]).tolist()
    assert log.mean() == pytest.approx(MEAN, rel=1e-12)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("size", [300, 3000])
def test_merging_a_log_with_itself_doubles_it(size: int) -> None:
    log = filled(GAPS[:size], WEIGHTS[:size])
    log.merge(log)
    assert log.values()[1].sum() == 2 * WEIGHTS[:size].sum()
    assert log.mean() == pytest.approx(np.average(GAPS[:size], weights=WEIGHTS[:size]), rel=1e-12)
