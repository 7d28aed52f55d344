"""Longest stage times against quadrature, hand values and the exact chain of the cyclic queue."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from analysis import stages, stages_cyclic, stages_many
from analysis.stage_laws import Empirical, Exponential, Gamma, Normal, StageLaw, Uniform
from psdsim.errors import InputError

MODERATE = settings(max_examples=40, deadline=None)
TIME = st.floats(0.1, 50.0)


def test_published_values() -> None:
    # T-57 to T-60.
    assert stages.expected_max_normal(18, 3, 20, 2) == pytest.approx(20.654196, abs=5e-7)
    assert stages.variance_max_normal(18, 3, 20, 2) == pytest.approx(3.7113852, abs=5e-8)
    assert stages.expected_max_gamma(9, 2, 16, 1.25) == pytest.approx(22.208189, abs=5e-7)
    assert stages.expected_max_uniform(10, 26, 15, 25) == pytest.approx(21.3854167, abs=5e-8)
    assert stages.expected_max_empirical([10, 30], [20]) == 25.0


def test_published_values_by_the_general_integral() -> None:
    # T-57 to T-60 again, by the code that knows no closed form.
    normals = [Normal(18, 3), Normal(20, 2)]
    assert stages_many.expected_max_of(normals) == pytest.approx(20.654196, abs=5e-7)
    assert stages_many.variance_max_of(normals) == pytest.approx(3.7113852, abs=5e-8)
    assert stages_many.expected_max_of([Gamma(9, 2), Gamma(16, 1.25)]) == pytest.approx(
        22.208189, abs=5e-7
    )
    assert stages_many.expected_max_of([Uniform(10, 26), Uniform(15, 25)]) == pytest.approx(
        21.3854167, abs=5e-8
    )
    assert stages_many.expected_max_of([Empirical((10.0, 30.0)), Empirical((20.0,))]) == 25.0


@MODERATE
@given(TIME, st.floats(0.05, 9.0), TIME, st.floats(0.05, 9.0), st.floats(-0.95, 0.95))
def test_correlated_normals_against_quadrature(
    a: float, s: float, b: float, t: float, corr: float
) -> None:
    # Condition on A = x: B is normal, and E[max(x, B)] is E of a shifted positive part.
    sd = t * math.sqrt(1.0 - corr**2)

    def given_x(x: float, power: int) -> float:
        mean = b + corr * t * (x - a) / s
        z = (x - mean) / sd
        first = x * stats.norm.cdf(z) + mean * stats.norm.sf(z) + sd * stats.norm.pdf(z)
        second = (
            x**2 * stats.norm.cdf(z)
            + (mean**2 + sd**2) * stats.norm.sf(z)
            + sd * (mean + x) * stats.norm.pdf(z)
        )
        return float((first, second)[power - 1])

    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    weights = weights / weights.sum()
    # Where the kink is sharp Gauss-Hermite is poor: refuse to test what this cannot resolve.
    assume(sd >= 0.3 * abs(s - corr * t))
    first, second = (
        sum(w * given_x(a + s * z, p) for z, w in zip(nodes, weights, strict=True)) for p in (1, 2)
    )
    covariance = corr * s * t
    assert stages.expected_max_normal(a, s, b, t, covariance) == pytest.approx(first, rel=1e-6)
    assert stages.variance_max_normal(a, s, b, t, covariance) == pytest.approx(
        second - first**2, rel=1e-4, abs=1e-5
    )


def test_normals_that_move_together() -> None:
    # Fully correlated with equal spread: the greater mean wins on every path.
    assert stages.expected_max_normal(3.0, 2.0, 4.0, 2.0, 4.0) == 4.0
    assert stages.variance_max_normal(3.0, 2.0, 4.0, 2.0, 4.0) == 4.0
    assert stages.expected_max_normal([5.0, 4.0], 0.0, 4.0, 0.0).tolist() == [5.0, 4.0]


PAIRS: list[tuple[StageLaw, StageLaw, object, object]] = [
    (Gamma(0.4, 3.0), Gamma(7.0, 0.5), stats.gamma(0.4, scale=3.0), stats.gamma(7, scale=0.5)),
    (Exponential(2.0), Normal(3.0, 0.5), stats.expon(scale=2.0), stats.norm(3.0, 0.5)),
    (Uniform(1.0, 4.0), Gamma(3.0, 1.0), stats.uniform(1.0, 3.0), stats.gamma(3)),
    (Uniform(1.0, 2.0), Exponential(0.3), stats.uniform(1.0, 1.0), stats.expon(scale=0.3)),
]


@pytest.mark.parametrize("a,b,ref_a,ref_b", PAIRS)
def test_mixed_pairs_against_the_joint_density(a, b, ref_a, ref_b) -> None:
    # E[max^p] = integral of x^p (f_A F_B + F_A f_B): densities, where the code has only cdfs.
    def moment(power: int) -> float:
        total = 0.0
        for f, g in ((ref_a, ref_b), (ref_b, ref_a)):
            cuts = f.ppf([1e-15, 0.01, 0.3, 0.7, 0.99, 1 - 1e-14])
            kinks = [x for x in (*b.breaks, *a.breaks) if cuts[0] < x < cuts[-1]]
            edges = np.unique(np.concatenate([cuts, kinks]))
            for low, high in itertools.pairwise(edges):
                total += quad(lambda x, f=f, g=g: x**power * f.pdf(x) * g.cdf(x), low, high)[0]
        return total

    assert stages_many.expected_max_of([a, b]) == pytest.approx(moment(1), rel=1e-7)
    assert stages_many.variance_max_of([a, b]) == pytest.approx(
        moment(2) - moment(1) ** 2, rel=1e-6
    )


@MODERATE
@given(st.floats(0.2, 40.0), TIME, st.floats(0.2, 40.0), TIME)
def test_gamma_closed_form_is_the_integral(a: float, s: float, b: float, t: float) -> None:
    closed = float(stages.expected_max_gamma(a, s, b, t))
    assert stages_many.expected_max_of([Gamma(a, s), Gamma(b, t)]) == pytest.approx(
        closed, rel=1e-8
    )


@MODERATE
@given(
    st.tuples(st.floats(-20, 20), st.floats(0.1, 20)),
    st.tuples(st.floats(-20, 20), st.floats(0.1, 20)),
)
def test_uniform_closed_form_is_the_integral(a, b) -> None:
    ends = (a[0], a[0] + a[1], b[0], b[0] + b[1])
    closed = float(stages.expected_max_uniform(*ends))
    both = [Uniform(*ends[:2]), Uniform(*ends[2:])]
    assert stages_many.expected_max_of(both) == pytest.approx(closed, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7, 64, 512])
def test_many_equal_laws(n: int) -> None:
    harmonic = sum(1.0 / i for i in range(1, n + 1))
    squares = sum(1.0 / i**2 for i in range(1, n + 1))
    assert stages_many.expected_max_exponential_of(3.0, n) == pytest.approx(3.0 * harmonic)
    assert stages_many.variance_max_exponential_of(3.0, n) == pytest.approx(9.0 * squares)
    law = Exponential(3.0)
    assert stages_many.expected_max_of([law], [n]) == pytest.approx(3.0 * harmonic, rel=1e-11)
    assert stages_many.variance_max_of([law] * n) == pytest.approx(9.0 * squares, rel=1e-10)
    assert stages_many.expected_max_of([Uniform(1.0, 4.0)], [n]) == pytest.approx(
        float(stages_many.expected_max_uniform_of(1.0, 4.0, n)), rel=1e-12
    )


def test_known_normal_maxima() -> None:
    # Order statistics in closed form: n = 2, 3 and 5.
    root = math.sqrt(math.pi)
    five = 5.0 / (4.0 * root) * (1.0 + 6.0 / math.pi * math.asin(1.0 / 3.0))
    for n, exact in ((2, 1.0 / root), (3, 1.5 / root), (5, five)):
        assert stages_many.expected_max_of([Normal(0.0, 1.0)], [n]) == pytest.approx(
            exact, rel=1e-11
        )


@MODERATE
@given(st.lists(st.integers(0, 9).map(float), min_size=1, max_size=6), st.integers(1, 4))
def test_empirical_maximum_is_the_enumeration(values: list[float], n: int) -> None:
    draws = list(itertools.product(values, repeat=n))
    brute = sum(max(draw) for draw in draws) / len(draws)
    square = sum(max(draw) ** 2 for draw in draws) / len(draws)
    law = Empirical(tuple(values))
    assert stages_many.expected_max_empirical_of(values, n) == pytest.approx(brute)
    assert stages_many.expected_max_of([law], [n]) == pytest.approx(brute)
    assert stages_many.variance_max_of([law], [n]) == pytest.approx(square - brute**2, abs=1e-9)


@MODERATE
@given(
    st.lists(st.integers(0, 9).map(float), min_size=1, max_size=8),
    st.lists(st.integers(0, 9).map(float), min_size=1, max_size=8),
)
def test_empirical_pair_is_the_enumeration(a: list[float], b: list[float]) -> None:
    brute = sum(max(x, y) for x in a for y in b) / (len(a) * len(b))
    assert stages.expected_max_empirical(a, b) == pytest.approx(brute)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.builds(Normal, TIME, st.floats(0.1, 9.0)),
            st.builds(Gamma, st.floats(0.3, 30.0), st.floats(0.1, 3.0)),
            st.builds(Exponential, TIME),
            st.builds(lambda a, w: Uniform(a, a + w), TIME, st.floats(0.1, 9.0)),
            st.builds(lambda a, b: Empirical((a, b)), TIME, TIME),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_maximum_rises_with_company_and_scales(laws: list[StageLaw]) -> None:
    alone = [stages_many.expected_max_of([law]) for law in laws]
    together = stages_many.expected_max_of(laws)
    assert together >= max(alone) - 1e-6 * max(alone)
    assert together <= sum(abs(x) for x in alone) * (1.0 + 1e-6) + 30.0
    again = stages_many.expected_max_of(laws, [2] * len(laws))
    assert again >= together - 1e-6 * abs(together)
    assert stages_many.expected_max_of([*laws, *laws]) == pytest.approx(again, rel=1e-12)


@MODERATE
@given(st.floats(0.5, 20.0), st.floats(0.05, 0.9), st.floats(0.5, 20.0), st.floats(0.05, 0.9))
def test_lognormal_against_the_joint_density(a: float, ca: float, b: float, cb: float) -> None:
    # E[A; A > B] + E[B; B > A], each by the trapezoidal rule in the standard normal of its log.
    z = np.linspace(-12.0, 12.0, 4001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    brute = 0.0
    for mean, cv, mean_other, cv_other in ((a, ca, b, cb), (b, cb, a, ca)):
        s, s_other = math.sqrt(math.log1p(cv**2)), math.sqrt(math.log1p(cv_other**2))
        log_x = math.log(mean) - 0.5 * s * s + s * z
        below = stats.norm.cdf((log_x - math.log(mean_other) + 0.5 * s_other**2) / s_other)
        brute += float(np.trapezoid(np.exp(log_x) * below * density, z))
    assert stages.expected_max_lognormal(a, ca, b, cb) == pytest.approx(brute, rel=1e-9)


def test_expected_max_dispatch_and_its_quadrature() -> None:
    assert stages.expected_max(4.0, 1.0, 3.0, 0.0, "exponential") == pytest.approx(
        3.0 + 4.0 * math.exp(-0.75)
    )
    assert stages.expected_max(4.0, 0.0, 3.0, 0.0, "exponential") == 4.0
    value, error = stages.expected_max_by_quadrature(
        lambda t: math.exp(-t), lambda t: math.exp(-2.0 * t), 60.0
    )
    assert value == pytest.approx(1.0 + 0.5 - 1.0 / 3.0, abs=1e-9)
    assert error < 1e-6
    with pytest.raises(InputError, match="cv_a of an exponential is"):
        stages.expected_max(1.0, 0.5, 1.0, 0.0, "exponential")


def test_barrier_loss_vanishes_without_jitter() -> None:
    loss = [
        stages_many.barrier_loss([Normal(20.0, sd), Normal(20.0, sd)], [20.0, 20.0])
        for sd in (1e-6, 0.5, 2.0)
    ]
    assert loss == sorted(loss)
    assert loss[0] == pytest.approx(0.0, abs=1e-6)
    # E[max] - mean is sd/sqrt(pi).
    assert loss[2] == pytest.approx(1.0 - 20.0 / (20.0 + 2.0 / math.sqrt(math.pi)))


def test_published_cyclic_throughputs() -> None:
    # T-55 and T-56.
    found = stages_cyclic.cyclic_throughput_deterministic(18.0, 20.0, [1, 2, 3])
    assert found == pytest.approx([0.0263158, 0.05, 0.05], abs=5e-8)
    found = stages_cyclic.cyclic_throughput_exponential(1 / 1.25, 1.0, [1, 2, 3, 4, 8])
    expected = [0.55555556, 0.73770492, 0.82655827, 0.87815326, 0.96124380]
    assert found == pytest.approx(expected, abs=5.1e-9)
    step = stages.expected_max_exponential(0.8, 1.0)
    assert stages_cyclic.alternating_throughput(step) == pytest.approx(0.73770492, abs=5e-9)
    # T-57's M = 2 throughput and T-37's periods.
    normal = stages.expected_max_normal(18, 3, 20, 2)
    assert stages_cyclic.alternating_throughput(normal) == pytest.approx(0.0484163, abs=5e-8)
    assert stages_cyclic.round_period(10.0, 20.0, [1, 2]).tolist() == [30.0, 40.0]


@MODERATE
@given(TIME, TIME, st.integers(1, 12))
def test_cyclic_queue_against_its_birth_and_death_chain(d: float, v: float, m: int) -> None:
    # j groups at the verifier: up at 1/d while j < m, down at 1/v while j > 0.
    share = np.cumprod([1.0] + [v / d] * m)
    share /= share.sum()
    chain = (1.0 - share[0]) / v
    closed = stages_cyclic.cyclic_throughput_exponential(d, v, m)
    assert closed == pytest.approx(chain, rel=1e-9)
    assert stages_cyclic.cyclic_throughput_mva(d, v, m) == pytest.approx(chain, rel=1e-9)
    bound = stages_cyclic.cyclic_throughput_bound(d, v, m)
    assert bound.kind == "upper"
    assert closed <= bound.value * (1 + 1e-12)


@MODERATE
@given(TIME, TIME, TIME, st.integers(1, 20))
def test_delay_only_slows(d: float, v: float, delay: float, m: int) -> None:
    quick = stages_cyclic.cyclic_throughput_mva(d, v, m)
    slow = stages_cyclic.cyclic_throughput_mva(d, v, m, delay)
    assert slow <= quick * (1 + 1e-12)
    assert slow <= m / (d + v + delay) * (1 + 1e-12)
    if m == 1:
        assert slow == pytest.approx(1.0 / (d + v + delay))
        assert slow < quick


@MODERATE
@given(TIME, TIME)
def test_two_groups_never_shorten_the_period(d: float, v: float) -> None:
    one, two = stages_cyclic.round_period(d, v, [1, 2])
    assert two >= one * (1 - 1e-12)
    assert two / one == pytest.approx(2.0 * max(d, v) / (d + v))
    # Throughput gains by 1 + min/max all the same.
    x = stages_cyclic.cyclic_throughput_deterministic(d, v, [1, 2])
    assert x[1] / x[0] == pytest.approx(1.0 + min(d, v) / max(d, v))


def test_latency_of_a_request() -> None:
    assert stages_cyclic.time_per_token(40.0, 3.3616) == pytest.approx(40.0 / 3.3616)
    found = stages_cyclic.decode_latency([1, 3], 40.0, 30.0)
    assert found.tolist() == [30.0, 110.0]


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: Uniform(2.0, 2.0), "expected low < high"),
        (lambda: Normal(0.0, 0.0), "sd is 0"),
        (lambda: Gamma(-1.0, 1.0), "shape is -1"),
        (lambda: Empirical(()), "0 values"),
        (lambda: Empirical((1.0, 2.0), (1.0,)), "1 weights"),
        (lambda: stages_many.expected_max_of([]), "there is no law"),
        (lambda: stages_many.expected_max_of([Exponential(1.0)], [1, 2]), "counts has shape"),
        (lambda: stages.expected_max_normal(1, 1, 1, 1, 2.0), "covariance is beyond"),
        (lambda: stages.expected_max_uniform(1, 1, 1, 2), "expected low < high"),
        (lambda: stages.expected_max_empirical([], [1.0]), "at least one value"),
        (lambda: stages_cyclic.cyclic_throughput_exponential(1.0, 1.0, 0), "n_groups is 0"),
    ],
)
def test_bad_input_is_told(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_weighted_measurements() -> None:
    law = Empirical((10.0, 30.0), (3.0, 1.0))
    assert law.cdf(10.0) == 0.75
    assert law.quantile([0.0, 0.75, 0.76]).tolist() == [10.0, 10.0, 30.0]
    assert stages_many.expected_max_of([law]) == pytest.approx(15.0)
