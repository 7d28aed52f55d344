"""Static halves with random rounds and constant times: the makespan follows from the rounds."""

from __future__ import annotations

from dataclasses import dataclass

from psdsim.api.gates.rows import Mutation, Row, exact_row
from psdsim.engine import simulate_run
from psdsim.run.prepare import prepare
from psdsim.scenario import Scenario

_VERIFY_S = 0.25


@dataclass(frozen=True)
class PairCell:
    """MineDraft on 2m requests and nobody behind them: overlap, then the longer half alone.

    Parameters
    ----------
    forward_s
        One draft forward, s (dyadic, so that sums are exact).
    replication
        Which text; the halves' rounds differ from one to the next.
    """

    forward_s: float
    replication: int
    schedule: str = "minedraft"

    family = "makespan"

    def check(self, seed: int, mutation: Mutation = "none") -> list[Row]:
        """Simulate, take each half's rounds from the request table, and compare the makespan."""
        from analysis.finite_batch import pair_makespan

        k, n_seqs = 4, 4
        scenario = Scenario.builtin(
            {
                "acceptance": {"kind": "iid", "alpha": 0.7},
                "step_time": {
                    "target": {"kind": "constant", "time_s": _VERIFY_S},
                    "draft": {"kind": "constant", "time_s": self.forward_s},
                },
                "workload": {
                    "kind": "batch", "n_requests": 2 * n_seqs, "prompt_tokens": 1,
                    "output_tokens": 40,
                },
                "engine": {"max_num_seqs": n_seqs, "kv_blocks": "unlimited"},
                "assumed": {},
            }
        )  # fmt: skip
        setup = prepare(scenario, self.schedule, k, seed=seed, replication=self.replication)
        raw = simulate_run(setup)
        rounds = raw.requests["n_rounds"]
        # The balance counter deals requests out in turn; a half lasts as long as its slowest.
        first, second = int(rounds[0::2].max()), int(rounds[1::2].max())
        if mutation in ("k+1", "k-1"):
            first += 1 if mutation == "k+1" else -1
        theory = float(pair_makespan(first, second, k * self.forward_s, _VERIFY_S))
        decoding = raw.makespan_s - float(raw.requests["first_token_s"].max())
        name = f"minedraft halves of {first} and {second} rounds, forward={self.forward_s:g}"
        return [exact_row(self, name, "makespan (s)", decoding, theory)]


def pair_cells() -> list[PairCell]:
    """Return the cells: drafting shorter than, as long as and longer than verifying."""
    return [PairCell(f, r) for f in (0.03125, 0.0625, 0.125) for r in range(6)]
