"""Parallel speculative decoding over two sub-batches (MineDraft, arXiv 2603.18016).

While the target verifies one sub-batch, the draft GPU drafts for the other; a step lasts as
long as the slower of the two. D is one drafting phase, V one target pass of a sub-batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, IntArray, count, give, give_counts, nonnegative, positive
from analysis.rounds import acceptance_length_iid
from analysis.special import lambert_excess


def step_time(
    draft_time_s: ArrayLike,
    verify_time_s: ArrayLike,
    overhead_s: ArrayLike = 0.0,
    sync_s: ArrayLike = 0.0,
) -> FloatArray:
    """Return overhead + max(D, V) + sync.

    Examples
    --------
    >>> float(step_time(0.25, 0.5, 0.125, 0.0625))
    0.6875
    """
    longer = np.maximum(
        nonnegative("draft_time_s", draft_time_s), nonnegative("verify_time_s", verify_time_s)
    )
    return give(longer + nonnegative("overhead_s", overhead_s) + nonnegative("sync_s", sync_s))


def speedup_over_sd(draft_time_s: ArrayLike, verify_time_s: ArrayLike) -> FloatArray:
    """Return (D + V) / max(D, V): same requests verified per step, no overheads; at most 2.

    MineDraft then holds twice the requests in flight, on one more device.

    Examples
    --------
    >>> speedup_over_sd([1.0, 1.0, 0.5], [1.0, 3.0, 1.0]).round(6).tolist()
    [2.0, 1.333333, 1.5]
    """
    d, v = nonnegative("draft_time_s", draft_time_s), positive("verify_time_s", verify_time_s)
    return give((d + v) / np.maximum(d, v))


def speedup_per_gpu(
    draft_time_s: ArrayLike,
    verify_time_s: ArrayLike,
    n_target_gpus: ArrayLike,
    n_draft_gpus: ArrayLike = 1,
) -> FloatArray:
    """Return `speedup_over_sd` times G / (G + g): throughput per GPU against SD on G alone.

    Examples
    --------
    >>> float(speedup_per_gpu(1.0, 1.0, 4))
    1.6
    """
    g, extra = positive("n_target_gpus", n_target_gpus), nonnegative("n_draft_gpus", n_draft_gpus)
    return give(speedup_over_sd(draft_time_s, verify_time_s) * g / (g + extra))


def speedup_at_equal_concurrency(
    draft_time_s: ArrayLike,
    verify_time_s: ArrayLike,
    half_draft_s: ArrayLike,
    half_verify_s: ArrayLike,
) -> FloatArray:
    """Return (D + V) / (2 max(D', V')), D' and V' being the phases of half the batch.

    Splitting pays only if half a batch takes clearly less than a whole one: with D' = D and
    V' = V (memory-bound passes) the ratio is at most 1.

    Examples
    --------
    >>> float(speedup_at_equal_concurrency(1.0, 1.0, 1.0, 1.0))
    1.0
    >>> float(speedup_at_equal_concurrency(1.0, 1.0, 0.5, 0.5))
    2.0
    """
    whole = nonnegative("draft_time_s", draft_time_s) + positive("verify_time_s", verify_time_s)
    half = np.maximum(
        nonnegative("half_draft_s", half_draft_s), positive("half_verify_s", half_verify_s)
    )
    return give(whole / (2.0 * half))


def best_k(
    alpha: ArrayLike,
    draft_cost_ratio: ArrayLike,
    *,
    per_token_ratio: ArrayLike = 0.0,
    max_k: int = 64,
) -> IntArray:
    """Return the integer k that maximises E[N] / max(k c, 1 + v (k + 1)).

    With a constant verify time (v = 0) that is the floor or the ceiling of 1/c: draft as long as
    it is hidden.

    Parameters
    ----------
    alpha
        In [0, 1].
    draft_cost_ratio
        One draft forward / the fixed part of a target pass, > 0.
    per_token_ratio
        What each fed token per request adds to a target pass, in the same unit.
    max_k
        Largest k considered, >= 1.

    Examples
    --------
    >>> best_k([0.5, 0.9], 0.25).tolist()
    [4, 4]
    """
    c = positive("draft_cost_ratio", draft_cost_ratio)
    v = nonnegative("per_token_ratio", per_token_ratio)
    a, c, v = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), c, v)
    k = np.arange(1, max_k + 1)
    time = np.maximum(k * c[..., None], 1.0 + v[..., None] * (k + 1))
    rate = acceptance_length_iid(a[..., None], k) / time
    return give_counts(1 + np.argmax(rate, axis=-1))


def makespan_deterministic(
    n_rounds: ArrayLike,
    draft_time_s: ArrayLike,
    verify_time_s: ArrayLike,
    overhead_s: ArrayLike = 0.0,
    sync_s: ArrayLike = 0.0,
) -> FloatArray:
    """Return the time for two full sub-batches to finish n rounds each, prefill left out.

    One draft-only step, 2n - 1 overlapped steps, and the last sub-batch verified alone.

    Examples
    --------
    >>> float(makespan_deterministic(2, 1.0, 3.0))   # 1 + 3 x 3 + 3
    13.0
    """
    n = count("n_rounds", n_rounds, 1)
    o, s = nonnegative("overhead_s", overhead_s), nonnegative("sync_s", sync_s)
    d, v = nonnegative("draft_time_s", draft_time_s), nonnegative("verify_time_s", verify_time_s)
    return give((o + d + s) + (2 * n - 1) * step_time(d, v, o, s) + (o + v))


def continuous_ratio(x: ArrayLike) -> FloatArray:
    """Return R(x), SD time / PSD time when tokens accepted in drafting time t are 1 - exp(-at).

    MineDraft's continuous theorem with x = aV (theory note 5): both schedules draft for the
    best time, SD for t_S with 1 + x_S + x = exp(x_S), PSD for V, so that
    R = (1 - exp(-x)) exp(x_S) / x. Its maximum is 2, at x = 1.2564, where SD's own best
    drafting time is V; R goes to 1 on both sides.

    Parameters
    ----------
    x
        Acceptance rate times verify time, > 0.

    Examples
    --------
    >>> round(float(continuous_ratio(1.2564312086)), 9)
    2.0
    """
    value = positive("x", x)
    # exp(x_S) = 1 + x_S + x; with w = 1 + x_S + x: w - ln w = 1 + x.
    w = 1.0 + lambert_excess(value)
    return give(-np.expm1(-value) * w / value)
