"""Steady decoding: tokens/s of full batches with fixed step times and i.i.d. acceptance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from psdsim.api.gates.rows import Mutation, Row, mean_row, window_rate
from psdsim.scenario import Scenario

_BASE_S, _PER_TOKEN_S, _DRAFT_S = 0.008, 0.00025, 0.003
_OVERHEAD_S, _SYNC_S = 0.001, 0.0005


@dataclass(frozen=True)
class GridCell:
    """One point of the grid.

    Parameters
    ----------
    schedule, alpha, k
        What runs.
    draft_s
        One draft forward, s.
    n_seqs
        Requests verified per step.
    n_seq_steps
        Requests times steps observed; the standard error falls with its root.
    """

    schedule: str
    alpha: float
    k: int
    draft_s: float
    n_seqs: int = 32
    n_seq_steps: int = 240_000

    family = "steady"

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Simulate the cell and compare its decode throughput, tokens/s."""
        n_steps = math.ceil(self.n_seq_steps / self.n_seqs)
        # Long enough that nobody finishes inside the window: no stop clips a block.
        scenario = _scenario(self, n_steps * (self.k + 1) + self.k + 2)
        estimate = window_rate(scenario, self.schedule, self.k, seed, n_steps)
        name = f"{self.schedule} alpha={self.alpha:g} k={self.k} n={self.n_seqs}"
        return [mean_row(self, name, "tokens/s", estimate, theory(self, mutation))]


def default_grid(schedules: Sequence[str] = ("ar", "sd", "minedraft", "pearl")) -> list[GridCell]:
    """Return the cells of the standard grid (64 for the four schedules).

    Drafting takes less, about as long and more time than verifying in different cells, so
    both branches of every maximum are met.
    """
    cells: list[GridCell] = []
    for schedule in schedules:
        if schedule == "ar":
            cells += [GridCell("ar", 0.0, 0, _DRAFT_S, n) for n in (1, 16, 32, 64)]
            continue
        for alpha, k in itertools.product((0.3, 0.6, 0.8, 0.95), (1, 2, 4, 6, 8)):
            cells.append(GridCell(schedule, alpha, k, _DRAFT_S))
    return cells


def _scenario(cell: GridCell, n_tokens: int) -> Scenario:
    n_groups = 2 if cell.schedule == "minedraft" else 1
    return Scenario.builtin(
        {
            "name": "grid",
            "acceptance": {"kind": "iid", "alpha": cell.alpha},
            "step_time": {
                "target": {"kind": "affine", "base_s": _BASE_S, "per_sequence_s": _PER_TOKEN_S},
                "draft": {"kind": "constant", "time_s": cell.draft_s},
                "step_overhead_s": _OVERHEAD_S,
                "sync_s": _SYNC_S,
            },
            "workload": {
                "kind": "batch",
                "n_requests": cell.n_seqs * n_groups,
                "prompt_tokens": 1,
                "output_tokens": n_tokens,
            },
            "engine": {"max_num_seqs": cell.n_seqs, "kv_blocks": "unlimited"},
            "assumed": {},
        }
    )


def theory(cell: GridCell, mutation: Mutation = "none") -> float:
    """Return the closed form in tokens/s, with a mistake built in if asked for."""
    from analysis.schedules import steady_state
    from psdsim.acceptance import IidAcceptance

    k = cell.k + {"k+1": 1, "k-1": -1}.get(mutation, 0) if cell.k else 0
    alpha = min(1.0, cell.alpha + 0.01) if mutation == "alpha" else cell.alpha
    m = cell.n_seqs
    steady = steady_state(
        cell.schedule,
        n_seqs_per_step=m,
        acceptance=IidAcceptance(alpha=alpha),
        k=k,
        draft_time_s=k * cell.draft_s,
        verify_time_s=_BASE_S + _PER_TOKEN_S * m,
        overhead_s=_OVERHEAD_S,
        sync_s=0.0 if mutation == "sync" else _SYNC_S,
        n_tokens=None,
        jitter=None,
    )
    value = steady.output_throughput
    if mutation == "bonus":
        # A round that was fully accepted loses the token that comes for free.
        lost = alpha**k if cell.schedule in {"sd", "minedraft"} else 0.0
        value *= 1.0 - lost / steady.tokens_per_step_per_request
    return value
