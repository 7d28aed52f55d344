"""Waits and latencies against transforms, series, chains and the printed numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import queues, queues_batching
from analysis._kinds import Approximation, AssumptionError
from analysis.finite import expected_rounds, variance_rounds
from analysis.rounds import accepted_pmf_iid, tokens_pmf
from psdsim.errors import InputError

MODERATE = settings(max_examples=40, deadline=None)
LOAD = st.floats(0.05, 0.95)
PMF = tokens_pmf(accepted_pmf_iid(0.8, 4))


def test_published_single_server() -> None:
    # T-67 and T-68: one request at a time, 28 ms a round, 256 tokens.
    rounds, variance = expected_rounds(256, PMF), variance_rounds(256, PMF)
    mean, cv = 0.028 * rounds, math.sqrt(variance) / rounds
    assert queues.utilisation(0.3, mean) == pytest.approx(0.6436012, abs=5e-8)
    assert mean == pytest.approx(2.1453373, abs=5e-8)
    assert cv**2 == pytest.approx(0.00297, abs=5e-6)
    assert queues.mg1_wait(0.3, mean, cv) == pytest.approx(1.9428311, abs=5e-8)
    assert queues.md1_wait(0.3, mean) == pytest.approx(1.9370738, abs=1e-7)
    assert queues.mg1_ps_sojourn(0.3, mean) == pytest.approx(6.0194849, abs=1e-7)


@MODERATE
@given(LOAD, st.floats(0.01, 10.0), st.floats(0.0, 3.0))
def test_pollaczek_khinchine_and_little(rho: float, service: float, cv: float) -> None:
    rate = rho / service
    second_moment = service**2 * (1.0 + cv**2)
    wait = queues.mg1_wait(rate, service, cv)
    assert wait == pytest.approx(rate * second_moment / (2.0 * (1.0 - rho)))
    assert queues.mg1_sojourn(rate, service, cv) == pytest.approx(wait + service)
    # L = rho + Lq, both by Little's law.
    assert queues.mg1_number(rate, service, cv) == pytest.approx(rho + rate * wait)
    # First come first served and sharing are the same where service is exponential.
    assert queues.mg1_sojourn(rate, service, 1.0) == pytest.approx(
        float(queues.mg1_ps_sojourn(rate, service))
    )


def erlang_series(t: Fraction, rho: Fraction) -> float:
    """Erlang's alternating series for M/D/1 with unit service, in exact fractions but for exp."""
    total = 0.0
    with_digits = 60
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = with_digits
        parts = Decimal(0)
        for j in range(math.floor(t) + 1):
            x = rho * (t - j)
            number = Decimal(x.numerator) / Decimal(x.denominator)
            term = number.exp() * (-number) ** j if j else number.exp()
            parts += term / Decimal(math.factorial(j))
        total = float(parts * (1 - Decimal(rho.numerator) / Decimal(rho.denominator)))
    return total


@MODERATE
@given(
    st.integers(0, 400).map(lambda i: Fraction(i, 13)),
    st.integers(1, 19).map(lambda i: Fraction(i, 20)),
)
def test_md1_wait_law_is_erlangs_series(t: Fraction, rho: Fraction) -> None:
    found = queues.md1_wait_cdf(float(t), float(rho), 1.0)
    assert found == pytest.approx(erlang_series(t, rho), abs=1e-11)


@pytest.mark.parametrize("rho", [0.2, 0.6, 0.9])
def test_md1_wait_law_has_the_mean(rho: float) -> None:
    service = 0.5
    # Gauss-Legendre within each service time: the law has kinks only at multiples of it.
    nodes, weights = np.polynomial.legendre.leggauss(6)
    starts = service * np.arange(240)
    t = starts[:, None] + service * 0.5 * (1.0 + nodes)
    survival = 1.0 - queues.md1_wait_cdf(t, rho / service, service)
    mean = (survival * weights).sum() * 0.5 * service
    assert mean == pytest.approx(float(queues.md1_wait(rho / service, service)), rel=1e-9)
    assert np.all(np.diff(survival.ravel()) <= 1e-12)


@MODERATE
@given(LOAD)
def test_md1_number_law(rho: float) -> None:
    pmf = queues.md1_number_pmf(rho, 1.0, 400)
    n = np.arange(401)
    assert pmf.sum() == pytest.approx(1.0, abs=1e-9)
    assert pmf @ n == pytest.approx(float(queues.mg1_number(rho, 1.0, 0.0)), rel=1e-7)
    # The generating function (1 - rho)(1 - z)/(1 - z e^(rho (1 - z))) at a point.
    z = 0.7
    transform = (1 - rho) * (1 - z) / (1 - z * math.exp(rho * (1 - z)))
    assert pmf @ z**n == pytest.approx(transform, rel=1e-9)


@MODERATE
@given(LOAD, st.integers(1, 12))
def test_mmc_against_its_birth_and_death_chain(rho: float, servers: int) -> None:
    n = np.arange(0, 1200)
    up = rho * servers / np.minimum(n[1:], servers)
    share = np.concatenate([[1.0], np.cumprod(up)])
    share /= share.sum()
    waiting = float(share @ np.maximum(n - servers, 0))
    found = queues.mmc_wait(rho * servers, 1.0, servers)
    assert found == pytest.approx(waiting / (rho * servers), rel=1e-6)
    approx = queues.mgc_wait(rho * servers, 1.0, 0.5, servers)
    assert isinstance(approx, Approximation)
    assert approx.value == pytest.approx(0.625 * found)
    assert approx.error == (0.0 if servers == 1 else None)


def test_mm1_wait_law() -> None:
    assert queues.mm1_wait_survival(2.0, 0.8, 1.0) == pytest.approx(0.8 * math.exp(-0.4))
    assert queues.mm1_wait(0.8, 1.0) == pytest.approx(4.0)


def test_published_dynamic_batching_bound() -> None:
    # T-69.
    bound = queues_batching.dynamic_batching_bound([2.0, 10.0, 30.0, 45.0], 0.1, 0.02)
    assert bound.kind == "upper"
    assert bound.value == pytest.approx([0.13558, 0.21042, 0.41563, 1.65263], abs=5.1e-6)


@pytest.mark.parametrize(
    "rate,simulated", [(2.0, 0.13524), (10.0, 0.19810), (30.0, 0.41543), (45.0, 1.64835)]
)
def test_dynamic_batching_chain_meets_the_published_simulation(
    rate: float, simulated: float
) -> None:
    # T-69 prints simulated means without an error; they agree to 0.3 %.
    assert queues_batching.dynamic_batching_latency(rate, 0.1, 0.02) == pytest.approx(
        simulated, rel=3e-3
    )


@settings(max_examples=15, deadline=None)
@given(st.floats(0.05, 0.85), st.floats(0.0, 0.2), st.floats(0.005, 0.05))
def test_dynamic_batching_is_below_its_bound(load: float, batch: float, each: float) -> None:
    rate = load / each
    exact = queues_batching.dynamic_batching_latency(rate, batch, each)
    bound = queues_batching.dynamic_batching_bound(rate, batch, each)
    assert batch + each <= exact <= bound.value * (1 + 1e-9)


def test_dynamic_batching_without_set_up_is_a_queue() -> None:
    # With t0 = 0 and light load a batch of one dominates: M/D/1's sojourn is the first order.
    rate, each = 0.02, 1.0
    exact = queues_batching.dynamic_batching_latency(rate, 0.0, each)
    queue = float(queues.mg1_sojourn(rate, each, 0.0))
    assert exact == pytest.approx(queue, rel=rate**2 * 2)


def test_dynamic_batching_against_a_plain_recursion() -> None:
    rng = np.random.default_rng(20240917)
    rate, batch, each = 20.0, 0.1, 0.02
    arrivals = np.cumsum(rng.exponential(1.0 / rate, 120_000))
    free, first, latency = 0.0, 0, []
    while first < arrivals.size:
        start = max(free, arrivals[first])
        last = int(np.searchsorted(arrivals, start, side="right"))
        free = start + batch + each * (last - first)
        latency.append(free - arrivals[first:last])
        first = last
    flat = np.concatenate(latency)[2000:]
    means = flat[: flat.size // 100 * 100].reshape(100, -1).mean(axis=1)
    error = means.std(ddof=1) / 10.0
    exact = queues_batching.dynamic_batching_latency(rate, batch, each)
    assert abs(means.mean() - exact) < 4.5 * error
    # The check has teeth: 3 % off would be seen.
    assert abs(means.mean() - 1.03 * exact) > 4.5 * error


def test_published_continuous_batching() -> None:
    # T-70.
    args = (76.619, 9.1e-3, 0.109e-3)
    running = queues_batching.continuous_batching_running([20.0, 60.0, 100.0], *args)
    latency = queues_batching.continuous_batching_latency([20.0, 60.0, 100.0], *args)
    assert running.value == pytest.approx([16.741, 83.851, 422.95], rel=2e-5)
    assert latency.value == pytest.approx([0.84251, 1.40663, 4.25709], abs=7e-5)
    # The simulated means of the same note lie within the error that the type states.
    assert running.error == latency.error == 0.02
    # Nearer to the limit nobody has measured the error, and the type says so.
    limit = float(queues_batching.continuous_batching_limit(*args[::2]))
    assert queues_batching.continuous_batching_running(0.95 * limit, *args).error is None
    assert latency.value == pytest.approx([0.8513, 1.4256, 4.174], rel=0.02)


@MODERATE
@given(st.floats(0.01, 0.99), st.floats(1.0, 300.0), st.floats(1e-4, 0.1), st.floats(1e-6, 1e-3))
def test_continuous_batching_closes_its_circle(
    share: float, rounds: float, step: float, each: float
) -> None:
    limit = float(queues_batching.continuous_batching_limit(rounds, each))
    rate = share * limit
    running = float(queues_batching.continuous_batching_running(rate, rounds, step, each).value)
    # Little's law: B = rate x rounds x (A + G B).
    assert running == pytest.approx(rate * rounds * (step + each * running), rel=1e-9)
    latency = queues_batching.continuous_batching_latency(rate, rounds, step, each).value
    assert latency == pytest.approx(running / rate + 0.5 * (step + each * running))
    point = queues_batching.continuous_batching_fixed_point(
        rate, rounds, lambda b: step + each * b, largest=1e9
    )
    assert point.value == pytest.approx(running, rel=1e-6)
    with pytest.raises(queues.UnstableError):
        queues_batching.continuous_batching_running(limit * 1.0001, rounds, step, each)


def test_fixed_point_of_two_alternating_groups() -> None:
    # Draft 4 + b/10 ms, verify 10 + b/5 ms of a group of b = B/2: period 2 (10 + B/10) ms.
    def period(running: float) -> float:
        half = 0.5 * running
        return 2.0 * max(0.004 + 0.0001 * half, 0.010 + 0.0002 * half)

    point = queues_batching.continuous_batching_fixed_point(20.0, 50.0, period)
    assert point.value == pytest.approx(1000.0 * 0.020 / (1.0 - 1000.0 * 0.0002))
    with pytest.raises(queues.UnstableError, match="16 running"):
        queues_batching.continuous_batching_fixed_point(20.0, 50.0, period, largest=16.0)


def test_unstable_is_an_assumption_and_an_input_error() -> None:
    for call in (
        lambda: queues.mg1_wait(1.0, 1.0, 0.0),
        lambda: queues.md1_wait_cdf(1.0, 2.0, 0.5),
        lambda: queues_batching.dynamic_batching_bound(50.0, 0.1, 0.02),
        lambda: queues_batching.dynamic_batching_latency(50.0, 0.1, 0.02),
    ):
        with pytest.raises(queues.UnstableError, match="expected below 1") as caught:
            call()
        assert isinstance(caught.value, AssumptionError)
        assert isinstance(caught.value, InputError)


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: queues.mg1_wait(-1.0, 1.0, 0.0), "arrival_rate is -1"),
        (lambda: queues.mg1_wait(0.5, 1.0, math.nan), "service_cv is not finite"),
        (lambda: queues.mgc_wait(0.5, 1.0, -1.0, 2), "service_cv is -1"),
        (lambda: queues.mmc_wait(0.5, 1.0, 0), "n_servers is 0"),
        (lambda: queues.md1_wait_cdf(-0.5, 0.5, 1.0), "t_s is"),
        (lambda: queues_batching.continuous_batching_latency(0.0, 9, 1, 0), "arrival_rate is 0"),
        (
            lambda: queues_batching.continuous_batching_fixed_point(1.0, 9.0, lambda b: -b),
            "expected a time above 0",
        ),
    ],
)
def test_bad_input_is_told(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
