"""Small parts for tests of methods: schedules with options, rounds, a scenario in one line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psdsim import Scenario
from tests.engine.kit import make_setup, run, work

FIELDS = ("kind", "draft_time_s", "verify_time_s", "n_drafted_tokens", "n_verified_tokens",
          "n_accepted_tokens", "n_emitted_tokens")  # fmt: skip


def bound(cls: type, **options: Any) -> type:
    """Return the schedule with these options, as a class that the engine's kit can build."""

    class Bound(cls):  # type: ignore[misc]
        def __init__(self, k: int, capacity: int, *, chunked: bool = False) -> None:
            super().__init__(k, capacity, chunked=chunked, **options)

    return Bound


def log(raw: Any) -> list[tuple[float, ...]]:
    """Return the steps, prefill left out."""
    columns = [raw.steps[name] for name in FIELDS]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [row[1:] for row in rows if row[0] != 0]


def first_rounds(raw: Any, n_rounds: int) -> np.ndarray:
    """Return accepted drafts of the first rounds of every request, shape (requests, n_rounds).

    A stated number of rounds a request: how long an output lasts must not choose among them.
    """
    return np.stack([accepted[:n_rounds] for accepted in raw.rounds.accepted])


def rounds_of(cls: type, k: int, acceptance: Any, *, n: int = 64, n_rounds: int = 400, **more: Any):
    """Run n requests for at least n_rounds rounds and return what these accepted."""
    longest = more.pop("longest", k)
    raw = run("sd", k, work([n_rounds * (longest + 1) + 2] * n), m=n, schedule_class=cls,
              acceptance=acceptance, record_rounds=True, record_steps=False, **more)  # fmt: skip
    return first_rounds(raw, n_rounds)


def close(accepted: np.ndarray, theory: float, mutant: float) -> None:
    """Assert 4.5 standard errors to theory and at least 9 from what a mutation would give.

    Requests are independent of each other, so their means give the standard error.
    """
    means = accepted.mean(axis=1)
    error = means.std(ddof=1) / math.sqrt(means.size)
    assert abs(means.mean() - theory) < 4.5 * error, (means.mean(), theory, error)
    assert abs(mutant - theory) > 9 * error, (mutant, theory, error)
    assert abs(means.mean() - mutant) > 4.5 * error


def scenario(**more: Any) -> Scenario:
    """Return a small batch on constant dyadic times."""
    return Scenario.builtin(
        {
            "acceptance": {"kind": "iid", "alpha": 0.75},
            "step_time": {
                "target": {"kind": "constant", "time_s": 0.25},
                "draft": {"kind": "constant", "time_s": 0.0625},
            },
            "workload": {
                "kind": "batch", "n_requests": 8, "prompt_tokens": 4, "output_tokens": 40,
            },
            "engine": {"max_num_seqs": 4, "kv_blocks": "unlimited"},
            "assumed": {},
        }
        | more
    )  # fmt: skip


__all__ = ["bound", "close", "first_rounds", "log", "make_setup", "rounds_of", "run", "scenario",
           "work"]  # fmt: skip
