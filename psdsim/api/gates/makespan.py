"""Deterministic makespans: certain acceptance and dyadic times, so that sums are exact."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from psdsim.api.gates.rows import Mutation, Row, exact_row, sum_row
from psdsim.engine import simulate_run
from psdsim.run.prepare import prepare
from psdsim.scenario import Scenario

_VERIFY_S, _OVERHEAD_S, _SYNC_S = 0.25, 0.0625, 0.015625


@dataclass(frozen=True)
class MakespanCell:
    """Full batches that all finish together: the run is a max-plus sum.

    Parameters
    ----------
    schedule
        ``ar``, ``sd``, ``minedraft`` or ``pearl``.
    k
        Drafted tokens per round.
    forward_s
        One draft forward, s.
    n_rounds
        Rounds of each request.
    """

    schedule: str
    k: int
    forward_s: float
    n_rounds: int

    family = "makespan"

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Simulate the cell and compare its makespan, s."""
        from analysis import psd, sd

        k = self.k
        per_round = {"ar": 1, "sd": k + 1, "minedraft": k + 1, "pearl": k}[self.schedule]
        # PEARL's first step of a request is a pre-verify one and gives a single token.
        tokens = self.n_rounds * per_round + (1 - k if self.schedule == "pearl" else 0)
        n_seqs = 4
        scenario = Scenario.builtin(
            {
                "acceptance": {"kind": "iid", "alpha": 1.0},
                "step_time": {
                    "target": {"kind": "constant", "time_s": _VERIFY_S},
                    "draft": {"kind": "constant", "time_s": self.forward_s},
                    "step_overhead_s": _OVERHEAD_S,
                    "sync_s": _SYNC_S,
                },
                "workload": {
                    "kind": "batch",
                    "n_requests": n_seqs * (2 if self.schedule == "minedraft" else 1),
                    "prompt_tokens": 1,
                    "output_tokens": tokens + 1,
                },
                "engine": {"max_num_seqs": n_seqs, "kv_blocks": "unlimited"},
                "assumed": {},
            }
        )
        raw = simulate_run(prepare(scenario, self.schedule, k, seed=seed))
        decoding = raw.makespan_s - float(raw.requests["first_token_s"].max())
        sync_s = 0.0 if mutation == "sync" else _SYNC_S
        draft_s = k * self.forward_s
        n = self.n_rounds + {"k+1": 1, "k-1": -1}.get(mutation, 0)
        if self.schedule == "minedraft":
            theory = float(psd.makespan_deterministic(n, draft_s, _VERIFY_S, _OVERHEAD_S, sync_s))
        elif self.schedule == "pearl":
            theory = n * float(psd.step_time(draft_s, _VERIFY_S, _OVERHEAD_S, sync_s))
        else:
            drafting = draft_s if self.schedule == "sd" else 0.0
            theory = n * float(sd.step_time(drafting, _VERIFY_S, _OVERHEAD_S))
        name = f"{self.schedule} k={k} D={draft_s:g} rounds={self.n_rounds}"
        return [exact_row(self, name, "makespan (s)", decoding, theory)]


@dataclass(frozen=True)
class BarrierCell:
    """MineDraft under jitter against the recursion without a barrier: equal on every path.

    Parameters
    ----------
    cv
        Coefficient of variation of both phases.
    forward_s
        One draft forward, s.
    """

    cv: float
    forward_s: float
    schedule: str = "minedraft"

    family = "makespan"

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Simulate two full halves and redo the run from its recorded pass times."""
        from analysis.recursion import makespan_without_barrier

        k, n_seqs = 4, 4
        scenario = Scenario.builtin(
            {
                "acceptance": {"kind": "iid", "alpha": 1.0},
                "step_time": {
                    "target": {"kind": "constant", "time_s": _VERIFY_S},
                    "draft": {"kind": "constant", "time_s": self.forward_s},
                    "jitter_cv": self.cv,
                },
                "workload": {
                    "kind": "batch", "n_requests": 2 * n_seqs, "prompt_tokens": 1,
                    "output_tokens": 1 + 200 * (k + 1),
                },
                "engine": {"max_num_seqs": n_seqs, "kv_blocks": "unlimited"},
                "assumed": {},
            }
        )  # fmt: skip
        raw = simulate_run(prepare(scenario, self.schedule, k, seed=seed))
        steps = raw.steps
        draft = steps["draft_time_s"][steps["draft_group"] >= 0]
        verify = steps["verify_time_s"][steps["verify_group"] >= 0]
        decoding = raw.makespan_s - float(raw.requests["first_token_s"].max())
        # One group less is another system: the check must notice it.
        n_groups = 1 if mutation == "sync" else 2
        theory = makespan_without_barrier(draft, verify, n_groups)
        name = f"minedraft no barrier cv={self.cv:g} forward={self.forward_s:g}"
        return [sum_row(self, name, "makespan (s)", decoding, theory)]


def makespan_cells() -> list[MakespanCell | BarrierCell]:
    """Return the cells: drafting shorter than, as long as and longer than verifying."""
    cells: list[MakespanCell | BarrierCell] = [MakespanCell("ar", 0, 0.0625, n) for n in (1, 7)]
    for schedule, forward_s, n in itertools.product(
        ("sd", "minedraft", "pearl"), (0.03125, 0.0625, 0.125), (1, 2, 9)
    ):
        cells.append(MakespanCell(schedule, 4, forward_s, n))
    cells += [BarrierCell(cv, forward_s) for cv in (0.0, 0.3, 1.0) for forward_s in (0.03, 0.07)]
    return cells
