"""Special cases of the engine that are textbook queues: waits within 4.5 standard errors.

One slot, one output token, no decoding: a request's service is its prefill pass.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from psdsim.seeds import Stream, generator
from tests.engine.kit import Timer, run, work

N, RUNS, SERVICE = 6000, 12, 1.0


def mean_waits(rho: float, cv: float, law: str = "lognormal", rate_factor: float = 1.0):
    waits = []
    for replication in range(RUNS):
        rng = generator(11, replication, Stream.ARRIVALS)
        arrival = np.cumsum(rng.exponential(SERVICE / (rho * rate_factor), N))
        raw = run(
            "ar", 0, work(np.ones(N, dtype=int), arrival=arrival), m=1, target=Timer(SERVICE),
            seed=11, replication=replication,
            cost={"target_jitter_cv": cv, "target_jitter_law": law},
        )  # fmt: skip
        wait = raw.requests["admitted_s"] - raw.requests["arrival_s"]
        waits.append(wait[N // 10 :].mean())
    return np.array(waits)


def pollaczek_khinchine(rho: float, cv: float) -> float:
    """Mean wait of M/G/1: rho (1 + cv^2) / (2 (1 - rho)) service times."""
    return rho * (1 + cv**2) / (2 * (1 - rho)) * SERVICE


def distance(waits, theory: float) -> float:
    return abs(waits.mean() - theory) / (waits.std(ddof=1) / math.sqrt(RUNS))


@pytest.mark.parametrize(
    "name, cv, law",
    [("M/M/1", 1.0, "exponential"), ("M/D/1", 0.0, "lognormal"), ("M/G/1", 1.5, "lognormal")],
)
@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_mean_wait(name, cv, law, rho):
    waits = mean_waits(rho, cv, law)
    theory = pollaczek_khinchine(rho, cv)
    assert distance(waits, theory) < 4.5, (name, waits.mean(), theory)


def test_the_check_notices_a_wrong_load():
    waits = mean_waits(0.5, 0.0, rate_factor=1.2)
    assert distance(waits, pollaczek_khinchine(0.5, 0.0)) > 4.5


def test_md1_wait_is_the_lindley_recursion_exactly():
    # Dyadic arrivals and service: the whole sample path, not only its mean.
    rng = np.random.default_rng(3)
    gaps = rng.integers(0, 64, 2000) / 32
    arrival = np.cumsum(gaps)
    raw = run("ar", 0, work(np.ones(2000, dtype=int), arrival=arrival), m=1, target=Timer(1.0))
    wait = 0.0
    expected = [wait]
    for gap in gaps[1:]:
        wait = max(0.0, wait + 1.0 - gap)
        expected.append(wait)
    got = raw.requests["admitted_s"] - raw.requests["arrival_s"]
    np.testing.assert_array_equal(got, expected)


def test_mm1_wait_distribution():
    # P(wait > t) = rho exp(-(1 - rho) t / service): check the share of waits above three points.
    rho = 0.6
    shares = []
    points = np.array([0.5, 2.0, 5.0])
    for replication in range(RUNS):
        rng = generator(12, replication, Stream.ARRIVALS)
        arrival = np.cumsum(rng.exponential(SERVICE / rho, N))
        raw = run(
            "ar", 0, work(np.ones(N, dtype=int), arrival=arrival), m=1, target=Timer(SERVICE),
            seed=12, replication=replication,
            cost={"target_jitter_cv": 1.0, "target_jitter_law": "exponential"},
        )  # fmt: skip
        wait = (raw.requests["admitted_s"] - raw.requests["arrival_s"])[N // 10 :]
        shares.append((wait[:, None] > points).mean(axis=0))
    shares = np.array(shares)
    theory = rho * np.exp(-(1 - rho) * points / SERVICE)
    error = shares.std(axis=0, ddof=1) / math.sqrt(RUNS)
    assert (np.abs(shares.mean(axis=0) - theory) < 4.5 * error).all(), (shares.mean(axis=0), theory)
