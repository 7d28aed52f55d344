"""Parallel speculative decoding over M groups with step times that depend on the group's size.

A group of m requests is drafted in D(m) = k (d0 + d1 m) and verified in
V(m) = v0 + v1 m (k + 1). What one request gets depends on which comparison is made: the same
group size, the same requests in flight (fair split), or the same GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis._checks import (
    FloatArray,
    IntArray,
    count,
    give,
    give_counts,
    law,
    nonnegative,
    one_count,
    positive,
)


@dataclass(frozen=True)
class AffineTimes:
    """Step times that are affine in the batch (theory note 3.2.4).

    Parameters
    ----------
    draft_base_s, draft_per_seq_s
        d0 and d1 of one draft forward, s, >= 0.
    verify_base_s, verify_per_token_s
        v0 and v1 of a target pass, s, >= 0.

    Examples
    --------
    >>> t = AffineTimes(2.0, 0.25, 20.0, 0.5)
    >>> float(t.draft_s(8, 2)), float(t.verify_s(8, 3))
    (8.0, 36.0)
    """

    draft_base_s: float
    draft_per_seq_s: float
    verify_base_s: float
    verify_per_token_s: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            nonnegative(name, value)

    def draft_s(self, n_seqs: ArrayLike, k: ArrayLike) -> FloatArray:
        """Return D = k (d0 + d1 m)."""
        each = self.draft_base_s + self.draft_per_seq_s * nonnegative("n_seqs", n_seqs)
        return give(count("k", k) * each)

    def verify_s(self, n_seqs: ArrayLike, k: ArrayLike) -> FloatArray:
        """Return V = v0 + v1 m (k + 1)."""
        tokens = nonnegative("n_seqs", n_seqs) * (count("k", k) + 1)
        return give(self.verify_base_s + self.verify_per_token_s * tokens)


def round_period(
    times: AffineTimes, n_requests: ArrayLike, n_groups: ArrayLike, k: ArrayLike
) -> FloatArray:
    """Return the time in which each of n requests in M groups is verified once.

    M = 1: D + V; M >= 2: M max(D, V) of a group of n/M (theory note 3.2.7). Group sizes need
    not be whole here: that is a rounding of the last group.

    Parameters
    ----------
    times
        Affine step times.
    n_requests
        In flight, over all groups, > 0.
    n_groups
        M >= 1.
    k
        Drafted tokens.

    Examples
    --------
    >>> t = AffineTimes(2.0, 0.01, 20.0, 0.05)
    >>> round_period(t, 512, [1, 2, 3, 4], 8).round(6).tolist()
    [307.36, 270.4, 290.4, 310.4]
    """
    groups = count("n_groups", n_groups, 1)
    size = positive("n_requests", n_requests) / groups
    d, v = times.draft_s(size, k), times.verify_s(size, k)
    return give(np.where(groups == 1, d + v, groups * np.maximum(d, v)))


def best_n_groups(times: AffineTimes, n_requests: ArrayLike, k: ArrayLike) -> IntArray:
    """Return 1 or 2, the number of groups with the shorter `round_period`.

    More than two never help with deterministic times: M max(D(n/M), V(n/M)) is
    max{M k d0 + k d1 n, M v0 + v1 n (k + 1)}, which does not fall with M (theory note 3.2.7).
    They help against jitter only.

    Parameters
    ----------
    times, n_requests, k
        As in `round_period`.

    Examples
    --------
    >>> best_n_groups(AffineTimes(2.0, 0.01, 20.0, 0.05), [16, 512], 8).tolist()
    [1, 2]
    """
    one, two = (round_period(times, n_requests, m, k) for m in (1, 2))
    return give_counts(np.where(two < one, 2, 1))


def fair_split_ratio(times: AffineTimes, n_seqs: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return [D(2m) + V(2m)] / (2 max(D(m), V(m))): PSD over SD, 2m requests in flight in both.

    Theory note 3.2.4. Below 1 the split loses: halving a batch does not halve its base times.

    Parameters
    ----------
    times
        Affine step times.
    n_seqs
        m, requests per half, > 0.
    k
        Drafted tokens.

    Examples
    --------
    >>> t = AffineTimes(2.0, 0.01, 20.0, 0.05)
    >>> fair_split_ratio(t, [8, 128, 32], [4, 4, 12]).round(6).tolist()
    [0.741818, 0.983077, 1.143137]
    """
    m = positive("n_seqs", n_seqs)
    return give(round_period(times, 2 * m, 1, k) / round_period(times, 2 * m, 2, k))


def fair_split_wins(times: AffineTimes, n_seqs: ArrayLike, k: ArrayLike) -> NDArray[np.bool_]:
    """Return whether `fair_split_ratio` is above 1: D(2m) > v0 and V(2m) > k d0.

    Drafting the whole batch must take longer than the fixed part of one verification, and
    verifying it longer than the fixed part of drafting (theory note 3.2.4: the first binds where
    verification is the longer half-phase, the second where drafting is; as the ratio's
    denominator is a maximum, both must hold always).

    Parameters
    ----------
    times, n_seqs, k
        As in `fair_split_ratio`.

    Examples
    --------
    >>> fair_split_wins(AffineTimes(2.0, 0.01, 20.0, 0.05), [128, 128], [4, 8]).tolist()
    [False, True]
    """
    whole = 2.0 * positive("n_seqs", n_seqs)
    k = count("k", k)
    drafts = times.draft_s(whole, k) > times.verify_base_s
    verifies = times.verify_s(whole, k) > k * times.draft_base_s
    return np.asarray(drafts & verifies)


def fair_split_boundary(times: AffineTimes, k: ArrayLike) -> FloatArray:
    """Return the requests in flight, 2m, above which a fair split into halves wins.

    max{(v0 - k d0) / (k d1), (k d0 - v0) / (v1 (k + 1))}: at most one of the two is positive.
    Infinite where the phase that must grow does not.

    Parameters
    ----------
    times
        Affine step times.
    k
        Drafted tokens.

    Examples
    --------
    >>> float(fair_split_boundary(AffineTimes(2.0, 0.01, 20.0, 0.05), 8))   # (20 - 16) / .08
    50.0
    """
    n = count("k", k)
    gap = times.verify_base_s - n * times.draft_base_s
    s_d, s_v = n * times.draft_per_seq_s, times.verify_per_token_s * (n + 1.0)
    # At equal base times both phases must grow, and then any batch will do.
    slope = np.where(gap > 0, s_d, np.where(gap < 0, s_v, np.minimum(s_d, s_v)))
    with np.errstate(over="ignore"):
        reach = np.abs(gap) / np.where(slope > 0, slope, 1.0)
    return give(np.where(slope > 0, reach, np.inf))


def makespan(
    n_groups: ArrayLike, n_rounds: ArrayLike, draft_time_s: ArrayLike, verify_time_s: ArrayLike
) -> FloatArray:
    """Return the time for M equal groups to finish r rounds each (theory note 3.2.6).

    M >= 2: M r max(D, V) + min(D, V); M = 1: r (D + V). No overheads: with them, see
    `analysis.psd.makespan_deterministic`.

    Parameters
    ----------
    n_groups, n_rounds
        M >= 1 and r >= 1.
    draft_time_s, verify_time_s
        D and V of one group, s, >= 0.

    Examples
    --------
    >>> makespan([2, 2, 3, 1], [10, 10, 10, 10], [8.0, 25.0, 8.0, 8.0], 20.0).tolist()
    [408.0, 520.0, 608.0, 280.0]
    """
    m, r = count("n_groups", n_groups, 1), count("n_rounds", n_rounds, 1)
    d, v = nonnegative("draft_time_s", draft_time_s), nonnegative("verify_time_s", verify_time_s)
    many = m * r * np.maximum(d, v) + np.minimum(d, v)
    return give(np.where(m == 1, r * (d + v), many))


def static_halves_time(
    rounds_first: ArrayLike,
    rounds_second: ArrayLike,
    draft_time_s: float,
    verify_time_s: float,
) -> float:
    """Return E[time] for two static halves to finish R_A and R_B rounds, A drafted first.

    2 max(D, V) E[min] + (D + V) E[max - min] + min(D, V) P(R_B >= R_A): overlapped while both
    run, serial afterwards (theory note 3.2.10 for D <= V; the same for any D, V by counting
    steps: when A has rounds left, its next draft was already hidden by B's last verification).

    Parameters
    ----------
    rounds_first, rounds_second
        P(R = 0), P(R = 1), ... of the slowest request of each half, independent; P(R = 0) = 0.
    draft_time_s, verify_time_s
        D and V of a half, >= 0.

    Examples
    --------
    >>> static_halves_time([0, 0, 1], [0, 0, 1], 8.0, 20.0)      # 2 rounds each: 4 x 20 + 8
    88.0
    """
    d = float(nonnegative("draft_time_s", draft_time_s))
    v = float(nonnegative("verify_time_s", verify_time_s))
    a, b = law("rounds_first", rounds_first), law("rounds_second", rounds_second)
    size = one_count("rounds", max(a.size, b.size), 1)
    a, b = np.pad(a, (0, size - a.size)), np.pad(b, (0, size - b.size))
    # P(R > r) for r = 0, 1, ...: E[min] and E[max] are sums of survival functions.
    above_a, above_b = 1.0 - np.cumsum(a), 1.0 - np.cumsum(b)
    shorter = float(above_a @ above_b)
    longer = float(above_a.sum() + above_b.sum()) - shorter
    not_before = float(a @ (above_b + b))
    overlapped = 2.0 * max(d, v) * shorter
    return overlapped + (d + v) * (longer - shorter) + min(d, v) * not_before
