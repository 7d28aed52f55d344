"""Finite batches: the slowest request, what a static batch wastes, and two batches that share.

A batch is over when its slowest request is. Requests take independent numbers of rounds, each
with the law of `analysis.finite_law`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, count, give, nonnegative, one_count, probability
from analysis.finite import expected_rounds, expected_rounds_upto
from analysis.finite_law import rounds_survival
from psdsim.errors import InputError


def batch_rounds_survival(n_tokens: ArrayLike, tokens_pmf: ArrayLike) -> FloatArray:
    """Return P(max of the batch's rounds > r), r = 0..max(n): 1 minus the product of the cdfs.

    Parameters
    ----------
    n_tokens
        Shape (B,): output tokens of each request, >= 1; they may differ.
    tokens_pmf
        Shape (k+2,): P(a round emits j tokens), j = 0..k+1; P(0) must be 0.

    Examples
    --------
    >>> batch_rounds_survival([2, 2], [0.0, 0.5, 0.5]).round(12).tolist()
    [1.0, 0.75, 0.0]
    """
    lengths = count("n_tokens", n_tokens, 1)
    if lengths.ndim != 1 or lengths.size == 0:
        raise InputError(f"n_tokens has shape {lengths.shape}", expected="one length per request")
    different, how_many = np.unique(lengths, return_counts=True)
    log_done = np.zeros(int(different[-1]) + 1)
    with np.errstate(divide="ignore"):  # the log of P(R <= r) = 0 is -inf, and so is the sum
        for n, b in zip(different, how_many, strict=True):
            log_done[: n + 1] += b * np.log1p(-rounds_survival(int(n), tokens_pmf))
    return give(0.0 - np.expm1(log_done))


def expected_max_rounds(n_tokens: int, tokens_pmf: ArrayLike, n_requests: int) -> float:
    """Return E[max of the rounds of B equal requests] = sum_r 1 - P(R <= r)^B (note 4.5).

    Examples
    --------
    >>> pmf = [0.0, *(0.2 * 0.8**j for j in range(4)), 0.8**4]
    >>> round(expected_max_rounds(128, pmf, 8), 6)
    42.924753
    """
    n, batch = one_count("n_tokens", n_tokens, 1), one_count("n_requests", n_requests, 1)
    return expected_max_rounds_unequal(np.full(batch, n), tokens_pmf)


def expected_max_rounds_unequal(n_tokens: ArrayLike, tokens_pmf: ArrayLike) -> float:
    """Return E[max of the rounds of requests of different lengths] (theory note 4.5).

    Parameters
    ----------
    n_tokens, tokens_pmf
        As in `batch_rounds_survival`.

    Examples
    --------
    >>> expected_max_rounds_unequal([1, 3], [0.0, 1.0])   # one token a round
    3.0
    """
    return float(batch_rounds_survival(n_tokens, tokens_pmf).sum())


def static_batch_efficiency(n_tokens: ArrayLike, tokens_pmf: ArrayLike) -> float:
    """Return mean over requests of E[R] / E[max]: the share of batch slots that work (note 4.5).

    Parameters
    ----------
    n_tokens, tokens_pmf
        As in `batch_rounds_survival`.

    Examples
    --------
    >>> static_batch_efficiency([1, 3], [0.0, 1.0])   # 4 rounds of work in 2 x 3 slots
    0.6666666666666666
    """
    lengths = count("n_tokens", n_tokens, 1)
    slowest = expected_max_rounds_unequal(lengths, tokens_pmf)
    mean = expected_rounds_upto(int(lengths.max()), tokens_pmf)[lengths].mean()
    return float(mean) / slowest


def expected_excess_rounds(n_tokens: int, tokens_pmf: ArrayLike, n_requests: int) -> float:
    """Return E[max] - E[R], the rounds for which a mean request of a static batch is idle.

    Examples
    --------
    >>> expected_excess_rounds(2, [0.0, 0.5, 0.5], 2)   # 1.75 - 1.5
    0.25
    """
    slowest = expected_max_rounds(n_tokens, tokens_pmf, n_requests)
    return slowest - expected_rounds(n_tokens, tokens_pmf)


def _pair(survival_a: ArrayLike, survival_b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    a, b = probability("survival_a", survival_a), probability("survival_b", survival_b)
    for name, found in (("survival_a", a), ("survival_b", b)):
        if found.ndim != 1 or found.size == 0 or found[-1] > 1e-9:
            raise InputError(
                f"{name} doesn't fall to 0", expected="P(rounds > r) for r = 0, 1, ... to its end"
            )
    size = max(a.size, b.size)
    return np.pad(a, (0, size - a.size)), np.pad(b, (0, size - b.size))


def batch_imbalance(survival_a: ArrayLike, survival_b: ArrayLike) -> float:
    """Return E|A - B| = sum_r P(A<=r) P(B>r) + P(A>r) P(B<=r), rounds that one batch runs alone.

    Parameters
    ----------
    survival_a, survival_b
        P(rounds > r), r = 0, 1, ..., of two independent batches, down to 0.

    Examples
    --------
    >>> batch_imbalance([1.0, 0.5, 0.0], [1.0, 0.5, 0.0])   # each takes 1 or 2 rounds
    0.5
    """
    a, b = _pair(survival_a, survival_b)
    return float((a * (1.0 - b) + b * (1.0 - a)).sum())


def tail_share(survival_a: ArrayLike, survival_b: ArrayLike) -> float:
    """Return E|A - B| / E[A + B], the share of batch rounds that have nothing to hide behind.

    Once one of MineDraft's two sub-batches is empty, the other's rounds are serial.

    Examples
    --------
    >>> round(tail_share([1.0, 0.5, 0.0], [1.0, 0.5, 0.0]), 12)   # 0.5 of 3
    0.166666666667
    """
    a, b = _pair(survival_a, survival_b)
    return batch_imbalance(a, b) / float(a.sum() + b.sum())


def pair_makespan(
    n_rounds_a: ArrayLike,
    n_rounds_b: ArrayLike,
    draft_time_s: ArrayLike,
    verify_time_s: ArrayLike,
) -> FloatArray:
    """Return the time that two alternating batches take, their rounds and times being given.

    A starts. While both live a step lasts max(D, V); what is left of the longer one is serial.
    With r rounds each it is 2 r max + min (theory note 3.2.6). Every further round of B costs
    D + V; the first further round of A drafts behind B's last pass, so that ``min`` drops out
    (own derivation).

    Parameters
    ----------
    n_rounds_a, n_rounds_b
        Rounds of each batch, >= 0.
    draft_time_s, verify_time_s
        D and V of a batch's round, constant, s, >= 0.

    Examples
    --------
    >>> float(pair_makespan(10, 10, 8.0, 20.0)), float(pair_makespan(1, 3, 8.0, 20.0))
    (408.0, 104.0)
    """
    a, b = count("n_rounds_a", n_rounds_a), count("n_rounds_b", n_rounds_b)
    d, v = nonnegative("draft_time_s", draft_time_s), nonnegative("verify_time_s", verify_time_s)
    shared = np.minimum(a, b)
    together = 2.0 * shared * np.maximum(d, v) + np.where(b >= a, np.minimum(d, v), 0.0)
    return give(np.where(shared > 0, together, 0.0) + np.abs(a - b) * (d + v))


def expected_pair_makespan(
    survival_a: ArrayLike, survival_b: ArrayLike, draft_time_s: float, verify_time_s: float
) -> float:
    """Return the mean of `pair_makespan` over two independent batches of at least one round.

    It is 2 E[min(A, B)] max(D, V) + P(B >= A) min(D, V) + E|A - B| (D + V).

    Parameters
    ----------
    survival_a, survival_b
        P(rounds > r), r = 0, 1, ..., down to 0; P(rounds > 0) is 1.
    draft_time_s, verify_time_s
        D and V of a batch's round, constant, s, >= 0.

    Examples
    --------
    >>> expected_pair_makespan([1.0, 0.0], [1.0, 0.5, 0.0], 1.0, 2.0)   # (1,1) or (1,2) rounds
    6.5
    """
    a, b = _pair(survival_a, survival_b)
    for name, found in (("survival_a", a), ("survival_b", b)):
        if found[0] != 1.0:
            raise InputError(f"{name} starts at {found[0]:g}", expected="1: at least one round")
    d = float(nonnegative("draft_time_s", draft_time_s))
    v = float(nonnegative("verify_time_s", verify_time_s))
    both = float((a * b).sum())
    # P(B >= A) is the sum over r of P(A = r) P(B > r - 1).
    b_is_last = float(((a[:-1] - a[1:]) * b[:-1]).sum()) if a.size > 1 else 1.0
    return 2.0 * both * max(d, v) + b_is_last * min(d, v) + batch_imbalance(a, b) * (d + v)
