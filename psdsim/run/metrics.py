"""The figures of one run, named and defined as vLLM's serving benchmark does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.engine import RawRun
from psdsim.run.saturation import is_saturated
from psdsim.run.steady import decode_window
from psdsim.stats import quantile, weighted_quantile

DEFINITIONS = {
    "output_throughput": "output tokens / time until the last request finished, tokens/s",
    "request_throughput": "requests / time until the last request finished, requests/s",
    "ttft": "first token - arrival (batch and closed loop: includes the wait for admission)",
    "tpot": "(e2el - ttft) / (output tokens - 1) per request; requests of one token left out",
    "itl": "gap between chunks that a client receives, pooled over all chunks (one per step)",
    "e2el": "last token - arrival",
    "acceptance_length": "tokens confirmed per target pass and request, before the stop clips",
    "acceptance_rate": "accepted / drafted tokens",
    "vsr": "accepted / verified tokens",
    "step_cost_ratio": "mean steady step time / that of plain decoding",
    "implied_step_cost_ratio": "acceptance_length / speedup_vs_ar",
    "decode_throughput": "tokens/s over drafting and decode steps before the tail",
}
"""What the printed names mean."""


def run_metrics(
    run: RawRun, *, capacity: int, open_loop: bool, n_replicas: int, n_groups: int
) -> dict[str, Any]:
    """Return the figures of one run.

    Parameters
    ----------
    run
        What the engine left.
    capacity
        Most requests in flight in one replica.
    open_loop
        Whether requests arrive whatever the server does.
    n_replicas
        Copies of the deployment, each with devices of its own.
    n_groups
        Groups of the schedule.
    """
    r, t = run.requests, run.tally
    out = r["output_tokens"]
    span_s = run.makespan_s
    total = int(out.sum())
    e2el = (r["finish_s"] - r["arrival_s"]) * 1e3
    ttft = (r["first_token_s"] - r["arrival_s"]) * 1e3
    many = out > 1
    tpot = (e2el[many] - ttft[many]) / (out[many] - 1)
    gaps, weights = run.gaps.values()
    metrics: dict[str, Any] = {
        "duration_s": span_s,
        "output_throughput": total / span_s,
        "request_throughput": out.size / span_s,
        "total_token_throughput": (total + int(r["prompt_tokens"].sum())) / span_s,
    }
    for name, values in (("ttft", ttft), ("tpot", tpot), ("e2el", e2el)):
        metrics[f"mean_{name}_ms"] = float(values.mean()) if values.size else math.nan
        metrics[f"median_{name}_ms"] = quantile(values, 0.5)
        metrics[f"p99_{name}_ms"] = quantile(values, 0.99)
    metrics["mean_itl_ms"] = run.gaps.mean() * 1e3
    metrics["median_itl_ms"] = weighted_quantile(gaps, weights, 0.5) * 1e3
    metrics["p99_itl_ms"] = weighted_quantile(gaps, weights, 0.99) * 1e3
    busy = span_s * n_replicas
    # Where both models share a device one at a time, it is busy with drafting for draft_time_s.
    draft_s = t.draft_busy_s or t.draft_time_s
    target_s = t.target_busy_s if t.draft_busy_s else t.target_busy_s - t.draft_time_s
    drafted, verified = t.n_drafted, t.n_verified
    metrics |= {
        "acceptance_length": _ratio(t.n_round_tokens, t.n_decode_seq_steps),
        "acceptance_rate": _ratio(t.n_accepted, drafted),
        "vsr": _ratio(t.n_accepted, verified),
        "draft_utilization": draft_s / busy,
        "target_utilization": target_s / busy,
        "drafted_tokens": drafted,
        "accepted_draft_tokens": t.n_accepted,
        "rejected_draft_tokens": verified - t.n_accepted,
        "discarded_draft_tokens": t.n_discarded,
        "dropped_draft_tokens": t.n_dropped,
        "n_steps": t.n_steps,
        "n_preemptions": t.n_preemptions,
        "n_requests": int(out.size),
        "mean_step_batch": _ratio(t.n_decode_seq_steps, t.n_decode_steps),
        "prefill_share": t.prefill_time_s / busy,
        "overhead_share": t.overhead_s / busy,
        "sync_share": t.sync_s / busy,
        "single_group_share": (
            _ratio(t.n_single_group_steps, t.n_decode_steps) if n_groups > 1 else None
        ),
        "imbalance": _ratio(t.imbalance_sum, t.paired_seqs),
        "saturated": open_loop and is_saturated(r),
    }
    return metrics | _steady(run.steps, capacity, open_loop, span_s)


def _steady(
    steps: dict[str, NDArray[Any]], capacity: int, open_loop: bool, span_s: float
) -> dict[str, Any]:
    """Return what only holds before the tail; None throughout where no steps were kept."""
    if not steps["kind"].size:
        names = ("decode_throughput", "mean_step_time_s", "mean_draft_time_s")
        return dict.fromkeys((*names, "mean_verify_time_s", "tail_share"))
    window = np.zeros(steps["kind"].size, dtype=np.bool_)
    tail_s = 0.0
    replicas = np.unique(steps["replica"])
    for replica in replicas:
        own = steps["replica"] == replica
        mask = decode_window(
            {name: column[own] for name, column in steps.items()}, capacity, open_loop
        )
        window[np.flatnonzero(own)[mask]] = True
        tail_s += span_s - (float(steps["end_s"][own][mask][-1]) if mask.any() else span_s)
    s = {name: column[window] for name, column in steps.items()}
    time_s = float((s["end_s"] - s["start_s"]).sum())
    verifies, drafts = s["verify_group"] >= 0, s["draft_group"] >= 0
    return {
        "decode_throughput": _ratio(int(s["n_emitted_tokens"].sum()) * len(replicas), time_s),
        "mean_step_time_s": _ratio(time_s, int(verifies.sum())),
        "mean_draft_time_s": _ratio(float(s["draft_time_s"].sum()), int(drafts.sum())),
        "mean_verify_time_s": _ratio(float(s["verify_time_s"].sum()), int(verifies.sum())),
        "tail_share": tail_s / (span_s * len(replicas)),
    }


def _ratio(a: float, b: float) -> float | None:
    return a / b if b else None
