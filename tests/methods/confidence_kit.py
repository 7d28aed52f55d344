"""Parts for tests of methods that see confidences: oracles, fresh rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psdsim.acceptance import IidAcceptance
from psdsim.engine import RawRun
from psdsim.verdict import Proposals
from tests.engine.kit import Scripted, run, work

FIELDS = (
    "kind", "start_s", "end_s", "draft_group", "verify_group", "n_draft_seqs",
    "n_drafted_tokens", "n_verify_seqs", "n_verified_tokens", "n_accepted_tokens",
    "n_emitted_tokens",
)  # fmt: skip
PREFILL, DRAFT, DECODE = 0, 1, 2

ORACLE = Proposals(concentration=1e-6)
"""Confidences that are the verdict, 1 or 0, where the rate is neither."""


class Doubted(Scripted):
    """Scripted verdicts of a model whose rates leave room for doubt."""

    def conditional_rates(self, k):
        return np.full(k, 0.5)


def log(raw: RawRun) -> list[tuple[float, ...]]:
    """Return the step log, one tuple a step."""
    return [tuple(float(raw.steps[name][i]) for name in FIELDS) for i in range(raw.tally.n_steps)]


def fixed(cls: type, **options: Any) -> type:
    """Return a schedule class with constructor arguments filled in."""

    class Fixed(cls):  # type: ignore[misc]
        def __init__(self, k, capacity, *, chunked=False):
            super().__init__(k, capacity, chunked=chunked, **options)

    return Fixed


def fresh_rounds(
    cls: type, k: int, alpha: float, proposals: Proposals, n: int, m: int, **options: Any
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Run n requests of one round each, m at once: (drafted, tested, accepted) of each step.

    Rounds of one request share confidences where a round begins within the reach of the one
    before, so that only a request's first round follows the law of a single round exactly.
    """
    steps: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    class Heard(cls):  # type: ignore[misc]
        def __init__(self, k, capacity, *, chunked=False):
            super().__init__(k, capacity, chunked=chunked, **options)

        def _learn(self, ids, draft, verdict):
            super()._learn(ids, draft, verdict)
            accepted = verdict.n_accepted
            tested = np.broadcast_to(verdict.n_tested, accepted.shape)
            steps.append((draft.lengths.copy(), tested.copy(), accepted.copy()))

    raw = run(
        "sd", k, work([2] * n), m=m, schedule_class=Heard,
        acceptance=IidAcceptance(alpha=alpha), proposals=proposals,
    )  # fmt: skip
    assert (raw.requests["n_rounds"] == 1).all()
    return steps


def agrees(values: Any, theory: float, limit: float = 4.5) -> bool:
    """Say whether a mean lies within so many standard errors of the theory."""
    return deviation(values, theory) < limit


def deviation(values: Any, theory: float) -> float:
    """Return |mean - theory| in standard errors."""
    data = np.asarray(values, dtype=np.float64)
    return float(abs(data.mean() - theory) / (data.std(ddof=1) / math.sqrt(data.size)))
