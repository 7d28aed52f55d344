"""What a drafter believes of its drafts: calibrated, never the outcome, no effect on verdicts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from kit import run, work

from psdsim.acceptance import BetaAcceptance, IidAcceptance, MarkovAcceptance, PositionAcceptance
from psdsim.commands import Confidence, Draft, Score
from psdsim.schedules.serial import SpeculativeDecoding
from psdsim.verdict import Classifier, Proposals


def confidences(acceptance: Any, proposals: Proposals, k: int = 4, n: int = 3000) -> Any:
    """Return (chances, accepted) of many rounds of one request."""
    seen: list[Any] = []
    heard: list[Any] = []

    class Asking(SpeculativeDecoding):
        def _propose(self, ids):
            draft = yield Draft(ids, self.k)
            seen.append((yield Confidence(draft)))
            return draft

        def _test(self, ids, draft, chunks):
            return (yield Score(ids, self.k, of=draft))

        def _learn(self, ids, draft, verdict):
            heard.append(verdict)

    run("sd", k, work([n]), schedule_class=Asking, acceptance=acceptance, proposals=proposals)
    return np.concatenate(seen), np.concatenate([v.n_accepted for v in heard])


@pytest.mark.parametrize(
    "acceptance",
    [
        IidAcceptance(alpha=0.7),
        PositionAcceptance(rates=(0.9, 0.7, 0.5, 0.3), convention="conditional"),
        MarkovAcceptance(after_accept=0.8, after_reject=0.5),
    ],
)
@pytest.mark.parametrize("kappa", [0.5, 4.0])
def test_confidences_are_calibrated(acceptance: Any, kappa: float) -> None:
    chances, accepted = confidences(acceptance, Proposals(concentration=kappa), n=20_000)
    places = np.arange(chances.shape[1])
    reached = accepted[:, None] >= places
    ok = accepted[:, None] > places
    for low in (0.0, 0.25, 0.5, 0.75):
        here = reached & (chances >= low) & (chances < low + 0.25)
        mean, n = chances[here].mean(), here.sum()
        assert abs(ok[here].mean() - mean) < 4.5 * math.sqrt(max(mean * (1 - mean), 0.01) / n)


def test_without_concentration_a_confidence_is_the_rate() -> None:
    chances, _ = confidences(IidAcceptance(alpha=0.7), Proposals())
    assert (chances == 0.7).all()


def test_a_temperature_makes_confidences_bold() -> None:
    cool, _ = confidences(IidAcceptance(alpha=0.7), Proposals(concentration=2.0, temperature=0.5))
    plain, _ = confidences(IidAcceptance(alpha=0.7), Proposals(concentration=2.0))
    high = plain > 0.5
    assert (cool[high] >= plain[high]).all()
    assert (cool[~high] <= plain[~high]).all()


def test_confidences_leave_the_verdicts_alone() -> None:
    _, with_them = confidences(BetaAcceptance(a=4.0, b=1.0), Proposals(concentration=2.0))
    raw = run("sd", 4, work([3000]), acceptance=BetaAcceptance(a=4.0, b=1.0))
    assert with_them.tolist() == raw.steps["n_accepted_tokens"][raw.steps["kind"] == 2].tolist()


def test_a_classifier_without_error_knows_the_outcome() -> None:
    chances, accepted = confidences(
        IidAcceptance(alpha=0.7), Proposals(classifier=Classifier(2, 1.0, 0.0))
    )
    assert (chances[:, 0] == (accepted >= 2)).all()
    assert (chances[:, 3] == (accepted == 4)).all()
