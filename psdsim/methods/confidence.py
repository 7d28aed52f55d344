"""What methods that read confidences share: how good these are, and what is said of it."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from psdsim.acceptance.confidence import calibration_error, concentration_for_auc
from psdsim.methods.base import Knob, Method
from psdsim.methods.drafters import assumed_knobs
from psdsim.scenario import Scenario
from psdsim.verdict import Proposals

_AUC = (
    "P(an accepted draft shows a higher confidence than a rejected one), at the mean acceptance "
    "rate; 0.5 knows nothing"
)
_TEMPERATURE = "of the confidence's logit: 1 calibrated, below 1 overconfident"

CONFIDENCE_KNOBS: tuple[Knob, ...] = (
    Knob(
        "auc", 0.85, 0.5, 0.99, _AUC, "DSpark reports .81 to .90 (arXiv 2607.05147)", simulated=True
    ),
    Knob("temperature", 1.0, 0.1, 10.0, _TEMPERATURE, "assumed", simulated=True),
)
"""Knobs of every method whose schedule sees confidences."""


def mean_rate(scenario: Scenario, n: int) -> float:
    """Return accepted / tested drafts of a serial round of n, the rate that an AUC is stated at.

    Parameters
    ----------
    scenario
        With an acceptance model.
    n
        Drafted tokens, >= 1.
    """
    assert scenario.acceptance is not None
    rates = scenario.acceptance.conditional_rates(n)
    reached = np.concatenate(([1.0], np.cumprod(rates)))[:n]
    return float((reached * rates).sum() / reached.sum())


class SeesConfidences(Method):
    """A method whose schedule reads estimates of P(accepted), never the verdict."""

    knobs: ClassVar[tuple[Knob, ...]] = CONFIDENCE_KNOBS

    def n_drafted(self, k: int) -> int:
        """Return the drafted tokens per round and request."""
        return k

    def proposals(self, scenario: Scenario, k: int) -> Proposals:
        """Return confidences with the AUC of the knob at the scenario's mean rate."""
        return Proposals(
            concentration=self._concentration(scenario, k), temperature=self["temperature"]
        )

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Say how good the confidences are, and which figures are assumed."""
        lines = assumed_knobs(self, [knob.name for knob in self.knobs])
        adapted = self.adapt(scenario, k)
        if not k or adapted.acceptance is None:
            return lines
        rate, concentration = mean_rate(adapted, self.n_drafted(k)), self._concentration(adapted, k)
        if not math.isfinite(concentration):
            rates = adapted.acceptance.conditional_rates(self.n_drafted(k))
            what = (
                "all drafts look alike"
                if np.ptp(rates) < 1e-12
                else "drafts differ by their place only"
            )
            return [*lines, f"{self.name}: its confidences carry no information: {what}"]
        error = calibration_error(rate, concentration, self["temperature"])
        return [
            *lines,
            f"{self.name}: confidences with an AUC of {self['auc']:g} at acceptance rate "
            f"{rate:.3g} (concentration {concentration:.3g}) and an expected calibration error of "
            f"{100 * error:.2g} %",
        ]

    def _concentration(self, scenario: Scenario, k: int) -> float:
        if not k or scenario.acceptance is None:
            return math.inf
        rate = mean_rate(scenario, self.n_drafted(k))
        # Where every draft, or none, is accepted there is nothing to know.
        return concentration_for_auc(rate, self["auc"]) if 0.0 < rate < 1.0 else math.inf


__all__ = ["CONFIDENCE_KNOBS", "SeesConfidences", "mean_rate"]
