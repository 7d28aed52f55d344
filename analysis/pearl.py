"""PEARL's chain of pre-verify and post-verify steps (arXiv 2408.11850), exactly.

Every step is one target pass beside k draft forwards. In pre-verify the pass tests the first
token of the block being drafted; in post-verify the k-1 tentative tokens and that one. A
rejection leads to pre-verify, full acceptance to post-verify. Derivation: theory note 3.5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import (
    FloatArray,
    IntArray,
    chain_rates,
    count,
    give,
    give_counts,
    nonnegative,
    one_count,
    positive,
    probability,
)
from analysis.special import geometric_sum, one_minus_power


def pre_verify_share(
    alpha: ArrayLike, k: ArrayLike, alpha_after_reject: ArrayLike | None = None
) -> FloatArray:
    """Return the stationary share of pre-verify steps, (1 - a^k) / (1 + a0 - a^k).

    Parameters
    ----------
    alpha
        P(accept | the token before was accepted), in [0, 1].
    k
        Drafted tokens per step, >= 1.
    alpha_after_reject
        P(accept | the token before was rejected), a0; None: the same (i.i.d.). Every
        pre-verify step follows a rejection, which is where clustering hurts PEARL.

    Examples
    --------
    >>> round(float(pre_verify_share(0.8, 5)), 9)   # .67232 / 1.47232
    0.456639861
    """
    n = count("k", k, 1)
    start = alpha if alpha_after_reject is None else alpha_after_reject
    leave = one_minus_power(alpha, n)
    enter = probability("alpha_after_reject", start)
    total = leave + enter
    # alpha = 1 never leaves post-verify; only there can both vanish together with a0 = 0.
    return give(np.where(total > 0, leave / np.where(total > 0, total, 1.0), 1.0))


def transition_probabilities(
    alpha: ArrayLike, k: ArrayLike, alpha_after_reject: ArrayLike | None = None
) -> FloatArray:
    """Return the chain's matrix, shape (..., 2, 2), over (pre-verify, post-verify).

    Rows [1 - a0, a0] and [1 - a^k, a^k]: full acceptance leads to post-verify.

    Parameters
    ----------
    alpha, k, alpha_after_reject
        As in `pre_verify_share`.

    Examples
    --------
    >>> transition_probabilities(0.5, 2).tolist()
    [[0.5, 0.5], [0.75, 0.25]]
    """
    start = alpha if alpha_after_reject is None else alpha_after_reject
    enter, leave = np.broadcast_arrays(
        probability("alpha_after_reject", start), one_minus_power(alpha, count("k", k, 1))
    )
    rows = [np.stack([1.0 - enter, enter], -1), np.stack([leave, 1.0 - leave], -1)]
    return np.stack(rows, -2)


def tokens_per_step(
    alpha: ArrayLike, k: ArrayLike, alpha_after_reject: ArrayLike | None = None
) -> FloatArray:
    """Return R(alpha, k), tokens per step and request in the long run.

    i.i.d.: R = (1 - a^k) / [(1 - a)(1 + a - a^k)]; between 1 and k. A pre-verify step gives
    one token, a post-verify step (1 - a^k)/(1 - a).

    Parameters
    ----------
    alpha, k, alpha_after_reject
        As in `pre_verify_share`.

    Examples
    --------
    >>> [round(float(tokens_per_step(a, k)), 4) for a, k in ((0.5, 3), (0.8, 5), (0.9, 5))]
    [1.2727, 2.2832, 3.1272]
    >>> float(tokens_per_step(1.0, 4))
    4.0
    """
    share = pre_verify_share(alpha, k, alpha_after_reject)
    return give(share + (1.0 - share) * geometric_sum(alpha, count("k", k, 1)))


def tokens_per_step_no_pre_verify(
    alpha: ArrayLike, k: ArrayLike, alpha_after_reject: ArrayLike | None = None
) -> FloatArray:
    """Return R without pre-verify; i.i.d. 1 / [2 (1-a) + a^(k+1) (1-a)/(1-a^k)] (note 3.5).

    After a rejection one step only drafts; the next tests k+1 positions, later ones k each
    (the lossless variant). It can fall below 1, plain decoding's rate. With a0 after a rejection
    (1 - a + a0) / [2 (1-a) + a0 a^k (1-a)/(1-a^k)] (ours).

    Parameters
    ----------
    alpha, k, alpha_after_reject
        As in `pre_verify_share`.

    Examples
    --------
    >>> round(float(tokens_per_step_no_pre_verify(0.5, 3)), 4)
    0.9655
    """
    a, n = probability("alpha", alpha), count("k", k, 1)
    start = alpha if alpha_after_reject is None else alpha_after_reject
    a0 = probability("alpha_after_reject", start)
    tokens = (1.0 - a) + a0
    steps = 2.0 * (1.0 - a) + a0 * a**n / geometric_sum(a, n)
    # Both vanish where nothing is accepted after a rejection and nothing rejected after another.
    return give(np.where(tokens > 0, tokens / np.where(tokens > 0, steps, 1.0), 0.5))


def tokens_per_step_no_post_verify(
    alpha: ArrayLike, k: ArrayLike, alpha_after_reject: ArrayLike | None = None
) -> FloatArray:
    """Return R without post-verify; i.i.d. [1 + a (1-a^k)/(1-a)] / (1 + a) (theory note 3.5).

    A pre-verify step gives one token; if it accepted, a pass over the k-1 others and the bonus
    follows, beside which nothing useful is drafted. With a0 after a rejection a share
    a0 / [1 + a0 + a^k (a0 - a)] of the steps are such passes (ours).

    Parameters
    ----------
    alpha, k, alpha_after_reject
        As in `pre_verify_share`.

    Examples
    --------
    >>> round(float(tokens_per_step_no_post_verify(0.5, 3)), 4)
    1.25
    """
    a, n = probability("alpha", alpha), count("k", k, 1)
    start = alpha if alpha_after_reject is None else alpha_after_reject
    a0 = probability("alpha_after_reject", start)
    total = 1.0 + a0 + a**n * (a0 - a)
    share = np.where(total > 0, a0 / np.where(total > 0, total, 1.0), 0.0)
    return give(1.0 + share * (geometric_sum(a, n) - 1.0))


def speedup(
    alpha: ArrayLike,
    k: ArrayLike,
    draft_cost_ratio: ArrayLike,
    sync_ratio: ArrayLike = 0.0,
) -> FloatArray:
    """Return R / (max(k c, 1) + s): PEARL over plain decoding, with a fixed cost s per step.

    Without s it is at least 1 where k c <= 1, and at most min(k, 1/c).

    Parameters
    ----------
    alpha, k
        As in `pre_verify_share`, i.i.d.
    draft_cost_ratio, sync_ratio
        One draft forward, and what a step costs besides, / one target pass, >= 0.

    Examples
    --------
    >>> round(float(speedup(0.8, 5, 0.2)), 4), float(speedup(1.0, 4, 0.5))
    (2.2832, 2.0)
    """
    n = count("k", k, 1)
    longer = np.maximum(n * nonnegative("draft_cost_ratio", draft_cost_ratio), 1.0)
    return give(tokens_per_step(alpha, n) / (longer + nonnegative("sync_ratio", sync_ratio)))


def best_k(
    alpha: ArrayLike,
    draft_cost_ratio: ArrayLike,
    sync_ratio: ArrayLike = 0.0,
    *,
    max_k: int = 64,
) -> IntArray:
    """Return the integer k in 1..max_k with the largest `speedup`.

    Without a sync cost the best real k is 1/c for every alpha, as R rises and R/k falls with k;
    so the best integer is its floor or its ceiling, not always the nearer one. A sync cost can
    move it above (theory note 3.5).

    Parameters
    ----------
    alpha, draft_cost_ratio, sync_ratio
        As in `speedup`; the draft cost > 0.
    max_k
        Largest k considered, >= 1.

    Examples
    --------
    >>> best_k([0.964, 0.5], 1 / 5.36).tolist()   # 5.36 rounds to 5
    [6, 5]
    """
    a, c, s = np.broadcast_arrays(
        probability("alpha", alpha),
        positive("draft_cost_ratio", draft_cost_ratio),
        nonnegative("sync_ratio", sync_ratio),
    )
    last = one_count("max_k", max_k, 1)
    # R is concave in k, the time of a step convex: the first k that the next one does not beat.
    best, going = np.ones(a.shape, dtype=np.int64), np.ones(a.shape, dtype=bool)
    power, sum_k = a, np.ones(a.shape)
    total, time = np.ones(a.shape), np.maximum(c, 1.0) + s
    for k in range(2, last + 1):
        # R = G/(L + a) with G = 1 + a + ... and L = (1-a) G, so one more k adds
        # a a^(k-1) / [(L + a)(L' + a)]: as a difference it does not drown in rounding.
        rate = sum_k / total
        sum_k = sum_k + power
        longer, bigger = np.maximum(k * c, 1.0) + s, (1.0 - a) * sum_k + a
        going = going & (a * power / (total * bigger) * time > rate * (longer - time))
        if not going.any():
            break
        best += going
        power, total, time = power * a, bigger, longer
    return give_counts(best)


def discarded_per_step(
    alpha: ArrayLike, k: ArrayLike, alpha_after_reject: ArrayLike | None = None
) -> FloatArray:
    """Return drafted tokens per step that are not kept, k - R + share of pre-verify steps.

    Of R tokens all are accepted drafts but the corrected ones, and every rejection leads to one
    pre-verify step. Without memory a rejection occurs once per 1/(1 - alpha) emitted tokens, and
    the value is k - alpha R.

    Parameters
    ----------
    alpha, k, alpha_after_reject
        As in `pre_verify_share`.

    Examples
    --------
    >>> round(float(discarded_per_step(0.8, 5)), 5)
    3.17344
    """
    kept = tokens_per_step(alpha, k, alpha_after_reject)
    return give(count("k", k, 1) - kept + pre_verify_share(alpha, k, alpha_after_reject))


def expected_steps(
    n_tokens: int,
    alpha: float,
    k: int,
    alpha_after_reject: float | None = None,
    alpha_at_start: float | None = None,
) -> float:
    """Return the mean number of steps for n tokens, started in pre-verify.

    First-step analysis over (tokens left, state); the last block is clipped by the stop.

    Parameters
    ----------
    n_tokens
        Tokens to emit, >= 0.
    alpha, k, alpha_after_reject
        As in `pre_verify_share`, single numbers.
    alpha_at_start
        P(accept) of the very first step, which no rejection precedes; None: as after one.

    Examples
    --------
    >>> expected_steps(2, 0.5, 2), expected_steps(3, 1.0, 2)
    (2.0, 2.0)
    """
    n, k = one_count("n_tokens", n_tokens), one_count("k", k, 1)
    a, a0, first = chain_rates(alpha, alpha_after_reject, alpha_at_start)
    if n == 0:
        return 0.0
    reject = (1.0 - a) * a ** np.arange(k)
    # Index i holds the steps for i - k tokens: what is overshot needs no more.
    pre, post = np.zeros(n + k + 1), np.zeros(n + k + 1)
    for i in range(k + 1, n + k + 1):
        pre[i] = 1.0 + a0 * post[i - 1] + (1.0 - a0) * pre[i - 1]
        post[i] = 1.0 + reject @ pre[i - k : i][::-1] + a**k * post[i - k]
    return float(1.0 + first * post[n + k - 1] + (1.0 - first) * pre[n + k - 1])
