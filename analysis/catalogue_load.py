"""Entries of the catalogue about load: equal GPUs, open arrivals, stability."""

from __future__ import annotations

import numpy as np

from analysis._kinds import Approximation
from analysis.catalogue import Formula, Inputs, NotApplicable
from analysis.finite import expected_rounds
from analysis.new_results import equal_gpu_ratio, stability_limits
from analysis.psd_groups import AffineTimes
from analysis.queues_batching import continuous_batching_fixed_point


def _interpolated(i: Inputs, full_s: float, half_s: float, n_seqs: float) -> float:
    """Return a phase of n requests from those of a full and of half a batch, linear in n."""
    slope = (full_s - half_s) / (i.n_seqs / 2)
    return max(full_s + slope * (n_seqs - i.n_seqs), 0.0)


def _running(i: Inputs, parallel: bool) -> Approximation:
    if i.arrival_rate is None:
        raise NotApplicable("arrivals are not open")
    rounds = expected_rounds(i.n_tokens, i.tokens_pmf)
    rate = i.arrival_rate / i.n_replicas
    # Every arrival stalls decoding for one prefill step; on two devices both prompts run at once.
    target_s, draft_s = i.target_prefill_s, i.draft_prefill_s
    beside = parallel or i.serial_beside
    prompt_s = max(target_s, draft_s) if beside else target_s + draft_s
    decoding = 1.0 - rate * (i.step_overhead_s(1.0) + prompt_s)
    if parallel:
        _ = i.overlapping  # where passes slow each other, there is no such formula
    if decoding <= 0.0:
        raise NotApplicable("prefill alone takes all the time")

    def period(n_seqs: float) -> float:
        share = n_seqs / 2 if parallel else n_seqs
        draft = _interpolated(i, i.draft_phase_s, i.half_draft_s, share)
        verify = _interpolated(i, i.verify_s, i.half_verify_s, share)
        overhead = i.step_overhead_s(share)
        if parallel:
            return 2.0 * (overhead + max(draft, verify) + i.sync_s) / decoding
        return (overhead + draft + verify + i.serial_sync_s) / decoding

    return continuous_batching_fixed_point(rate, rounds, period)


def _latency(i: Inputs, parallel: bool) -> Approximation:
    running = _running(i, parallel)
    assert i.arrival_rate is not None
    return Approximation(
        float(np.asarray(running.value)) / (i.arrival_rate / i.n_replicas),
        running.error,
        "Little's law on the fixed point; waiting for admission left out",
    )


def _affine(i: Inputs) -> AffineTimes:
    """Return affine times through the phases of a full and of half a batch."""
    if i.k == 0 or i.draft_phase_s == 0.0:
        raise NotApplicable("nothing is drafted")
    d1 = max(i.draft_phase_s - i.half_draft_s, 0.0) / (i.n_seqs / 2) / i.k
    v1 = max(i.verify_s - i.half_verify_s, 0.0) / (i.n_seqs / 2) / (i.k + 1)
    return AffineTimes(
        max(i.draft_phase_s / i.k - d1 * i.n_seqs, 0.0),
        d1,
        max(i.verify_s - v1 * (i.k + 1) * i.n_seqs, 0.0),
        v1,
    )


def _stability(i: Inputs, which: int) -> float:
    if which:
        _ = i.overlapping
    rounds = expected_rounds(i.n_tokens, i.tokens_pmf)
    return float(i.n_replicas * stability_limits(_affine(i), i.k, rounds)[which])


def _equal_gpus(i: Inputs) -> float:
    i.serial_drafts_on_target()
    _ = i.overlapping
    return float(equal_gpu_ratio(_affine(i), i.n_seqs, i.k, i.n_target_gpus, i.n_draft_gpus))


LOAD: tuple[Formula, ...] = (
    Formula(
        "minedraft_equal_gpu_ratio",
        "R_gpu", "MineDraft / serial SD per GPU, same requests per GPU",
        "[D(m) + V(m)] / (2 max(D, V)(m (1 + g/G)/2))",
        ("step times linear in the batch", "no overheads"),
        "this project (analysis.new_results)",
        _equal_gpus,
    ),
    Formula(
        "sd_stability_limit", "lambda_SD", "arrival rate that serial SD sustains, requests/s",
        "1 / (E[R_n] (slope of D + slope of V))",
        ("batches without limit", "step times linear in the batch", "prefill left out"),
        "this project (analysis.new_results)",
        lambda i: _stability(i, 0),
    ),
    Formula(
        "minedraft_stability_limit", "lambda_PSD", "arrival rate that MineDraft sustains",
        "1 / (E[R_n] max(slope of D, slope of V))",
        ("batches without limit", "step times linear in the batch", "prefill left out"),
        "this project (analysis.new_results)",
        lambda i: _stability(i, 1),
    ),
    Formula(
        "sd_running", "B", "requests running at once, serial SD under open arrivals",
        "B = lambda E[R_n] T(B) / (1 - lambda T_prefill)",
        ("Poisson-like arrivals", "step time linear in the batch", "a prefill step per request"),
        "theory note 4.6",
        lambda i: _running(i, False),
    ),
    Formula(
        "sd_latency", "W", "mean decode latency, serial SD under open arrivals, s",
        "W = B / lambda",
        ("Poisson-like arrivals", "step time linear in the batch", "a prefill step per request"),
        "theory note 4.6",
        lambda i: _latency(i, False),
    ),
    Formula(
        "minedraft_running", "B_PSD", "requests running at once, MineDraft under open arrivals",
        "B = lambda E[R_n] 2 (max(D(B/2), V(B/2)) + overhead + sync) / (1 - lambda T_prefill)",
        ("Poisson-like arrivals", "step time linear in the batch", "a prefill step per request"),
        "this project; theory note 4.6 with two halves",
        lambda i: _running(i, True),
    ),
    Formula(
        "minedraft_latency", "W_PSD", "mean decode latency, MineDraft under open arrivals, s",
        "W = B_PSD / lambda",
        ("Poisson-like arrivals", "step time linear in the batch", "a prefill step per request"),
        "this project; theory note 4.6 with two halves",
        lambda i: _latency(i, True),
    ),
)  # fmt: skip
"""What load does, and what more GPUs do."""
