"""Queues that serve in batches: dynamic batching (start when free) and continuous batching."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gammaln

from analysis._checks import FloatArray, give, nonnegative, positive
from analysis._kinds import Approximation, Bound
from analysis.queues import UnstableError
from psdsim.errors import InputError

# Simulated means of theory note 4.6 (T-70) are within 2 % up to this share of the limit.
_CHECKED_LOAD = 0.84
_LITTLE = (
    "Little's law at the mean step time: fluctuations of the running batch are neglected and "
    "admission is never held back; the error is what simulation showed, where it was tried"
)


def _known_error(load: FloatArray) -> float | None:
    return 0.02 if np.all(load <= _CHECKED_LOAD) else None


def _stable(load: FloatArray, what: str) -> None:
    if np.any(load >= 1.0):
        raise UnstableError(f"{what} is {np.max(load):.4g}", expected="below 1")


def dynamic_batching_bound_light(
    arrival_rate: ArrayLike, batch_s: ArrayLike, per_request_s: ArrayLike
) -> Bound:
    """Return Inoue's phi_0 >= E[latency], the tighter one at light load (Inoue 2021).

    phi_0 = (a + t0)/(2 (1 - l a)) (1 + 2 l t0 + (1 - l t0)/(1 + l a)). Assumes Poisson arrivals,
    batches of any size that start as soon as the server is free, and a time t0 + a b of b.

    Parameters
    ----------
    arrival_rate
        l, 1/s.
    batch_s, per_request_s
        t0 and a, s, >= 0 and > 0.

    Examples
    --------
    >>> round(float(dynamic_batching_bound_light(2.0, 0.1, 0.02).value), 5)
    0.13558
    """
    lam, t0 = nonnegative("arrival_rate", arrival_rate), nonnegative("batch_s", batch_s)
    a = positive("per_request_s", per_request_s)
    _stable(lam * a, "arrival_rate * per_request_s")
    inner = 1.0 + 2.0 * lam * t0 + (1.0 - lam * t0) / (1.0 + lam * a)
    return Bound(give((a + t0) / (2.0 * (1.0 - lam * a)) * inner), "upper")


def dynamic_batching_bound_heavy(
    arrival_rate: ArrayLike, batch_s: ArrayLike, per_request_s: ArrayLike
) -> Bound:
    """Return Inoue's phi_1 >= E[latency], the tighter one at heavy load (Inoue 2021).

    phi_1 = 1.5 t0/(1 - l a) + (a/2)(l a + 2)/(1 - l^2 a^2), with the assumptions of phi_0.

    Examples
    --------
    >>> round(float(dynamic_batching_bound_heavy(45.0, 0.1, 0.02).value), 5)
    1.65263
    """
    lam, t0 = nonnegative("arrival_rate", arrival_rate), nonnegative("batch_s", batch_s)
    a = positive("per_request_s", per_request_s)
    _stable(lam * a, "arrival_rate * per_request_s")
    load = lam * a
    value = 1.5 * t0 / (1.0 - load) + 0.5 * a * (load + 2.0) / (1.0 - load**2)
    return Bound(give(value), "upper")


def dynamic_batching_bound(
    arrival_rate: ArrayLike, batch_s: ArrayLike, per_request_s: ArrayLike
) -> Bound:
    """Return min(phi_0, phi_1) >= E[latency] under dynamic batching (Inoue 2021).

    Parameters
    ----------
    arrival_rate, batch_s, per_request_s
        As in `dynamic_batching_bound_light`.

    Examples
    --------
    >>> dynamic_batching_bound([2.0, 10.0, 30.0, 45.0], 0.1, 0.02).value.round(5).tolist()
    [0.13558, 0.21042, 0.41563, 1.65263]
    """
    light = dynamic_batching_bound_light(arrival_rate, batch_s, per_request_s)
    heavy = dynamic_batching_bound_heavy(arrival_rate, batch_s, per_request_s)
    return Bound(give(np.minimum(light.value, heavy.value)), "upper")


def dynamic_batching_latency(arrival_rate: float, batch_s: float, per_request_s: float) -> float:
    """Return the mean latency under dynamic batching by solving the chain of batch sizes.

    The next batch is whoever arrived during this one, or the first to come if nobody did. Its
    requests waited half a service time on average and then their own batch's (own derivation);
    sizes whose probability is negligible are cut off.

    Parameters
    ----------
    arrival_rate
        1/s, > 0.
    batch_s, per_request_s
        Time t0 + a b of a batch of b, s, >= 0 and > 0, as in `dynamic_batching_bound_light`.

    Examples
    --------
    >>> round(dynamic_batching_latency(1e-9, 0.1, 0.02), 9)   # alone in the system: t0 + a
    0.12
    """
    lam, t0 = float(positive("arrival_rate", arrival_rate)), float(nonnegative("batch_s", batch_s))
    a = float(positive("per_request_s", per_request_s))
    _stable(np.asarray(lam * a), "arrival_rate * per_request_s")
    # Sizes vary about the mean l t0/(1 - l a) with a variance of at most mean/(1 - (l a)^2).
    mean = (lam * t0 + 1.0) / (1.0 - lam * a)
    largest = int(mean + 14.0 * np.sqrt(mean / (1.0 - (lam * a) ** 2)) + 40.0)
    size = np.arange(1, largest + 1)
    service = t0 + a * size
    arrivals = np.arange(largest + 1)
    mass = np.exp(
        arrivals * np.log(lam * service)[:, None] - (lam * service)[:, None] - gammaln(arrivals + 1)
    )
    step = mass[:, 1:].copy()
    step[:, 0] += mass[:, 0]
    step /= step.sum(axis=1, keepdims=True)
    equations = np.vstack([step.T - np.eye(largest), np.ones(largest)])
    share = np.linalg.lstsq(equations, np.append(np.zeros(largest), 1.0), rcond=None)[0]
    waiting = lam * service * service / 2.0
    serving = step @ (size * service)
    return float(share @ (waiting + serving) / (share @ (step @ size)))


def continuous_batching_limit(mean_rounds: ArrayLike, per_request_s: ArrayLike) -> FloatArray:
    """Return the arrival rate at which continuous batching is unstable: 1/(E[R] G) (note 4.6).

    Every request brings E[R] rounds, each of which lengthens its step by G.

    Parameters
    ----------
    mean_rounds
        E[R] of a request, from `analysis.finite.expected_rounds`, > 0.
    per_request_s
        G, step time per running request, s, > 0.

    Examples
    --------
    >>> float(continuous_batching_limit(50.0, 0.0001))
    200.0
    """
    return give(
        1.0 / (positive("mean_rounds", mean_rounds) * positive("per_request_s", per_request_s))
    )


def continuous_batching_running(
    arrival_rate: ArrayLike, mean_rounds: ArrayLike, step_s: ArrayLike, per_request_s: ArrayLike
) -> Approximation:
    """Return the mean number of running requests, B = l E[R] A/(1 - l E[R] G) (note 4.6).

    A step of b requests lasts A + G b, a request stays for E[R] steps, and Little's law closes
    the circle: B = l E[R] (A + G B).

    Parameters
    ----------
    arrival_rate
        l, 1/s, >= 0.
    mean_rounds
        E[R], > 0.
    step_s, per_request_s
        A and G, s, >= 0.

    Raises
    ------
    UnstableError
        If l is at or above `continuous_batching_limit`.

    Examples
    --------
    >>> float(continuous_batching_running(10.0, 50.0, 0.01, 0.001).value)
    10.0
    """
    work = nonnegative("arrival_rate", arrival_rate) * positive("mean_rounds", mean_rounds)
    load = work * nonnegative("per_request_s", per_request_s)
    _stable(np.asarray(load), "arrival_rate * mean_rounds * per_request_s")
    value = give(work * nonnegative("step_s", step_s) / (1.0 - load))
    return Approximation(value, _known_error(load), _LITTLE)


def continuous_batching_latency(
    arrival_rate: ArrayLike, mean_rounds: ArrayLike, step_s: ArrayLike, per_request_s: ArrayLike
) -> Approximation:
    """Return the mean latency B/l + half a step: a new request waits for the step that runs.

    Parameters
    ----------
    arrival_rate, mean_rounds, step_s, per_request_s
        As in `continuous_batching_running`; the arrival rate > 0.

    Examples
    --------
    >>> float(continuous_batching_latency(10.0, 50.0, 0.01, 0.001).value)   # 1 s + half of 20 ms
    1.01
    """
    lam = positive("arrival_rate", arrival_rate)
    found = continuous_batching_running(lam, mean_rounds, step_s, per_request_s)
    step = nonnegative("step_s", step_s) + nonnegative("per_request_s", per_request_s) * found.value
    return Approximation(give(found.value / lam + 0.5 * step), found.error, _LITTLE)


def continuous_batching_fixed_point(
    arrival_rate: float,
    mean_rounds: float,
    period: Callable[[float], float],
    largest: float = 65536.0,
) -> Approximation:
    """Return the smallest B with B = l E[R] period(B), for a round's time of any shape.

    For SD the period is the step time; for two alternating sub-batches it is
    2 max(D(B/2), V(B/2)), since a request is verified in every second step (own extension of
    note 4.6 to open arrivals).

    Parameters
    ----------
    arrival_rate, mean_rounds
        As in `continuous_batching_running`, > 0.
    period
        Time between two rounds of a request when B run, s; continuous, > 0.
    largest
        Requests that may run, > 0. A fixed point beyond it means that requests queue for a slot.

    Raises
    ------
    UnstableError
        If no fixed point is found up to ``largest``.

    Examples
    --------
    >>> round(continuous_batching_fixed_point(10.0, 50.0, lambda b: 0.01 + 0.001 * b).value, 9)
    10.0
    """
    work = float(positive("arrival_rate", arrival_rate) * positive("mean_rounds", mean_rounds))
    top = float(positive("largest", largest))

    def excess(running: float) -> float:
        time = float(period(running))
        if not np.isfinite(time) or time <= 0.0:
            raise InputError(f"period({running:g}) is {time:g}", expected="a time above 0")
        return work * time - running

    # The first crossing is the state that a system which starts empty settles in.
    grid = np.concatenate([[0.0], np.geomspace(min(1e-6, 0.5 * top), top, 400)])
    low = 0.0
    for high in grid[1:].tolist():
        if excess(high) <= 0.0:
            return Approximation(float(brentq(excess, low, high, xtol=1e-12)), None, _LITTLE)
        low = high
    raise UnstableError(
        f"work arrives faster than {top:g} running requests do it", expected="a lower arrival rate"
    )
