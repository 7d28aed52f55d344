"""Jittered passes: the barrier waits for the slower phase, E[max(D, V)]."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from psdsim.acceptance import IidAcceptance
from psdsim.api.gates.rows import Mutation, Row, mean_row, window_rate
from psdsim.scenario import Scenario

_VERIFY_S, _OVERHEAD_S, _SYNC_S, _ALPHA, _K = 0.02, 0.001, 0.0005, 0.7, 4


@dataclass(frozen=True)
class JitterCell:
    """Decode throughput under random pass times.

    Parameters
    ----------
    schedule
        What runs.
    ratio
        Mean drafting phase / mean target pass.
    cv
        Coefficient of variation of both (1 with the exponential law).
    law
        ``lognormal`` or ``exponential``.
    """

    schedule: str
    ratio: float
    cv: float
    law: str = "lognormal"
    n_seqs: int = 8
    n_steps: int = 12_000

    family = "jitter"

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Simulate the cell and compare its decode throughput, tokens/s."""
        from analysis.schedules import Jitter, steady_state

        forward_s = self.ratio * _VERIFY_S / _K
        scenario = Scenario.builtin(
            {
                "acceptance": {"kind": "iid", "alpha": _ALPHA},
                "step_time": self._times(forward_s),
                "workload": {
                    "kind": "batch",
                    "n_requests": self.n_seqs * (2 if self.schedule == "minedraft" else 1),
                    "prompt_tokens": 1,
                    "output_tokens": self.n_steps * (_K + 1) + _K + 2,
                },
                "engine": {"max_num_seqs": self.n_seqs, "kv_blocks": "unlimited"},
                "assumed": {},
            }
        )
        law: Any = self.law
        steady = steady_state(
            self.schedule,
            n_seqs_per_step=self.n_seqs,
            acceptance=IidAcceptance(alpha=_ALPHA),
            k=0 if self.schedule == "ar" else _K,
            draft_time_s=self.ratio * _VERIFY_S,
            verify_time_s=_VERIFY_S,
            overhead_s=_OVERHEAD_S,
            sync_s=0.0 if mutation == "sync" else _SYNC_S,
            # Forgetting Jensen is the mistake this family is there for.
            jitter=None if mutation == "alpha" else Jitter(self.cv, self.cv, law),
        )
        estimate = window_rate(scenario, self.schedule, _K, seed, self.n_steps)
        name = f"{self.schedule} D/V={self.ratio:g} {self.law} cv={self.cv:g}"
        return [mean_row(self, name, "tokens/s", estimate, steady.output_throughput)]

    def _times(self, forward_s: float) -> dict[str, Any]:
        common: dict[str, Any] = {"step_overhead_s": _OVERHEAD_S, "sync_s": _SYNC_S}
        if self.law == "exponential":
            return common | {
                "target": {"kind": "exponential", "mean_s": _VERIFY_S},
                "draft": {"kind": "exponential", "mean_s": forward_s},
            }
        return common | {
            "target": {"kind": "constant", "time_s": _VERIFY_S},
            "draft": {"kind": "constant", "time_s": forward_s},
            "jitter_cv": self.cv,
        }


def jitter_cells() -> list[JitterCell]:
    """Return the cells: three ratios and CVs for overlapping schedules, a few for serial ones."""
    cells = [
        JitterCell(schedule, ratio, cv)
        for schedule, ratio, cv in itertools.product(
            ("minedraft", "pearl"), (0.5, 1.0, 1.5), (0.1, 0.3, 0.6)
        )
    ]
    cells += [JitterCell("minedraft", ratio, 1.0, "exponential") for ratio in (0.5, 1.0, 2.0)]
    cells += [JitterCell("pearl", 1.0, 1.0, "exponential")]
    cells += [JitterCell("sd", ratio, cv) for ratio in (0.5, 1.5) for cv in (0.3, 0.6)]
    cells += [JitterCell("ar", 1.0, 0.5), JitterCell("sd", 1.0, 1.0, "exponential")]
    return cells
