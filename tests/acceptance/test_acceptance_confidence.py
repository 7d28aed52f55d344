"""What AUC and calibration error a concentration and a temperature come to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psdsim.acceptance.confidence import auc, calibration_error, concentration_for_auc
from psdsim.errors import InputError


def drawn(alpha: float, concentration: float, n: int = 200_000):
    rng = np.random.default_rng(5)
    chance = rng.beta(alpha * concentration, (1 - alpha) * concentration, n)
    return chance, rng.random(n) < chance


@pytest.mark.parametrize("alpha, concentration", [(0.5, 2.0), (0.8, 0.7), (0.9, 5.0), (0.3, 40.0)])
def test_the_auc_is_the_share_of_pairs_in_order(alpha: float, concentration: float) -> None:
    chance, accepted = drawn(alpha, concentration)
    ranks = chance.argsort().argsort() + 1.0
    n1 = int(accepted.sum())
    n0 = accepted.size - n1
    found = (ranks[accepted].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)
    error = math.sqrt(1 / (12 * n1) + 1 / (12 * n0))  # of the statistic at AUC 1/2, its widest
    assert abs(found - auc(alpha, concentration)) < 4.5 * error
    assert abs(found - auc(alpha, 1.3 * concentration)) > 4.5 * error


def test_a_uniform_confidence_has_an_auc_of_five_sixths() -> None:
    assert auc(0.5, 2.0) == pytest.approx(5 / 6, abs=1e-5)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.77, 0.95])
@pytest.mark.parametrize("wanted", [0.51, 0.7, 0.81, 0.85, 0.9, 0.99])
def test_the_concentration_for_an_auc_has_it(alpha: float, wanted: float) -> None:
    assert auc(alpha, concentration_for_auc(alpha, wanted)) == pytest.approx(wanted, abs=1e-5)


def test_a_confidence_that_knows_nothing_has_no_spread() -> None:
    assert concentration_for_auc(0.7, 0.5) == math.inf
    assert auc(0.7, math.inf) == 0.5


def test_the_auc_falls_in_the_concentration() -> None:
    values = [auc(0.8, c) for c in np.geomspace(1e-3, 1e6, 25)]
    assert (np.diff(values) < 0).all()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_calibration_error_is_the_mean_gap(temperature: float) -> None:
    chance, _ = drawn(0.8, 3.0)
    inner = np.clip(chance, 1e-12, 1 - 1e-12)
    shown = 1 / (1 + (1 / inner - 1) ** (1 / temperature))
    gap = np.abs(shown - chance)
    found = calibration_error(0.8, 3.0, temperature)
    assert abs(found - gap.mean()) < 4.5 * gap.std() / math.sqrt(gap.size)


def test_only_a_temperature_miscalibrates() -> None:
    assert calibration_error(0.8, 3.0, 1.0) == 0.0
    # Without spread there is one confidence, and it is off by one gap.
    shown = 1 / (1 + (1 / 0.8 - 1) ** 2)
    assert calibration_error(0.8, math.inf, 0.5) == pytest.approx(shown - 0.8)


@pytest.mark.parametrize(
    "call",
    [
        lambda: auc(0.0, 1.0),
        lambda: auc(0.5, 0.0),
        lambda: concentration_for_auc(0.5, 0.49),
        lambda: concentration_for_auc(0.5, 0.995),
        lambda: concentration_for_auc(1.0, 0.8),
        lambda: calibration_error(0.5, 1.0, 0.0),
        lambda: calibration_error(0.5, 1.0, math.inf),
    ],
)
def test_what_is_out_of_range_is_refused(call) -> None:
    with pytest.raises(InputError):
        call()
