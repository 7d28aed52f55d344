"""Finite outputs: mean, variance and law of the rounds a request needs, and a batch's slowest."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from psdsim.acceptance import IidAcceptance
from psdsim.api.gates.rows import Mutation, Row, law_row, sample_row, variance_row
from psdsim.engine import simulate_run
from psdsim.run.prepare import prepare
from psdsim.scenario import Scenario

_BATCH = 8


@dataclass(frozen=True)
class FiniteCell:
    """Rounds per request of many requests with the same output length.

    Parameters
    ----------
    schedule
        ``sd``, ``minedraft`` or ``pearl``.
    alpha, k
        i.i.d. acceptance, drafted tokens per round.
    n_tokens
        Tokens decoded by each request (the first one comes from prefill).
    """

    schedule: str
    alpha: float
    k: int
    n_tokens: int
    n_requests: int = 3200

    family = "finite"

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Simulate the cell: mean and, for chain rounds, variance, law and batch maximum."""
        from analysis import finite, pearl
        from analysis.finite_batch import expected_max_rounds
        from analysis.finite_law import rounds_survival

        scenario = Scenario.builtin(
            {
                "acceptance": {"kind": "iid", "alpha": self.alpha},
                "workload": {
                    "kind": "batch",
                    "n_requests": self.n_requests,
                    "prompt_tokens": 1,
                    "output_tokens": self.n_tokens + 1,
                },
                "engine": {"max_num_seqs": 64, "kv_blocks": "unlimited"},
                "assumed": {},
            }
        )
        rounds = simulate_run(prepare(scenario, self.schedule, self.k, seed=seed)).requests[
            "n_rounds"
        ]
        alpha = min(1.0, self.alpha + 0.01) if mutation == "alpha" else self.alpha
        k = self.k + {"k+1": 1, "k-1": -1}.get(mutation, 0)
        name = f"{self.schedule} alpha={self.alpha:g} k={self.k} tokens={self.n_tokens}"
        if self.schedule == "pearl":
            mean = pearl.expected_steps(self.n_tokens, alpha, k)
            return [sample_row(self, name, "mean steps", rounds, mean)]
        # A lost bonus token moves every round one token down, the empty round aside.
        law = IidAcceptance(alpha=alpha).pmf(k)
        tokens = np.concatenate([[0.0], law])
        if mutation == "bonus":
            tokens[k] += tokens[k + 1]
            tokens[k + 1] = 0.0
        survival = rounds_survival(self.n_tokens, tokens)
        pmf = -np.diff(survival, prepend=1.0)
        rows = [
            sample_row(
                self, name, "mean rounds", rounds, finite.expected_rounds(self.n_tokens, tokens)
            ),
            variance_row(
                self, name, "variance", rounds, finite.variance_rounds(self.n_tokens, tokens)
            ),
            law_row(self, name, "law of rounds", rounds, pmf),
        ]
        if self.n_tokens <= 64:
            slowest = rounds.reshape(-1, _BATCH).max(axis=1)
            theory = expected_max_rounds(self.n_tokens, tokens, _BATCH)
            rows.append(sample_row(self, name, f"max of {_BATCH}", slowest, theory))
        return rows


def finite_cells() -> list[FiniteCell]:
    """Return the cells: lengths from a block or two to hundreds of tokens."""
    cells = [
        FiniteCell("sd", alpha, k, n)
        for alpha, k, n in itertools.product((0.5, 0.8, 0.95), (2, 4, 8), (16, 64, 256))
    ]
    cells += [FiniteCell("minedraft", 0.8, k, 64) for k in (2, 6)]
    cells += [FiniteCell("pearl", a, k, n) for a in (0.5, 0.8) for k in (2, 5) for n in (16, 128)]
    return cells
