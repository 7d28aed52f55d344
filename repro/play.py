"""Published settings played by the simulator: requests of one batch-1 server, constant step times.

A step takes the same time whatever the batch, so requests run side by side, each as if it were
alone. Not so without pre-verify, where the step depends on whether anybody is verified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from psdsim import Scenario
from psdsim.engine import simulate_run
from psdsim.run.prepare import prepare

SEED = 20241
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Play:
    """What each request decoded, in what time and in how many target passes."""

    tokens: NDArray[np.float64]
    time_s: NDArray[np.float64]
    passes: NDArray[np.float64]
    drafted: NDArray[np.float64]
    accepted: NDArray[np.float64]


def ratio(amount: NDArray[np.float64], by: NDArray[np.float64]) -> tuple[float, Interval]:
    """Return sum / sum over independent requests, with its 95 % interval (delta method)."""
    n = amount.size
    value = float(amount.sum() / by.sum())
    error = float((amount - value * by).std(ddof=1) / (math.sqrt(n) * by.mean()))
    half = float(stats.t.ppf(0.975, n - 1)) * error
    return value, (value - half, value + half)


@cache
def play(
    schedule: str,
    k: int,
    alpha: float,
    after_reject: float,
    draft_s: float,
    target_s: float,
    size: tuple[int, int],
) -> Play:
    """Simulate `size` = (requests, output tokens) under a chain of acceptances."""
    acceptance = (
        {"kind": "iid", "alpha": alpha}
        if alpha == after_reject
        else {"kind": "markov", "after_accept": alpha, "after_reject": after_reject}
    )
    together = 1 if schedule == "pearl-no-pre-verify" else size[0]
    scenario = Scenario.builtin(
        {
            "acceptance": acceptance,
            "step_time": {
                "target": {"kind": "constant", "time_s": target_s},
                "draft": {"kind": "constant", "time_s": draft_s},
            },
            "workload": {
                "kind": "batch",
                "n_requests": size[0],
                "prompt_tokens": 1,
                "output_tokens": size[1],
            },
            "engine": {"max_num_seqs": together, "kv_blocks": "unlimited"},
            "assumed": {},
        }
    )
    run = simulate_run(prepare(scenario, schedule, k, seed=SEED, record_steps=False))
    columns = run.requests
    return Play(
        tokens=(columns["output_tokens"] - 1).astype(np.float64),
        time_s=columns["finish_s"] - columns["first_token_s"],
        passes=columns["n_rounds"].astype(np.float64),
        drafted=columns["n_drafted_tokens"].astype(np.float64),
        accepted=columns["n_accepted_tokens"].astype(np.float64),
    )
