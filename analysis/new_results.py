"""Our own results on parallel SD, where the literature read has none; proofs in the docstrings.

* Equal GPUs: when PSD on G + g GPUs beats SD on G with as many requests per GPU in flight.
* Open arrivals: the stability limits of SD and PSD, and the arrival rate where their queues cross.

A third one, on clustered rejections, is in `analysis.clustering`.

D(m) = k (d0 + d1 m) and V(m) = v0 + v1 m (k + 1) as in `analysis.psd_groups`; s_d = k d1 and
s_v = v1 (k + 1) are their slopes in m.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis._checks import FloatArray, count, give, nonnegative, positive
from analysis._kinds import Approximation
from analysis.psd_groups import AffineTimes, fair_split_boundary
from analysis.queues import UnstableError


def equal_gpu_ratio(
    times: AffineTimes,
    n_seqs: ArrayLike,
    k: ArrayLike,
    n_target_gpus: ArrayLike,
    n_draft_gpus: ArrayLike = 1,
) -> FloatArray:
    """Return PSD over SD in tokens/s per GPU, the requests in flight per GPU being equal (ours).

    SD holds m on G GPUs; PSD holds m (G + g)/G on G + g, so its halves have m (1 + g/G)/2, and
    the ratio is [D(m) + V(m)] / (2 max{D, V}(m (1 + g/G)/2)). g = 0 is the fair split.

    Parameters
    ----------
    times
        Affine step times, of the same target and drafter in both.
    n_seqs
        m, requests in flight under SD, > 0.
    k
        Drafted tokens.
    n_target_gpus, n_draft_gpus
        G > 0 and g >= 0.

    Examples
    --------
    >>> t = AffineTimes(0.0, 1.0, 0.0, 1.0)     # no base times: slopes decide
    >>> float(equal_gpu_ratio(t, 8, 1, 4))      # (8 + 16) / (2 x 2 x 5)
    1.2
    """
    m = positive("n_seqs", n_seqs)
    share = nonnegative("n_draft_gpus", n_draft_gpus) / positive("n_target_gpus", n_target_gpus)
    half = m * (1.0 + share) / 2.0
    longer = np.maximum(times.draft_s(half, k), times.verify_s(half, k))
    return give((times.draft_s(m, k) + times.verify_s(m, k)) / (2.0 * longer))


def equal_gpu_wins(
    times: AffineTimes,
    n_seqs: ArrayLike,
    k: ArrayLike,
    n_target_gpus: ArrayLike,
    n_draft_gpus: ArrayLike = 1,
) -> NDArray[np.bool_]:
    """Return whether `equal_gpu_ratio` is above 1 (ours).

    Iff D(m) > v0 + (g/G)(V(m) - v0) and V(m) > k d0 + (g/G)(D(m) - k d0). Proof: twice a phase
    of a half is 2V = 2 v0 + s_v m (1 + g/G) = V(m) + v0 + (g/G)(V(m) - v0), likewise for D; and
    D(m) + V(m) exceeds a maximum iff it exceeds both terms. For g = 0 these are the fair split's
    conditions, without base times they are min/max of the phases > g/G, the same-size ratio per
    GPU: the two known comparisons are its ends.

    Parameters
    ----------
    times, n_seqs, k, n_target_gpus, n_draft_gpus
        As in `equal_gpu_ratio`.

    Examples
    --------
    >>> equal_gpu_wins(AffineTimes(0.0, 1.0, 0.0, 1.0), 8, 1, [4, 2, 1]).tolist()   # 1/2 > g/G
    [True, False, False]
    """
    m, n = positive("n_seqs", n_seqs), count("k", k)
    share = nonnegative("n_draft_gpus", n_draft_gpus) / positive("n_target_gpus", n_target_gpus)
    d, v = times.draft_s(m, n), times.verify_s(m, n)
    d0, v0 = n * times.draft_base_s, times.verify_base_s
    return np.asarray((d > v0 + share * (v - v0)) & (v > d0 + share * (d - d0)))


def _slopes(times: AffineTimes, k: ArrayLike) -> tuple[FloatArray, FloatArray]:
    n = count("k", k).astype(np.float64)
    return n * times.draft_per_seq_s, times.verify_per_token_s * (n + 1.0)


def stability_limits(
    times: AffineTimes, k: ArrayLike, rounds_per_request: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the arrival rates below which SD and PSD are stable, batches without limit (ours).

    1 / (E[R] (s_d + s_v)) and 1 / (E[R] max(s_d, s_v)): PSD sustains 1 + min/max of the *slopes*
    times SD's rate, whatever the base times, so up to 2 and never less. Argument by drift: with B
    large a round of all lasts B times the slope sum (or max: the halves' base times are a
    constant) and completes B / E[R] requests, so B falls iff fewer arrive meanwhile.

    Parameters
    ----------
    times
        Affine step times; for PSD, of a half.
    k
        Drafted tokens.
    rounds_per_request
        E[R], > 0.

    Returns
    -------
    Two arrays, requests/s; infinite where no time grows with the batch.

    Examples
    --------
    >>> sd, psd = stability_limits(AffineTimes(2.0, 0.25, 20.0, 0.125), 1, 10)
    >>> float(sd), float(psd)     # both slopes 1/4
    (0.2, 0.4)
    """
    s_d, s_v = _slopes(times, k)
    work = positive("rounds_per_request", rounds_per_request)
    serial, parallel = work * (s_d + s_v), work * np.maximum(s_d, s_v)
    return give(_inverse(serial)), give(_inverse(parallel))


def _inverse(work: FloatArray) -> FloatArray:
    return np.asarray(np.where(work > 0, 1.0 / np.where(work > 0, work, 1.0), np.inf))


def in_flight(
    times: AffineTimes, k: ArrayLike, rounds_per_request: ArrayLike, arrival_rate: ArrayLike
) -> tuple[Approximation, Approximation]:
    """Return the mean requests in flight under SD and under PSD with Poisson arrivals (ours).

    Fixed points of Little's law B = lambda E[R] T(B), with T(B) = D(B) + V(B) for SD and
    2 max{D, V}(B/2) for PSD. With x = lambda E[R]: B = x (k d0 + v0) / (1 - x (s_d + s_v)) and
    B = max{2 x k d0 / (1 - x s_d), 2 x v0 / (1 - x s_v)}, as the fixed point of a maximum of
    increasing lines is the greater of theirs. Mean latency is B / lambda.

    Parameters
    ----------
    times, k, rounds_per_request
        As in `stability_limits`.
    arrival_rate
        lambda, requests/s, >= 0.

    Raises
    ------
    UnstableError
        If a rate is not below SD's limit, which is the lower one.

    Examples
    --------
    >>> sd, psd = in_flight(AffineTimes(2.0, 0.25, 20.0, 0.125), 1, 10, 0.1)
    >>> float(sd.value), round(float(psd.value), 9)       # 22 / .5 and 40 / .75
    (44.0, 53.333333333)
    """
    s_d, s_v = _slopes(times, k)
    x = positive("rounds_per_request", rounds_per_request) * nonnegative(
        "arrival_rate", arrival_rate
    )
    if np.any(x * (s_d + s_v) >= 1.0):
        raise UnstableError("arrival_rate is above what SD sustains", expected="a stable rate")
    d0, v0 = count("k", k) * times.draft_base_s, times.verify_base_s
    serial = x * (d0 + v0) / (1.0 - x * (s_d + s_v))
    parallel = 2.0 * x * np.maximum(d0 / (1.0 - x * s_d), v0 / (1.0 - x * s_v))
    how = "fluctuations of the batch are neglected: good from about ten requests in flight on"
    return Approximation(give(serial), None, how), Approximation(give(parallel), None, how)


def crossover_rate(
    times: AffineTimes, k: ArrayLike, rounds_per_request: ArrayLike
) -> Approximation:
    """Return the arrival rate above which PSD has fewer requests in flight, so less latency (ours).

    lambda* = B0 / (E[R] (D(B0) + V(B0))), B0 the fair-split boundary: both `in_flight` solve
    B = lambda E[R] T(B), and T is smaller for PSD exactly above B0. It lies below SD's stability
    limit whenever B0 is finite: PSD loses at low load, where splitting pays base times twice, and
    wins before SD saturates. With fewer than two requests MineDraft runs serially, so it does not
    lose there.

    Parameters
    ----------
    times, k, rounds_per_request
        As in `stability_limits`.

    Examples
    --------
    >>> t = AffineTimes(2.0, 0.25, 20.0, 0.125)
    >>> round(float(crossover_rate(t, 1, 10).value), 9)      # B0 = 18 / .25 = 72: 72 / (10 x 58)
    0.124137931
    """
    batch = np.asarray(fair_split_boundary(times, k))
    finite = np.where(np.isfinite(batch), batch, 1.0)
    period = times.draft_s(finite, k) + times.verify_s(finite, k)
    work = positive("rounds_per_request", rounds_per_request) * period
    # A boundary of 0 without base times: PSD is ahead from the first request on.
    rate = finite / np.where(work > 0, work, 1.0)
    value = np.where(np.isfinite(batch), rate, np.inf)
    return Approximation(give(value), None, "fluctuations of the batch are neglected")
