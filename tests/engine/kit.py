"""Small parts for engine tests: dyadic step times, scripted verdicts, ready-made setups."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from psdsim.acceptance import IidAcceptance, TapeModel
from psdsim.engine import Costs, EngineSetup, RawRun, simulate_run
from psdsim.schedules import SCHEDULES
from psdsim.workload import Requests


class Timer:
    """An affine step time with exact (dyadic) coefficients."""

    jitter = "none"

    def __init__(self, base: float, per_seq=0.0, per_token=0.0, per_kv=0.0, *, loop=False):
        self._c = (base, per_seq, per_token, per_kv)
        # loop=True makes the engine add up forwards one by one.
        self.affine = None if loop else self._c
        self.notes: set[str] = set()

    def __call__(self, n_seqs, n_tokens, n_kv_tokens):
        a, b, c, d = self._c
        return a + b * n_seqs + c * n_tokens + d * n_kv_tokens


class Scripted(TapeModel):
    """Verdicts written down by the test: bits[request][output position]; beyond them: accept."""

    bits: tuple[tuple[int, ...], ...]

    def conditional_rates(self, k):
        return np.ones(k)

    def accept_bits(self, u, row_start, request_u):
        out = np.ones(u.size, dtype=bool)
        for row, start in zip(self.bits, row_start, strict=False):
            out[start : start + len(row)] = np.array(row, dtype=bool)
        return out


def work(output, prompt=1, arrival=None, **more) -> Requests:
    output = np.atleast_1d(np.asarray(output))
    n = output.size
    arrival = np.zeros(n) if arrival is None else np.asarray(arrival, dtype=float)
    prompts = np.full(n, prompt) if np.isscalar(prompt) else np.asarray(prompt)
    return Requests(arrival, prompts, output, open_loop=bool(arrival.any()), **more)


def make_setup(
    schedule: str,
    k: int,
    requests: Requests,
    *,
    m: int = 4,
    capacity: int | None = None,
    acceptance=None,
    target: Any = None,
    draft: Any = None,
    overhead: float = 0.0,
    sync: float = 0.0,
    cost: dict | None = None,
    chunked: bool = False,
    schedule_class=None,
    **more,
) -> EngineSetup:
    cls = schedule_class or SCHEDULES[schedule]
    n_slots = capacity if capacity is not None else m * cls.n_groups
    make = partial(cls, k, n_slots, chunked=chunked)
    drafts = make().k > 0
    more.setdefault("placement", "separate" if cls.overlaps else "colocated")
    return EngineSetup(
        make_schedule=make,
        acceptance=acceptance if acceptance is not None else IidAcceptance(alpha=0.7),
        costs=Costs(
            target=target or Timer(0.25),
            draft=(draft or Timer(0.0625)) if drafts else None,
            step_overhead_s=overhead,
            sync_s=sync,
            **(cost or {}),
        ),
        requests=requests,
        **more,
    )


def run(*args, **kwargs) -> RawRun:
    return simulate_run(make_setup(*args, **kwargs))


def conserved(raw: RawRun) -> None:
    """Every token is accounted for, every request got what it asked for, time adds up."""
    t, r = raw.tally, raw.requests
    rejected = t.n_verified - t.n_accepted
    assert t.n_drafted == t.n_accepted + rejected + t.n_dropped + t.n_discarded
    assert rejected >= 0
    assert t.n_emitted == r["output_tokens"].sum()
    assert r["n_drafted_tokens"].sum() == t.n_drafted
    assert r["n_accepted_tokens"].sum() == t.n_accepted
    assert not np.isnan(r["finish_s"]).any()
    assert (r["finish_s"] >= r["first_token_s"]).all()
    assert (r["first_token_s"] >= r["admitted_s"]).all()
    assert (r["admitted_s"] >= r["arrival_s"]).all()
    slack = 1e-9 * max(raw.makespan_s, 1.0)
    n = int(raw.steps["replica"].max()) + 1
    assert t.target_busy_s <= n * raw.makespan_s + slack
    assert t.draft_busy_s <= n * raw.makespan_s + slack
    assert (raw.steps["end_s"] >= raw.steps["start_s"]).all()
