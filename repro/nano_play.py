"""Cells of nano-PEARL's grid played by the simulator: 100 steps of a full batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from psdsim import Scenario
from psdsim.engine import simulate_run
from psdsim.records import StepKind
from psdsim.run.prepare import prepare
from repro.nano_fit import PEARL_STEPS, fitted
from repro.play import SEED


@dataclass(frozen=True)
class Cell:
    """Tokens/s and tokens between rejections of one replication."""

    speed: float
    mat: float


@cache
def play_cell(
    target: str,
    draft: str,
    data_set: str,
    batch: int,
    mat: float,
    columns: tuple[int, ...],
    replication: int,
) -> Cell:
    """Simulate a cell with step times fitted on some columns and the given MAT."""
    times = fitted(target, columns)
    k, alpha = times.gamma(draft, batch), 1.0 - 1.0 / mat
    fixed, slope = times.drafts[draft]
    scenario = Scenario.builtin(
        {
            "acceptance": {"kind": "iid", "alpha": alpha},
            "step_time": {
                "target": {
                    "kind": "affine",
                    "base_s": times.base / 1000,
                    "per_sequence_s": (times.per_row - times.per_draft_row) / 1000,
                    "per_token_s": times.per_draft_row / 1000,
                },
                "draft": {
                    "kind": "affine", "base_s": fixed / 1000, "per_sequence_s": slope / 1000,
                },
                "step_overhead_s": (times.sync + times.prefill_share(data_set, batch)) / 1000,
            },
            "workload": {
                "kind": "batch",
                "n_requests": batch,
                "prompt_tokens": 1,
                "output_tokens": PEARL_STEPS * k + k + 2,
            },
            "engine": {"max_num_seqs": batch, "kv_blocks": "unlimited"},
            "assumed": {},
        }
    )  # fmt: skip
    steps = simulate_run(prepare(scenario, "pearl", k, seed=SEED, replication=replication)).steps
    first = np.flatnonzero(steps["kind"] == int(StepKind.DECODE))[:PEARL_STEPS]
    tokens = int(steps["n_emitted_tokens"][first].sum())
    time_s = float((steps["end_s"] - steps["start_s"])[first].sum())
    # What is emitted and was not drafted is the corrected token of a rejection.
    rejections = tokens - int(steps["n_accepted_tokens"][first].sum())
    return Cell(tokens / time_s, tokens / max(rejections, 1))
