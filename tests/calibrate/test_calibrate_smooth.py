"""Noise taken off a profile; factors by batch; the chain's likelihood."""

from __future__ import annotations

import numpy as np
import pytest

from psdsim.acceptance import MarkovAcceptance
from psdsim.calibrate.chain import _count
from psdsim.calibrate.factors import Factors
from psdsim.calibrate.smooth import monotone, straight


def table(times: np.ndarray) -> list[tuple[float, float, float, float]]:
    return [
        (2.0**i, float(j + 1), 128.0 * m, float(times[i, j, m]))
        for i, j, m in np.ndindex(times.shape)
    ]


def test_what_rises_already_is_left_alone() -> None:
    i, j, m = np.indices((4, 3, 2))
    rows = table(1.0 + 0.1 * i * j + 0.2 * m)
    assert [row[3] for row in monotone(rows)] == pytest.approx([row[3] for row in sorted(rows)])


def test_noise_is_taken_off_and_nothing_falls() -> None:
    rng = np.random.default_rng(3)
    i, j, m = np.indices((4, 5, 3))
    truth = 1.0 + 0.1 * i + 0.2 * j + 0.05 * m
    noisy = truth * np.exp(rng.normal(0.0, 0.15, truth.shape))
    smooth = np.array([row[3] for row in monotone(table(noisy))]).reshape(truth.shape)
    for axis in range(3):
        assert (np.diff(np.log(smooth), axis=axis) > -1e-6).all()
    error = np.abs(np.log(smooth / truth)).mean()
    assert error < 0.7 * np.abs(np.log(noisy / truth)).mean()
    # A projection: the sum of logarithms stays.
    assert np.log(smooth).sum() == pytest.approx(np.log(noisy).sum(), abs=1e-4)


def test_rows_that_are_no_grid_stay_as_they_are() -> None:
    rows = [(1.0, 1.0, 0.0, 2.0), (2.0, 1.0, 0.0, 1.0), (2.0, 2.0, 0.0, 0.5)]
    assert list(monotone(rows)) == rows


def test_factors_are_straight_over_the_doublings() -> None:
    factors = Factors({2: 1.0, 8: 2.0})
    assert factors.at([1, 2, 4, 8, 64]).tolist() == [1.0, 1.0, 1.5, 2.0, 2.0]
    assert factors.times(2.0).at(4) == 3.0


def test_drafts_are_counted_by_what_they_follow() -> None:
    tested = np.array([3, 3, 3, 2])
    accepted = np.array([1, 3, 0, 2])
    # Behind accepted ones: round 0 tests 1 (rejected), round 1 tests 2, round 3 tests 1.
    # Firsts: round 1 behind a rejection, round 2 behind a bonus token, round 3 behind a rejection.
    assert _count(tested, accepted, True).tolist() == [[3, 4], [2, 2], [0, 1]]
    # Without bonus tokens, full acceptance is followed by the next position itself.
    assert _count(tested, accepted, False).tolist() == [[3, 5], [2, 2], [0, 0]]


def test_counts_of_a_chain_are_its_rates() -> None:
    model = MarkovAcceptance(after_accept=0.9, after_reject=0.5)
    accepted = model.sample(4, 200_000, np.random.default_rng(1))
    (n1, d1), (n0, d0), (nb, db) = _count(np.full(accepted.size, 4), accepted, True)
    for n, d, rate in ((n1, d1, 0.9), (n0, d0, 0.5), (nb, db, 0.9 * 0.9 + 0.1 * 0.5)):
        assert abs(n / d - rate) < 4.5 * (rate * (1 - rate) / d) ** 0.5


def test_a_kink_beyond_the_noise_is_kept() -> None:
    rows = [(1.0, 1.0, 8.0, 1.0), (2.0, 1.0, 8.0, 3.0), (4.0, 1.0, 8.0, 3.0), (8.0, 1.0, 8.0, 3.1)]
    assert straight(rows, [1, 8], 0.1) == rows
    assert straight(rows, [1], 9.0) == rows
    flat = straight(rows, [1, 8], 9.0)
    assert [row[3] for row in flat] == pytest.approx([1.0, 1.3, 1.9, 3.1])
