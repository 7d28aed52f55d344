"""M groups that circulate between one drafter and one verifier: the two-stage cyclic queue.

Throughputs are rounds per second, over all groups; a round of one group is one pass through both
servers (theory note 4.1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, count, give, nonnegative, one_count, positive
from analysis._kinds import Bound
from analysis.special import geometric_sum


def cyclic_throughput_deterministic(
    draft_time_s: ArrayLike, verify_time_s: ArrayLike, n_groups: ArrayLike
) -> FloatArray:
    """Return X = min(M/(D + V), 1/max(D, V)) for constant times (theory note 4.1).

    The inverse is the greatest cycle mean of the timed event graph: D, V and (D + V)/M.

    Parameters
    ----------
    draft_time_s, verify_time_s
        D and V of one group, s, > 0.
    n_groups
        M, >= 1.

    Examples
    --------
    >>> cyclic_throughput_deterministic(18.0, 20.0, [1, 2, 3]).round(7).tolist()
    [0.0263158, 0.05, 0.05]
    """
    d, v = positive("draft_time_s", draft_time_s), positive("verify_time_s", verify_time_s)
    return give(np.minimum(count("n_groups", n_groups, 1) / (d + v), 1.0 / np.maximum(d, v)))


def cyclic_throughput_bound(
    mean_draft_s: ArrayLike, mean_verify_s: ArrayLike, n_groups: ArrayLike
) -> Bound:
    """Return min(M/(D + V), 1/max(D, V)) of the means: no law of the times beats it.

    The bottleneck law and Little's law, with a residence of at least D + V (Denning and Buzen
    1978, asymptotic bounds).

    Examples
    --------
    >>> bound = cyclic_throughput_bound(18.0, 20.0, 2)
    >>> bound.kind, float(bound.value)
    ('upper', 0.05)
    """
    return Bound(cyclic_throughput_deterministic(mean_draft_s, mean_verify_s, n_groups), "upper")


def cyclic_throughput_exponential(
    mean_draft_s: ArrayLike, mean_verify_s: ArrayLike, n_groups: ArrayLike
) -> FloatArray:
    """Return X_M = mu_v rho (1 - rho^M)/(1 - rho^(M+1)), rho = mu_d/mu_v (Gordon-Newell 1967).

    The times are independent exponentials. Written as a ratio of geometric sums in the smaller
    of rho and 1/rho, which is M/(M + 1) of the rate where both servers are equally fast.

    Parameters
    ----------
    mean_draft_s, mean_verify_s
        1/mu_d and 1/mu_v, s, > 0.
    n_groups
        M, >= 1.

    Examples
    --------
    >>> cyclic_throughput_exponential(0.8, 1.0, [1, 2]).round(8).tolist()
    [0.55555556, 0.73770492]
    >>> float(cyclic_throughput_exponential(1.0, 1.0, 3))
    0.75
    """
    d, v = positive("mean_draft_s", mean_draft_s), positive("mean_verify_s", mean_verify_s)
    m = count("n_groups", n_groups, 1)
    slow, fast = np.maximum(d, v), np.minimum(d, v)
    # The queue is symmetric in its servers: with r = fast/slow, X = (1/slow) S_M(r)/S_(M+1)(r).
    ratio = fast / slow
    return give(geometric_sum(ratio, m) / geometric_sum(ratio, m + 1) / slow)


def cyclic_throughput_mva(
    mean_draft_s: float, mean_verify_s: float, n_groups: int, delay_s: float = 0.0
) -> float:
    """Return X_M of exponential servers by mean value analysis (Reiser and Lavenberg 1980).

    A group that arrives at a server finds what a system of M - 1 groups holds there. It agrees
    with `cyclic_throughput_exponential` and allows a delay that needs no server.

    Parameters
    ----------
    mean_draft_s, mean_verify_s
        Mean times, s, > 0.
    n_groups
        M, >= 1.
    delay_s
        Mean transfer time a round, of any law, s, >= 0.

    Examples
    --------
    >>> round(cyclic_throughput_mva(0.8, 1.0, 2), 8)
    0.73770492
    """
    d, v = positive("mean_draft_s", mean_draft_s), positive("mean_verify_s", mean_verify_s)
    service = np.array([float(d), float(v)])
    delay = float(nonnegative("delay_s", delay_s))
    held, throughput = np.zeros(2), 0.0
    for m in range(1, one_count("n_groups", n_groups, 1) + 1):
        residence = service * (1.0 + held)
        throughput = m / (delay + float(residence.sum()))
        held = throughput * residence
    return throughput


def alternating_throughput(expected_max_s: ArrayLike) -> FloatArray:
    """Return 1/E[max(D, V)] of two groups, for any independent laws of D and V (note 4.1).

    With two groups every step lasts max(D, V) on each path: the server that ends first waits for
    the only other group. A barrier after each step therefore changes nothing.

    Parameters
    ----------
    expected_max_s
        E[max(D, V)] from `analysis.stages`, s, > 0.

    Examples
    --------
    >>> float(alternating_throughput(20.0))
    0.05
    """
    return give(1.0 / positive("expected_max_s", expected_max_s))


def round_period(
    draft_time_s: ArrayLike, verify_time_s: ArrayLike, n_groups: ArrayLike
) -> FloatArray:
    """Return the time between two verifications of one request, max(D + V, M max(D, V)).

    Little's law for constant times. With two groups it is 2 max(D, V) >= D + V: per-request token
    time doesn't halve, it gets worse by 2 max/(D + V), unless D = V (theory note 3.2.3).

    Parameters
    ----------
    draft_time_s, verify_time_s
        D and V of one group, s, > 0.
    n_groups
        M, >= 1; 1 is serial SD.

    Examples
    --------
    >>> round_period(10.0, 20.0, [1, 2]).tolist()
    [30.0, 40.0]
    """
    x = cyclic_throughput_deterministic(draft_time_s, verify_time_s, n_groups)
    return give(count("n_groups", n_groups, 1) / x)


def time_per_token(period_s: ArrayLike, acceptance_length: ArrayLike) -> FloatArray:
    """Return the mean time between a request's tokens, period / E[N] (renewal-reward, note 4.3).

    Parameters
    ----------
    period_s
        `round_period`, or 2 E[max(D, V)] for random times, s, > 0.
    acceptance_length
        E[N], >= 1.

    Examples
    --------
    >>> float(time_per_token(40.0, 2.5))
    16.0
    """
    return give(positive("period_s", period_s) / positive("acceptance_length", acceptance_length))


def decode_latency(n_rounds: ArrayLike, period_s: ArrayLike, first_s: ArrayLike) -> FloatArray:
    """Return the time from a request's first draft to its last token: first + (R - 1) period.

    Its first round has no queue to wait in (D + V of a group that starts), the others come a
    period apart; linear in R, so that E[R] gives the mean.

    Parameters
    ----------
    n_rounds
        R, or E[R] from `analysis.finite.expected_rounds`, >= 1.
    period_s, first_s
        Time between verifications, and from the first draft to its verdict, s, >= 0.

    Examples
    --------
    >>> float(decode_latency(3, 40.0, 30.0))
    110.0
    """
    n = positive("n_rounds", n_rounds)
    return give(nonnegative("first_s", first_s) + (n - 1.0) * nonnegative("period_s", period_s))
