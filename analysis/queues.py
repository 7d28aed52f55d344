"""Textbook queues with Poisson arrivals: waits, stability."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, give, nonnegative, one_count, positive
from psdsim.errors import InputError


class UnstableError(InputError):
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
) -> float:
    """Return the mean wait of M/G/c, approximately: (1 + cv^2)/2 times M/M/c (Lee and Longton).

    Examples
    --------
    >>> mgc_wait(0.5, 1.0, 0.0, 1)
    0.5
    """
    if not math.isfinite(service_cv) or service_cv < 0:
        raise InputError(f"service_cv is {service_cv}", expected="at least 0")
    return (1.0 + service_cv**2) / 2.0 * mmc_wait(arrival_rate, mean_service_s, n_servers)
