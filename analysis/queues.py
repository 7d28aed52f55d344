"""Textbook queues with Poisson arrivals: waits, sojourn times, stability.

A wait is the time before service starts; a sojourn time is wait and service.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, pdtrc, xlogy

from analysis._checks import FloatArray, give, nonnegative, one_count, positive
from analysis._kinds import Approximation, AssumptionError


class UnstableError(AssumptionError):
    """The queue has no steady state: work arrives at least as fast as it can be done."""


def utilisation(
    arrival_rate: ArrayLike, mean_service_s: ArrayLike, n_servers: int = 1
) -> FloatArray:
    """Return rho = lambda E[S] / servers.

    Raises
    ------
    UnstableError
        If it is 1 or more.

    Examples
    --------
    >>> float(utilisation(2.0, 0.25))
    0.5
    """
    rho = nonnegative("arrival_rate", arrival_rate) * positive("mean_service_s", mean_service_s)
    rho = rho / one_count("n_servers", n_servers, 1)
    if np.any(rho >= 1.0):
        raise UnstableError(f"the utilisation is {np.max(rho):.4g}", expected="below 1")
    return give(rho)


def mg1_wait(
    arrival_rate: ArrayLike, mean_service_s: ArrayLike, service_cv: ArrayLike
) -> FloatArray:
    """Return the mean wait of M/G/1: rho (1 + cv^2) E[S] / (2 (1 - rho)) (Pollaczek-Khinchine).

    Parameters
    ----------
    arrival_rate
        1/s.
    mean_service_s
        s.
    service_cv
        Standard deviation / mean of the service time.

    Examples
    --------
    >>> float(mg1_wait(0.5, 1.0, 1.0)), float(mg1_wait(0.5, 1.0, 0.0))
    (1.0, 0.5)
    """
    rho = utilisation(arrival_rate, mean_service_s)
    spread = 1.0 + nonnegative("service_cv", service_cv) ** 2
    return give(rho * spread * positive("mean_service_s", mean_service_s) / (2.0 * (1.0 - rho)))


def mm1_wait(arrival_rate: ArrayLike, mean_service_s: ArrayLike) -> FloatArray:
    """Return the mean wait of M/M/1: rho E[S] / (1 - rho).

    Examples
    --------
    >>> float(mm1_wait(0.5, 1.0))
    1.0
    """
    return mg1_wait(arrival_rate, mean_service_s, 1.0)


def md1_wait(arrival_rate: ArrayLike, service_s: ArrayLike) -> FloatArray:
    """Return the mean wait of M/D/1: half of M/M/1's.

    Examples
    --------
    >>> float(md1_wait(0.5, 1.0))
    0.5
    """
    return mg1_wait(arrival_rate, service_s, 0.0)


def mm1_wait_survival(t_s: ArrayLike, arrival_rate: float, mean_service_s: float) -> FloatArray:
    """Return P(wait > t) of M/M/1: rho exp(-(1 - rho) t / E[S]).

    Examples
    --------
    >>> float(mm1_wait_survival(0.0, 0.5, 1.0))
    0.5
    """
    rho = utilisation(arrival_rate, mean_service_s)
    return give(rho * np.exp(-(1.0 - rho) * nonnegative("t_s", t_s) / mean_service_s))


def mmc_wait(arrival_rate: float, mean_service_s: float, n_servers: int) -> float:
    """Return the mean wait of M/M/c (Erlang C).

    Examples
    --------
    >>> mmc_wait(0.5, 1.0, 1)
    1.0
    """
    c = one_count("n_servers", n_servers, 1)
    rho = float(utilisation(arrival_rate, mean_service_s, c))
    load = rho * c
    # Erlang B by its recursion, which does not overflow; Erlang C from it.
    blocked = 1.0
    for n in range(1, c + 1):
        blocked = load * blocked / (n + load * blocked)
    waits = blocked / (1.0 - rho * (1.0 - blocked))
    return waits * mean_service_s / (c * (1.0 - rho))


def mgc_wait(
    arrival_rate: float, mean_service_s: float, service_cv: float, n_servers: int
) -> Approximation:
    """Return the mean wait of M/G/c, approximately: (1 + cv^2)/2 times M/M/c (Lee and Longton).

    Exact for one server and for exponential service; the model of independent replicas behind
    one queue.

    Parameters
    ----------
    arrival_rate, mean_service_s, n_servers
        As in `mmc_wait`.
    service_cv
        Standard deviation / mean of the service time, >= 0.

    Examples
    --------
    >>> mgc_wait(0.5, 1.0, 0.0, 1).value
    0.5
    """
    cv = float(nonnegative("service_cv", service_cv))
    value = (1.0 + cv**2) / 2.0 * mmc_wait(arrival_rate, mean_service_s, n_servers)
    exact = one_count("n_servers", n_servers, 1) == 1 or cv == 1.0
    how = "Lee and Longton's scaling of M/M/c; exact at c = 1 or cv = 1"
    return Approximation(value, 0.0 if exact else None, how)


def mg1_ps_sojourn(arrival_rate: ArrayLike, mean_service_s: ArrayLike) -> FloatArray:
    """Return the mean sojourn time of M/G/1 processor sharing: E[S]/(1 - rho), any law of S.

    The limit of continuous batching where a step's time is proportional to its requests
    (theory note 4.6); a request of service time s stays s/(1 - rho) on average.

    Examples
    --------
    >>> float(mg1_ps_sojourn(0.5, 1.0))
    2.0
    """
    rho = utilisation(arrival_rate, mean_service_s)
    return give(positive("mean_service_s", mean_service_s) / (1.0 - rho))


def mg1_sojourn(
    arrival_rate: ArrayLike, mean_service_s: ArrayLike, service_cv: ArrayLike
) -> FloatArray:
    """Return the mean sojourn time of M/G/1 in order of arrival: `mg1_wait` + E[S].

    Examples
    --------
    >>> float(mg1_sojourn(0.5, 1.0, 1.0))
    2.0
    """
    wait = mg1_wait(arrival_rate, mean_service_s, service_cv)
    return give(wait + positive("mean_service_s", mean_service_s))


def mg1_number(
    arrival_rate: ArrayLike, mean_service_s: ArrayLike, service_cv: ArrayLike
) -> FloatArray:
    """Return the mean number in M/G/1, lambda times `mg1_sojourn` (Little's law).

    Examples
    --------
    >>> float(mg1_number(0.5, 1.0, 1.0))
    1.0
    """
    time = mg1_sojourn(arrival_rate, mean_service_s, service_cv)
    return give(nonnegative("arrival_rate", arrival_rate) * time)


def md1_number_pmf(arrival_rate: float, service_s: float, n_max: int) -> FloatArray:
    """Return P(n in the system), n = 0..n_max, of M/D/1.

    Departures that leave n - 1 are as many as those from below n that go up to n or more; so
    P_n P(A = 0) = P_0 P(A >= n) + sum over 0 < i < n of P_i P(A >= n - i + 1), with A the
    arrivals in one service. All terms are positive, so nothing cancels.

    Parameters
    ----------
    arrival_rate, service_s
        1/s and s; their product below 1.
    n_max
        >= 0; the work is O(n_max^2).

    Examples
    --------
    >>> md1_number_pmf(0.5, 1.0, 1).round(9).tolist()   # 1/2 and (e^.5 - 1)/2
    [0.5, 0.324360635]
    """
    rho = float(utilisation(arrival_rate, service_s))
    n = one_count("n_max", n_max)
    at_least = pdtrc(np.arange(-1, n + 1), rho)  # P(A >= j), j = 0..n+1: P(A > j - 1)
    at_least[0] = 1.0
    out = np.empty(n + 1)
    out[0] = 1.0 - rho
    for j in range(1, n + 1):
        rises = out[0] * at_least[j] + out[1:j] @ at_least[j:1:-1]
        out[j] = rises * np.exp(rho)
    return out


def md1_wait_cdf(t_s: ArrayLike, arrival_rate: float, service_s: float) -> FloatArray:
    """Return P(wait <= t) of M/D/1 (Franx 2001, the one-server case of M/D/c).

    With k = floor(t/S) + 1 it is the sum over j < k of P(k - j in the system at most) times the
    Poisson probability of j arrivals in k S - t. Erlang's alternating series is the same number
    and loses all digits at large t; here every term is positive.

    Parameters
    ----------
    t_s
        s, >= 0, any shape.
    arrival_rate, service_s
        1/s and s; their product below 1.

    Examples
    --------
    >>> round(float(md1_wait_cdf(0.0, 0.5, 1.0)), 12)   # an idle server: 1 - rho
    0.5
    """
    t = nonnegative("t_s", t_s)
    services = np.floor(t / service_s).astype(np.int64) + 1
    longest = int(services.max(initial=1))
    upto = np.cumsum(md1_number_pmf(arrival_rate, service_s, longest))
    out = np.empty(t.shape)
    for place, k in np.ndenumerate(services):
        arrivals = arrival_rate * max(k * service_s - float(t[place]), 0.0)
        j = np.arange(k)
        poisson = np.exp(xlogy(j, arrivals) - arrivals - gammaln(j + 1.0))
        out[place] = poisson @ upto[k - j]
    return give(np.minimum(out, 1.0))
