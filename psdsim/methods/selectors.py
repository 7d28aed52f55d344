"""Methods that draft more than they verify, and choose: TETRIS, alone and inside MineDraft."""

from __future__ import annotations

from typing import Any, ClassVar

from psdsim.methods.base import Knob, Method, Parts
from psdsim.methods.confidence import CONFIDENCE_KNOBS, SeesConfidences
from psdsim.scenario import Scenario
from psdsim.schedules import Schedule
from psdsim.schedules.tetris import MineDraftTetris, Tetris

_EXTRA = Knob(
    "extra", 1, 0, 32, "tokens drafted of each request beyond k", "MineDraft runs e = 1", whole=True
)
# A token that is tested because its own probability came out high is no longer a sample of the
# drafter's law: a chi-square test on real models convicts the output (tests/realrun).
_GREEDY = (
    "lossless under greedy decoding; with sampling, choosing by a token's own probability biases"
)


class TetrisMethod(SeesConfidences):
    """Serial SD that verifies the batch's likeliest k * batch drafts of (k + e) * batch."""

    name = "tetris"
    paper = "TETRIS (Wu et al. 2025), code ZhaoxuanWu/Tetris"
    summary = Tetris.summary
    parts = Parts(
        schedule="sd",
        length="k + e",
        selector="k * batch likeliest of the batch",
        verifier=_GREEDY,
    )
    unknown = (
        "TETRIS ranks drafts by the drafter's own probabilities; how well these tell accepted "
        "drafts from rejected ones is not stated, so a calibrated estimate of stated AUC stands in"
    )
    knobs: ClassVar[tuple[Knob, ...]] = (_EXTRA, *CONFIDENCE_KNOBS)
    schedule: ClassVar[type[Schedule]] = Tetris

    def n_drafted(self, k: int) -> int:
        """Return k + extra."""
        return k + self.count("extra")

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Return how many more tokens are drafted."""
        return {"extra": self.count("extra")}


class MineDraftTetrisMethod(TetrisMethod):
    """MineDraft with TETRIS within the verified sub-batch."""

    name = "minedraft+tetris"
    paper = "MineDraft (arXiv 2603.18016); TETRIS (Wu et al. 2025)"
    summary = MineDraftTetris.summary
    parts = Parts(
        schedule="minedraft",
        length="k + e",
        selector="k * batch likeliest of the sub-batch",
        verifier=_GREEDY,
    )
    schedule: ClassVar[type[Schedule]] = MineDraftTetris


FAMILY: tuple[type[Method], ...] = (TetrisMethod, MineDraftTetrisMethod)
