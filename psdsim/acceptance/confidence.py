"""How good a drafter's confidence is: what a concentration and a temperature come to.

The acceptance probability of a drafted token is spread around the model's rate ``alpha`` like a
Beta distribution of ``concentration`` a + b, and the confidence is that probability, its logit
divided by ``temperature`` (`psdsim.verdict.Proposals`). Papers state two figures of a confidence:
the AUC, which no temperature changes, and the expected calibration error, which is 0 at
temperature 1.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special
from scipy.optimize import brentq

from psdsim.acceptance.law import FloatArray
from psdsim.errors import InputError

_NODES = 800
_LEAST, _MOST = 1e-3, 1e7  # concentrations between which an AUC is searched
_RANKS: FloatArray = (np.arange(_NODES) + 0.5) / _NODES


def _checked(alpha: float, concentration: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha is {alpha}", expected="strictly between 0 and 1")
    if not concentration > 0.0:
        raise InputError(f"the concentration is {concentration}", expected="above 0")


def auc(alpha: float, concentration: float) -> float:
    """Return P(an accepted draft shows a higher confidence than a rejected one).

    Given the verdict, the confidence of an accepted draft is Beta(a + 1, b), that of a rejected
    one Beta(a, b + 1), with a = alpha * concentration and b = (1 - alpha) * concentration.

    Parameters
    ----------
    alpha
        P(accepted), strictly between 0 and 1.
    concentration
        a + b, > 0; infinite: the confidence is always alpha.

    Returns
    -------
    float
        From 1/2 (knows nothing) to 1 (knows the verdict).

    Raises
    ------
    psdsim.errors.InputError
        If an argument is out of range.

    Examples
    --------
    >>> round(auc(0.5, 2.0), 4)     # a uniform confidence: 5/6
    0.8333
    >>> auc(0.7, float("inf"))
    0.5
    """
    _checked(alpha, concentration)
    if not math.isfinite(concentration):
        return 0.5
    a, b = alpha * concentration, (1.0 - alpha) * concentration
    accepted = special.betaincinv(a + 1.0, b, _RANKS)
    return float(special.betainc(a, b + 1.0, accepted).mean())


@lru_cache(maxsize=256)
def concentration_for_auc(alpha: float, wanted: float) -> float:
    """Return the concentration at which a confidence has a stated AUC.

    Parameters
    ----------
    alpha
        P(accepted), strictly between 0 and 1.
    wanted
        The AUC, from 0.5 (returns infinity) to 0.99.

    Raises
    ------
    psdsim.errors.InputError
        If an argument is out of range.

    Examples
    --------
    >>> round(concentration_for_auc(0.5, 5 / 6), 3)
    2.0
    """
    if not 0.5 <= wanted <= 0.99:
        raise InputError(f"the AUC is {wanted}", expected="0.5 to 0.99")
    _checked(alpha, 1.0)
    if wanted <= auc(alpha, _MOST):
        return math.inf

    def excess(log_concentration: float) -> float:
        return auc(alpha, math.exp(log_concentration)) - wanted

    low, high = math.log(_LEAST), math.log(_MOST)
    return math.exp(float(brentq(excess, low, high, xtol=1e-6)))


def calibration_error(alpha: float, concentration: float, temperature: float) -> float:
    """Return E|confidence - P(accepted | confidence)|, the expected calibration error.

    Without bins: a published ECE over bins is at most this, and near it where bins are narrow.

    Parameters
    ----------
    alpha, concentration
        As for `auc`.
    temperature
        The confidence's logit is divided by it, > 0.

    Raises
    ------
    psdsim.errors.InputError
        If an argument is out of range.

    Examples
    --------
    >>> calibration_error(0.5, 2.0, 1.0)
    0.0
    >>> round(calibration_error(0.5, 2.0, 0.5), 4)   # overconfident: (ln 2) / 2 - 1/4
    0.0966
    """
    _checked(alpha, concentration)
    if not 0.0 < temperature < math.inf:
        raise InputError(f"the temperature is {temperature}", expected="above 0")
    if temperature == 1.0:
        return 0.0
    chance = np.full(1, alpha)
    if math.isfinite(concentration):
        a, b = alpha * concentration, (1.0 - alpha) * concentration
        chance = special.betaincinv(a, b, _RANKS)
    inner = np.clip(chance, 1e-12, 1.0 - 1e-12)
    shown = special.expit(special.logit(inner) / temperature)
    return float(np.abs(shown - inner).mean())


__all__ = ["auc", "calibration_error", "concentration_for_auc"]
