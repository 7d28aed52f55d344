"""Serial speculative decoding: speedup, break-even, best draft length, throughput.

Symbols: ``draft_cost_ratio`` is one draft forward / one target pass (Leviathan's c).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

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
)
from analysis._kinds import AssumptionError, Bound
from analysis.rounds import acceptance_length_iid, wasted_drafts_iid
from analysis.special import lambert_excess


def speedup(alpha: ArrayLike, k: ArrayLike, draft_cost_ratio: ArrayLike) -> FloatArray:
    """Return E[N] / (k c + 1), serial SD over plain decoding (Leviathan 2023, Theorem 3.8).

    Assumes i.i.d. acceptance, and that verifying k+1 tokens costs what decoding one does.

    Parameters
    ----------
    alpha
        In [0, 1].
    k
        Drafted tokens, >= 0.
    draft_cost_ratio
        One draft forward / one target pass, >= 0.

    Examples
    --------
    >>> round(float(speedup(0.8, 4, 0.1)), 8)
    2.40114286
    """
    cost = nonnegative("draft_cost_ratio", draft_cost_ratio)
    return give(acceptance_length_iid(alpha, k) / (count("k", k) * cost + 1.0))


def break_even_alpha(draft_cost_ratio: ArrayLike) -> FloatArray:
    """Return the alpha above which some k helps: c itself (Leviathan 2023, Corollary 3.9).

    Parameters
    ----------
    draft_cost_ratio
        c, >= 0; from 1 on no alpha is enough.

    Examples
    --------
    >>> float(break_even_alpha(0.2))
    0.2
    """
    return give(nonnegative("draft_cost_ratio", draft_cost_ratio))


def best_k(alpha: ArrayLike, draft_cost_ratio: ArrayLike, *, max_k: int = 64) -> IntArray:
    """Return the integer k in 0..max_k with the largest speedup, by the one-step rule.

    Draft one more as long as its success probability alpha^(k+1) beats c S(k), the current rate
    times its cost (theory note 1.3).

    Parameters
    ----------
    alpha
        In [0, 1].
    draft_cost_ratio
        One draft forward / one target pass, >= 0.
    max_k
        Largest k considered.

    Examples
    --------
    >>> best_k([0.8, 0.8, 0.7], [0.1, 0.05, 0.2]).tolist()
    [6, 8, 3]
    """
    a, c = np.broadcast_arrays(
        between("alpha", alpha, 0.0, 1.0), nonnegative("draft_cost_ratio", draft_cost_ratio)
    )
    # Tokens are concave and time is affine in k, so the first k that the next one does not beat
    # is the best; no array of all k is needed, which keeps maps of a million points small.
    best = np.zeros(a.shape, dtype=np.int64)
    tokens, reach, going = np.ones(a.shape), np.ones(a.shape), np.ones(a.shape, dtype=bool)
    for k in range(one_count("max_k", max_k)):
        reach = reach * a
        going = going & (reach * (1.0 + k * c) > c * tokens)
        if not going.any():
            break
        best += going
        tokens = tokens + reach
    return give_counts(best)


def best_k_continuous(alpha: ArrayLike, draft_cost_ratio: ArrayLike) -> FloatArray:
    """Return the real k that maximises the speedup (theory note 1.3, Lambert W).

    k* = (y - 1)/A - 1/c with A = -ln alpha and y the root above 1 of y - ln y = 1 + A/c - A.
    Where alpha <= c, no drafting helps and the value is at most 0.

    Parameters
    ----------
    alpha
        In (0, 1).
    draft_cost_ratio
        > 0.

    Examples
    --------
    >>> [round(float(v), 6) for v in best_k_continuous([0.8, 0.8, 0.7], [0.1, 0.05, 0.2])]
    [5.756205, 7.856654, 2.704196]
    """
    a = positive("alpha", between("alpha", alpha, 0.0, 1.0 - 1e-12))
    c = positive("draft_cost_ratio", draft_cost_ratio)
    decay = -np.log(a)
    # y - 1 is the root t of t - ln(1 + t) = A/c - A; for c > 1 drafting never helps.
    excess = lambert_excess(np.maximum(decay / c - decay, 0.0))
    return give(excess / decay - 1.0 / c)


def step_time(
    draft_time_s: ArrayLike, verify_time_s: ArrayLike, overhead_s: ArrayLike = 0.0
) -> FloatArray:
    """Return overhead + D + V: serial phases add up.

    Parameters
    ----------
    draft_time_s, verify_time_s, overhead_s
        D, V and fixed costs of a step, s, >= 0.

    Examples
    --------
    >>> float(step_time(0.25, 0.5, 0.125))
    0.875
    """
    total = nonnegative("draft_time_s", draft_time_s) + nonnegative("verify_time_s", verify_time_s)
    return give(total + nonnegative("overhead_s", overhead_s))


def throughput(n_seqs: ArrayLike, tokens_per_step: ArrayLike, step_time_s: ArrayLike) -> FloatArray:
    """Return n_seqs * tokens_per_step / step_time_s, tokens/s of a full batch.

    Parameters
    ----------
    n_seqs
        Requests per step, > 0.
    tokens_per_step
        Tokens each gains in a step, >= 0.
    step_time_s
        s, > 0.

    Examples
    --------
    >>> float(throughput(16, 3.0, 0.5))
    96.0
    """
    tokens = positive("n_seqs", n_seqs) * nonnegative("tokens_per_step", tokens_per_step)
    return give(tokens / positive("step_time_s", step_time_s))


def operations_factor(
    alpha: ArrayLike, k: ArrayLike, operations_ratio: ArrayLike = 0.0
) -> FloatArray:
    """Return (k c' + k + 1) / E[N], arithmetic per token over plain decoding's (Theorem 3.11).

    Parameters
    ----------
    alpha, k
        As in `speedup`.
    operations_ratio
        c', operations of a drafted token / of a target token, >= 0.

    Examples
    --------
    >>> round(float(operations_factor(0.8, 5, 0.05)), 7)
    1.6940975
    """
    n, ratio = count("k", k), nonnegative("operations_ratio", operations_ratio)
    return give((n * ratio + n + 1.0) / acceptance_length_iid(alpha, n))


def oracle_speedup(alpha: ArrayLike, draft_cost_ratio: ArrayLike) -> FloatArray:
    """Return 1 / [(1 - alpha) + c alpha]: every round drafts exactly to its first miss.

    Theory note 1.3 (own derivation there): a round drafts alpha/(1 - alpha) tokens on average, all
    accepted, and emits 1/(1 - alpha). It is DSI's asymptote as well.

    Parameters
    ----------
    alpha, draft_cost_ratio
        As in `speedup`.

    Raises
    ------
    AssumptionError
        Where alpha is 1 and drafting is free: the round never ends.

    Examples
    --------
    >>> round(float(oracle_speedup(0.8, 0.1)), 8)
    3.57142857
    """
    a = between("alpha", alpha, 0.0, 1.0)
    time = (1.0 - a) + nonnegative("draft_cost_ratio", draft_cost_ratio) * a
    if np.any(time <= 0.0):
        raise AssumptionError(
            "alpha is 1 and drafting costs nothing", expected="a round that ends or costs time"
        )
    return give(1.0 / time)


def speedup_bound(alpha: ArrayLike, k: ArrayLike, draft_cost_ratio: ArrayLike) -> Bound:
    """Return min{1/(1 - alpha), (k + 1)/(k c + 1)}, which no i.i.d. speedup passes (note 1.3).

    Parameters
    ----------
    alpha, k, draft_cost_ratio
        As in `speedup`.

    Examples
    --------
    >>> speedup_bound(0.5, 4, 0.0).value, speedup_bound(1.0, 4, 0.25).value
    (2.0, 2.5)
    """
    a, n = between("alpha", alpha, 0.0, 1.0), count("k", k)
    cost = nonnegative("draft_cost_ratio", draft_cost_ratio)
    # At alpha = 1 only the second bound is left.
    by_runs = 1.0 / np.where(a < 1.0, 1.0 - a, 1.0)
    by_drafts = (n + 1.0) / (n * cost + 1.0)
    value = np.where(a < 1.0, np.minimum(by_runs, by_drafts), by_drafts)
    return Bound(float(value) if value.ndim == 0 else value, "upper")


def wasted_drafts_per_token(alpha: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return (k - E[L]) / E[N], drafted tokens thrown away per emitted token (theory note 1.4).

    Parameters
    ----------
    alpha, k
        As in `speedup`.

    Examples
    --------
    >>> round(float(wasted_drafts_per_token(0.8, 4)), 5)
    0.48739
    """
    return give(wasted_drafts_iid(alpha, k) / acceptance_length_iid(alpha, k))


def target_busy_share(draft_time_s: ArrayLike, verify_time_s: ArrayLike) -> FloatArray:
    """Return V / (D + V), the share of time that the target works; the drafter has the rest.

    Parameters
    ----------
    draft_time_s, verify_time_s
        D and V, s, >= 0, V > 0.

    Examples
    --------
    >>> float(target_busy_share(1.0, 3.0))
    0.75
    """
    v = positive("verify_time_s", verify_time_s)
    return give(v / (nonnegative("draft_time_s", draft_time_s) + v))
