"""Every acceptance model under every schedule whose closed form knows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from psdsim.api.gates.rows import Mutation, Row, mean_row, window_rate
from psdsim.scenario import Scenario

MODELS: dict[str, dict[str, Any]] = {
    "mean_length": {"kind": "mean_length", "length": 3.1, "k": 4, "includes_bonus": True},
    "conditional": {
        "kind": "position", "convention": "conditional", "rates": [0.9, 0.7, 0.75, 0.5],
    },
    "unconditional": {
        "kind": "position", "convention": "unconditional", "rates": [0.8, 0.55, 0.4, 0.15],
    },
    "histogram": {"kind": "histogram", "counts": [210, 150, 110, 90, 440]},
    "markov": {"kind": "markov", "after_accept": 0.88, "after_reject": 0.45},
    "anti-markov": {"kind": "markov", "after_accept": 0.6, "after_reject": 0.9},
    "markov_rounds": {
        "kind": "markov_rounds",
        "after_full": [0.9, 0.9, 0.8, 0.8],
        "otherwise": [0.5, 0.7, 0.7, 0.7],
    },
}  # fmt: skip
"""One setting of each kind whose requests are alike."""

_DRAFT_S, _VERIFY_S = 0.004, 0.02


@dataclass(frozen=True)
class AcceptanceCell:
    """Decode throughput of one schedule under one acceptance model."""

    schedule: str
    model: str
    k: int
    n_seqs: int = 32
    n_seq_steps: int = 120_000

    family = "acceptance"

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Simulate the cell and compare its decode throughput, tokens/s."""
        from analysis.schedules import steady_state

        n_steps = math.ceil(self.n_seq_steps / self.n_seqs)
        scenario = Scenario.builtin(
            {
                "acceptance": MODELS[self.model],
                "step_time": {
                    "target": {"kind": "constant", "time_s": _VERIFY_S},
                    "draft": {"kind": "constant", "time_s": _DRAFT_S},
                },
                "workload": {
                    "kind": "batch",
                    "n_requests": self.n_seqs * (2 if self.schedule == "minedraft" else 1),
                    "prompt_tokens": 1,
                    "output_tokens": n_steps * (self.k + 1) + self.k + 2,
                },
                "engine": {"max_num_seqs": self.n_seqs, "kv_blocks": "unlimited"},
                "assumed": {},
            }
        )
        assert scenario.acceptance is not None
        steady = steady_state(
            self.schedule,
            n_seqs_per_step=self.n_seqs,
            acceptance=scenario.acceptance,
            k=self.k + {"k+1": 1, "k-1": -1}.get(mutation, 0),
            draft_time_s=self.k * _DRAFT_S,
            verify_time_s=_VERIFY_S,
        )
        estimate = window_rate(scenario, self.schedule, self.k, seed, n_steps)
        name = f"{self.schedule} {self.model} k={self.k}"
        return [mean_row(self, name, "tokens/s", estimate, steady.output_throughput)]


def acceptance_cells() -> list[AcceptanceCell]:
    """Return the cells: every model under sd and minedraft, Markov under pearl."""
    cells = [
        AcceptanceCell(schedule, model, k)
        for schedule in ("sd", "minedraft")
        for model in MODELS
        for k in (2, 4)
    ]
    cells += [
        AcceptanceCell(schedule, model, k)
        for schedule in ("pearl", "pearl-draft-ahead")
        for model in ("mean_length", "markov", "anti-markov")
        for k in (2, 5)
    ]
    return cells
