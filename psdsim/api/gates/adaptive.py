"""Methods that choose lengths or drafts as they go: tokens/s of one request, or of a full batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psdsim.acceptance.confidence import auc
from psdsim.api.gates.rows import Mutation, Row, mean_row, window_rate
from psdsim.scenario import Scenario

_VERIFY_S, _ROW_S, _FORWARD_S, _OVERHEAD_S = 0.02, 1e-4, 0.002, 0.001


@dataclass(frozen=True)
class AdaptiveCell:
    """Decode throughput of a method whose rounds have a closed form.

    Confidences and answers lie on the text, so a round that begins within the reach of the one
    before sees some of them again. The closed forms are those of a fresh round; the difference
    is below what these runs resolve (largest seen: 0.3 % of the drafted tokens).

    Parameters
    ----------
    schedule
        ``specdec++``, ``pacer``, ``tetris`` or ``dspark``, with knobs.
    alpha
        P(accept), i.i.d.
    k
        Largest draft length.
    n_seqs
        Requests in flight.
    first, second
        specdec++: threshold; pacer: rates of yes where all is accepted and where not; tetris:
        extra drafts. Unused ones are 0.
    n_seq_steps
        Target passes times requests.
    """

    schedule: str
    alpha: float
    k: int
    n_seqs: int = 1
    first: float = 0.0
    second: float = 0.0
    n_seq_steps: int = 20_000

    family = "adaptive"

    @property
    def spec(self) -> str:
        """The method with its knobs."""
        if self.schedule == "specdec++":
            # Confidences Beta(n, 1) with mean alpha, whose round has a closed form.
            return f"specdec++:threshold={self.first}:auc={auc(self.alpha, 1 / (1 - self.alpha))!r}"
        if self.schedule == "pacer":
            return f"pacer:block=2:tpr={self.first}:fpr={self.second}"
        if self.schedule == "tetris":
            return f"tetris:extra={self.first:.0f}:auc=0.5"
        return "dspark:auc=0.5:profile=0:drafter=0.1:head=0:whole_step=0"

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Simulate the cell and compare its decode throughput, tokens/s."""
        n_steps = math.ceil(self.n_seq_steps / self.n_seqs)
        # So that no request ends within the window: six standard deviations of k + 1 a round.
        mean = self._round(self.alpha, self.k)[0]
        n_tokens = math.ceil(n_steps * mean + 6 * (self.k + 1) * math.sqrt(n_steps))
        scenario = Scenario.builtin(
            {
                "acceptance": {"kind": "iid", "alpha": self.alpha},
                "step_time": {
                    "target": {"kind": "affine", "base_s": _VERIFY_S, "per_token_s": _ROW_S},
                    "draft": {"kind": "constant", "time_s": _FORWARD_S},
                    "step_overhead_s": _OVERHEAD_S,
                },
                "workload": {
                    "kind": "batch",
                    "n_requests": self.n_seqs,
                    "prompt_tokens": 1,
                    "output_tokens": n_tokens,
                },
                "engine": {"max_num_seqs": self.n_seqs, "kv_blocks": "unlimited"},
                "assumed": {},
            }
        )
        estimate = window_rate(scenario, self.spec, self.k, seed, n_steps)
        name = f"{self.spec} alpha={self.alpha:g} k={self.k} n={self.n_seqs}"
        return [mean_row(self, name, "tokens/s", estimate, self.theory(mutation))]

    def theory(self, mutation: Mutation = "none") -> float:
        """Return tokens/s from the means of a round."""
        alpha = self.alpha + (0.01 if mutation == "alpha" else 0.0)
        k = self.k + {"k+1": 1, "k-1": -1}.get(mutation, 0)
        tokens, n_forwards, n_verified = self._round(alpha, k)
        if mutation == "bonus":
            tokens -= alpha**k
        draft_s = n_forwards * _FORWARD_S
        if self.schedule == "dspark":
            # A tenth of a target pass over k rows each.
            draft_s = 0.1 * (_VERIFY_S + _ROW_S * self.n_seqs * k)
        verify_s = _VERIFY_S + _ROW_S * self.n_seqs * (1.0 + n_verified)
        return self.n_seqs * tokens / (_OVERHEAD_S + draft_s + verify_s)

    def _round(self, alpha: float, k: int) -> tuple[float, float, float]:
        """Return means of a request's round: tokens, forwards, drafted tokens verified."""
        from analysis.dspark import prefix_schedule
        from analysis.pacer import block_round
        from analysis.rounds import acceptance_length_iid
        from analysis.stopping import power_round

        if self.schedule == "specdec++":
            tokens, drafted = power_round(alpha, 1.0 - self.first)
            return tokens, drafted, drafted
        if self.schedule == "pacer":
            found = block_round(alpha, k, 2, self.first, self.second)
            return found.tokens, found.drafted, found.verified
        if self.schedule == "tetris":
            return float(acceptance_length_iid(alpha, k)), k + self.first, k
        survival = np.tile(alpha ** np.arange(1, k + 1), (self.n_seqs, 1))
        rows = np.arange(1, self.n_seqs * (k + 1) + 1)
        lengths = prefix_schedule(survival, 1.0 / (_VERIFY_S + _ROW_S * rows))
        tokens = 1.0 + sum(survival[0, :length].sum() for length in lengths) / self.n_seqs
        return tokens, 0.0, float(lengths.mean())


def adaptive_cells() -> list[AdaptiveCell]:
    """Return the cells."""
    return [
        AdaptiveCell("specdec++", 0.8, 20, first=0.6, n_seq_steps=26_000),
        AdaptiveCell("specdec++", 0.6, 20, first=0.9),
        AdaptiveCell("pacer", 0.8, 8, first=0.9, second=0.2),
        AdaptiveCell("pacer", 0.9, 7, first=0.8, second=0.8),
        AdaptiveCell("pacer", 0.9, 12, first=1.0, second=0.0),
        AdaptiveCell("tetris", 0.7, 3, 8, first=2, n_seq_steps=60_000),
        AdaptiveCell("tetris", 0.9, 5, 16, first=1, n_seq_steps=60_000),
        AdaptiveCell("dspark", 0.8, 6, 8, n_seq_steps=60_000),
        AdaptiveCell("dspark", 0.8, 6, 32, n_seq_steps=60_000),
        AdaptiveCell("dspark", 0.9, 7, 64, n_seq_steps=60_000),
    ]
