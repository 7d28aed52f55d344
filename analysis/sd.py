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
    positive,
)
from analysis.rounds import acceptance_length_iid
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

    Examples
    --------
    >>> float(break_even_alpha(0.2))
    0.2
    """
    return give(nonnegative("draft_cost_ratio", draft_cost_ratio))


def best_k(alpha: ArrayLike, draft_cost_ratio: ArrayLike, *, max_k: int = 64) -> IntArray:
    """Return the integer k in 0..max_k with the largest speedup, by direct search.

    Examples
    --------
    >>> best_k([0.8, 0.8, 0.7], [0.1, 0.05, 0.2]).tolist()
    [6, 8, 3]
    """
    a, c = np.broadcast_arrays(
        between("alpha", alpha, 0.0, 1.0), nonnegative("draft_cost_ratio", draft_cost_ratio)
    )
    k = np.arange(max_k + 1)
    found: IntArray = np.argmax(speedup(a[..., None], k, c[..., None]), axis=-1).astype(np.int64)
    return give_counts(found)


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

    Examples
    --------
    >>> float(step_time(0.25, 0.5, 0.125))
    0.875
    """
    total = nonnegative("draft_time_s", draft_time_s) + nonnegative("verify_time_s", verify_time_s)
    return give(total + nonnegative("overhead_s", overhead_s))


def throughput(n_seqs: ArrayLike, tokens_per_step: ArrayLike, step_time_s: ArrayLike) -> FloatArray:
    """Return n_seqs * tokens_per_step / step_time_s, tokens/s of a full batch.

    Examples
    --------
    >>> float(throughput(16, 3.0, 0.5))
    96.0
    """
    tokens = positive("n_seqs", n_seqs) * nonnegative("tokens_per_step", tokens_per_step)
    return give(tokens / positive("step_time_s", step_time_s))


def effective_cost_ratio(
    n_seqs: ArrayLike,
    *,
    draft_base_s: float,
    draft_per_seq_s: float,
    target_base_s: float,
    per_token_s: float,
) -> FloatArray:
    """Return c_eff(B) = (d0 + (d1 + b) B) / (t0 + b B) for affine step times (note 2.5).

    With t_v = t0 + b B (k+1) and t_d = d0 + d1 B per forward, batched SD at B is `speedup` at
    c_eff: all of Leviathan's results carry over.

    Examples
    --------
    >>> c = effective_cost_ratio([1, 128], draft_base_s=2.0, draft_per_seq_s=0.005,
    ...                          target_base_s=20.0, per_token_s=0.05)
    >>> [round(float(v), 8) for v in c]
    [0.10249377, 0.34242424]
    """
    n = positive("n_seqs", n_seqs)
    top = draft_base_s + (draft_per_seq_s + per_token_s) * n
    return give(top / (target_base_s + per_token_s * n))


def break_even_batch(
    alpha: ArrayLike,
    *,
    draft_base_s: float,
    draft_per_seq_s: float,
    target_base_s: float,
    per_token_s: float,
) -> FloatArray:
    """Return B* = (alpha t0 - d0) / (d1 + b (1 - alpha)): above it no k helps (note 2.5).

    Examples
    --------
    >>> round(float(break_even_batch(0.7, draft_base_s=2.0, draft_per_seq_s=0.005,
    ...                              target_base_s=20.0, per_token_s=0.05)), 6)
    600.0
    """
    a = between("alpha", alpha, 0.0, 1.0)
    bottom = draft_per_seq_s + per_token_s * (1.0 - a)
    return give((a * target_base_s - draft_base_s) / bottom)
