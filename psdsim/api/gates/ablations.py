"""PEARL without pre-verify and without post-verify: tokens/s, with and without memory."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from psdsim.acceptance import AcceptanceModel, IidAcceptance, MarkovAcceptance
from psdsim.api.gates.rows import BATCHES, Mutation, Row, mean_row
from psdsim.engine import simulate_run
from psdsim.records import StepKind
from psdsim.run.prepare import prepare
from psdsim.scenario import Scenario
from psdsim.stats import batch_means_rate

_VERIFY_S, _OVERHEAD_S, _SYNC_S = 0.02, 0.001, 0.0005


@dataclass(frozen=True)
class AblationCell:
    """Decode throughput of an ablation; steps that only draft count as steps.

    Parameters
    ----------
    schedule
        ``pearl-no-post-verify`` or ``pearl-no-pre-verify``.
    alpha, after_reject
        P(accept) after an accepted and after a rejected token.
    k
        Drafted tokens per step.
    ratio
        Drafting phase / target pass. Without pre-verify a batch needs at least 1: then a step
        lasts as long where nobody is verified.
    n_seqs
        Requests per step.
    """

    schedule: str
    alpha: float
    after_reject: float
    k: int
    ratio: float
    n_seqs: int
    n_seq_steps: int = 120_000

    family = "ablations"

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Simulate the cell and compare its decode throughput, tokens/s."""
        from analysis.schedules import steady_state

        model: AcceptanceModel = IidAcceptance(alpha=self.alpha)
        if self.after_reject != self.alpha:
            model = MarkovAcceptance(after_accept=self.alpha, after_reject=self.after_reject)
        n_steps = math.ceil(self.n_seq_steps / (self.n_seqs if self.n_seqs > 1 else 4))
        forward_s = self.ratio * _VERIFY_S / self.k
        scenario = Scenario.builtin(
            {
                "acceptance": model.model_dump(),
                "step_time": {
                    "target": {"kind": "constant", "time_s": _VERIFY_S},
                    "draft": {"kind": "constant", "time_s": forward_s},
                    "step_overhead_s": _OVERHEAD_S,
                    "sync_s": _SYNC_S,
                },
                "workload": {
                    "kind": "batch",
                    "n_requests": self.n_seqs,
                    "prompt_tokens": 1,
                    "output_tokens": n_steps * (self.k + 1) + self.k + 2,
                },
                "engine": {"max_num_seqs": self.n_seqs, "kv_blocks": "unlimited"},
                "assumed": {},
            }
        )
        steady = steady_state(
            self.schedule,
            n_seqs_per_step=self.n_seqs,
            acceptance=model,
            k=self.k + {"k+1": 1, "k-1": -1}.get(mutation, 0),
            draft_time_s=self.ratio * _VERIFY_S,
            verify_time_s=_VERIFY_S,
            overhead_s=_OVERHEAD_S,
            sync_s=0.0 if mutation == "sync" else _SYNC_S,
        )
        steps = simulate_run(prepare(scenario, self.schedule, self.k, seed=seed)).steps
        later = np.flatnonzero(steps["kind"] != int(StepKind.PREFILL))[:n_steps]
        estimate = batch_means_rate(
            steps["n_emitted_tokens"][later],
            (steps["end_s"] - steps["start_s"])[later],
            n_batches=BATCHES,
            warm_up=0.02,
        )
        name = (
            f"{self.schedule} alpha={self.alpha:g} after reject={self.after_reject:g} "
            f"k={self.k} D/V={self.ratio:g} n={self.n_seqs}"
        )
        return [mean_row(self, name, "tokens/s", estimate, steady.output_throughput)]


def ablation_cells() -> list[AblationCell]:
    """Return the cells: batches whose drafting sets the pace, and one request at a time."""
    rates = ((0.5, 0.5), (0.8, 0.8), (0.95, 0.95), (0.95, 0.4), (0.6, 0.9))
    cells = [
        AblationCell(schedule, a, a0, k, 1.25, 32)
        for schedule, (a, a0), k in itertools.product(
            ("pearl-no-post-verify", "pearl-no-pre-verify"), rates, (2, 5)
        )
    ]
    cells += [AblationCell("pearl-no-pre-verify", a, a0, 3, 0.5, 1) for a, a0 in rates]
    cells += [AblationCell("pearl-no-pre-verify", 0.7, 0.7, 1, 0.5, 1)]
    cells += [AblationCell("pearl-no-post-verify", 0.8, 0.5, 4, 0.5, 32)]
    return cells
