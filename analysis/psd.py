"""Parallel speculative decoding over two sub-batches (MineDraft, arXiv 2603.18016).

While the target verifies one sub-batch, the draft GPU drafts for the other; a step lasts as
long as the slower of the two. D is one drafting phase, V one target pass of a sub-batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis import sd
from analysis._checks import (
    FloatArray,
    IntArray,
    between,
    count,
    give,
    give_counts,
    nonnegative,
    one_count,
    positive,
    probability,
)
from analysis.psd_continuous import continuous_ratio as continuous_ratio
from analysis.rounds import acceptance_length_iid


def step_time(
    draft_time_s: ArrayLike,
    verify_time_s: ArrayLike,
    overhead_s: ArrayLike = 0.0,
    sync_s: ArrayLike = 0.0,
) -> FloatArray:
    """Return overhead + max(D, V) + sync.

    Parameters
    ----------
    draft_time_s, verify_time_s, overhead_s, sync_s
        D, V, fixed costs and the barrier, s, >= 0.

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

    Parameters
    ----------
    draft_time_s, verify_time_s
        D and V, s, >= 0, V > 0.

    Examples
    --------
    >>> speedup_over_sd([1.0, 1.0, 0.5], [1.0, 3.0, 1.0]).round(6).tolist()
    [2.0, 1.333333, 1.5]
    """
    d, v = nonnegative("draft_time_s", draft_time_s), positive("verify_time_s", verify_time_s)
    return give((d + v) / np.maximum(d, v))


def token_interval_ratio(draft_time_s: ArrayLike, verify_time_s: ArrayLike) -> FloatArray:
    """Return 2 max(D, V) / (D + V), a request's time between its rounds over SD's; at least 1.

    A request is verified every second step, so its own latency does not halve; it never falls
    (theory note 3.2.3). End-to-end gains come from shorter queues.

    Parameters
    ----------
    draft_time_s, verify_time_s
        D and V, s, >= 0, V > 0.

    Examples
    --------
    >>> round(float(token_interval_ratio(10.0, 20.0)), 9)   # 40 / 30
    1.333333333
    """
    return give(2.0 / np.asarray(speedup_over_sd(draft_time_s, verify_time_s)))


def implied_phase_ratio(speedup_over_sd: ArrayLike) -> FloatArray:
    """Return min(D, V) / max(D, V) that a measured same-size ratio implies: ratio - 1.

    Parameters
    ----------
    speedup_over_sd
        In [1, 2].

    Examples
    --------
    >>> round(float(implied_phase_ratio(1.7568)), 4)
    0.7568
    """
    return give(between("speedup_over_sd", speedup_over_sd, 1.0, 2.0) - 1.0)


def speedup_per_gpu(
    draft_time_s: ArrayLike,
    verify_time_s: ArrayLike,
    n_target_gpus: ArrayLike,
    n_draft_gpus: ArrayLike = 1,
) -> FloatArray:
    """Return `speedup_over_sd` times G / (G + g): throughput per GPU against SD on G alone.

    Parameters
    ----------
    draft_time_s, verify_time_s
        D and V, s.
    n_target_gpus, n_draft_gpus
        G > 0 and g >= 0.

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

    Parameters
    ----------
    draft_time_s, verify_time_s
        D and V of the whole batch, s.
    half_draft_s, half_verify_s
        D' and V' of one half, s.

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
    a, c, v = np.broadcast_arrays(
        probability("alpha", alpha),
        positive("draft_cost_ratio", draft_cost_ratio),
        nonnegative("per_token_ratio", per_token_ratio),
    )
    # Tokens are concave and time is convex in k, so the first k that the next one does not beat
    # is the best; no array of all k is needed.
    best, tokens, reach = np.ones(a.shape, dtype=np.int64), 1.0 + a, a
    time, going = np.maximum(c, 1.0 + 2.0 * v), np.ones(a.shape, dtype=bool)
    for k in range(2, one_count("max_k", max_k, 1) + 1):
        reach = reach * a
        longer = np.maximum(k * c, 1.0 + v * (k + 1))
        # As a difference, a draft that costs nothing pays however unlikely it is.
        going = going & (reach * time > tokens * (longer - time))
        if not going.any():
            break
        best += going
        tokens, time = tokens + reach, longer
    return give_counts(best)


def last_hidden_k(
    draft_cost_ratio: ArrayLike, verify_base_ratio: ArrayLike, per_draft_ratio: ArrayLike
) -> FloatArray:
    """Return V0 / (t_d - V1), up to which k t_d <= V0 + V1 k: drafting is hidden (note 3.2.9).

    Infinite where each drafted token lengthens the verification by more than its own drafting.

    Parameters
    ----------
    draft_cost_ratio
        t_d, one draft forward, > 0, in any one unit of time.
    verify_base_ratio, per_draft_ratio
        V0 >= 0 and V1 >= 0 of a target pass V0 + V1 k, in the same unit.

    Examples
    --------
    >>> last_hidden_k([0.25, 0.5], 1.0, [0.0, 0.5]).tolist()
    [4.0, inf]
    """
    slack = positive("draft_cost_ratio", draft_cost_ratio) - nonnegative(
        "per_draft_ratio", per_draft_ratio
    )
    base = nonnegative("verify_base_ratio", verify_base_ratio)
    return give(np.where(slack > 0, base / np.where(slack > 0, slack, 1.0), np.inf))


def ratio_at_best_k(
    alpha: ArrayLike, draft_cost_ratio: ArrayLike, *, max_k: int = 64
) -> FloatArray:
    """Return PSD at its best k over the better of SD at its own best k and plain decoding.

    Same requests verified per step, constant verify time. It is 2 exactly where SD's best k is
    1/c, and less elsewhere (theory note 3.2.8).

    Parameters
    ----------
    alpha
        In [0, 1].
    draft_cost_ratio
        c, > 0.
    max_k
        Largest k considered, of both.

    Examples
    --------
    >>> round(float(ratio_at_best_k(0.8, 0.1)), 4)
    1.8507
    """
    c = positive("draft_cost_ratio", draft_cost_ratio)
    k = best_k(alpha, c, max_k=max_k)
    parallel = acceptance_length_iid(alpha, k) / np.maximum(k * c, 1.0)
    # SD's best k is 0 where drafting does not pay, so plain decoding is among its choices.
    return give(parallel / sd.speedup(alpha, sd.best_k(alpha, c, max_k=max_k), c))


def makespan_deterministic(
    n_rounds: ArrayLike,
    draft_time_s: ArrayLike,
    verify_time_s: ArrayLike,
    overhead_s: ArrayLike = 0.0,
    sync_s: ArrayLike = 0.0,
) -> FloatArray:
    """Return the time for two full sub-batches to finish n rounds each, prefill left out.

    One draft-only step, 2n - 1 overlapped steps, and the last sub-batch verified alone.

    Parameters
    ----------
    n_rounds
        Rounds of each sub-batch, >= 1.
    draft_time_s, verify_time_s, overhead_s, sync_s
        As in `step_time`.

    Examples
    --------
    >>> float(makespan_deterministic(2, 1.0, 3.0))   # 1 + 3 x 3 + 3
    13.0
    """
    n = count("n_rounds", n_rounds, 1)
    o, s = nonnegative("overhead_s", overhead_s), nonnegative("sync_s", sync_s)
    d, v = nonnegative("draft_time_s", draft_time_s), nonnegative("verify_time_s", verify_time_s)
    return give((o + d + s) + (2 * n - 1) * step_time(d, v, o, s) + (o + v))
