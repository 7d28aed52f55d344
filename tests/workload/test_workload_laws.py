"""Length laws, arrival conventions and summaries against values worked out independently."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from scipy import stats

from psdsim.errors import InputError
from psdsim.seeds import Stream, generator
from psdsim.workload import (
    BatchWorkload,
    ConcurrencyWorkload,
    EmpiricalLengths,
    GammaWorkload,
    LognormalLengths,
    PoissonWorkload,
    Workload,
    draw_lengths,
    generate,
)
from psdsim.workload.arrivals import arrival_times
from psdsim.workload.lengths import length_note

N = 40_000
COMMON = {"prompt_tokens": 8, "output_tokens": 8}


def lognormal_pmf(law):
    """Exact law of the rounded and clipped lognormal, from the normal distribution function."""
    sigma2 = math.log(1 + law.cv**2)
    mu = math.log(law.mean) - sigma2 / 2
    values = np.arange(1, law.max + 1)
    # P(round(X) <= v) = P(X <= v + 1/2); all below goes to 1, all above to max.
    below = stats.norm.cdf((np.log(values + 0.5) - mu) / math.sqrt(sigma2))
    below[-1] = 1.0
    return values, np.diff(below, prepend=0.0)


@pytest.mark.parametrize("mean, cv, longest", [(3.0, 2.0, 12), (40.0, 0.5, 60), (200.0, 1.2, 300)])
def test_lognormal_rounded_and_clipped(mean, cv, longest):
    law = LognormalLengths(mean=mean, cv=cv, max=longest)
    values, p = lognormal_pmf(law)
    drawn = draw_lengths(law, N, np.random.default_rng(11))
    exact = (values * p).sum()
    error = math.sqrt(((values - exact) ** 2 * p).sum() / N)
    assert abs(drawn.mean() - exact) < 4.5 * error
    # The check can tell: the mean asked for is not that of the clipped draws.
    assert abs(drawn.mean() - mean) > 9 * error
    for quantile in (0.25, 0.5, 0.75):
        v = values[np.searchsorted(p.cumsum(), quantile)]
        share = p[values <= v].sum()
        assert abs((drawn <= v).mean() - share) < 4.5 * math.sqrt(share * (1 - share) / N) + 1e-12


def test_unclipped_lognormal_variance():
    law = LognormalLengths(mean=5_000.0, cv=0.5)
    drawn = draw_lengths(law, N, np.random.default_rng(12)).astype(float)
    sd = 2_500.0
    assert abs(drawn.mean() - 5_000) < 4.5 * sd / math.sqrt(N)
    # Fourth standardised moment of a lognormal with w = 1 + cv^2: w^4 + 2w^3 + 3w^2 - 3.
    w = 1.25
    kurtosis = w**4 + 2 * w**3 + 3 * w**2 - 3
    # Rounding adds 1/12, far below the error.
    assert abs(drawn.var() - sd**2) < 4.5 * sd**2 * math.sqrt((kurtosis - 1) / N)


def test_cut_draws_are_counted():
    law = LognormalLengths(mean=10.0, cv=1.0, max=11)
    drawn = np.array([3, 11, 11, 7])
    assert length_note("prompt_tokens", law, drawn) == (
        "prompt_tokens: 2 of 4 lognormal draws lie at or above max 11; drawn mean 8.0, asked for 10"
    )
    assert length_note("prompt_tokens", law, np.array([3, 7])) is None
    assert length_note("prompt_tokens", 4, np.array([4])) is None
    work = BatchWorkload(n_requests=500, prompt_tokens=law, output_tokens=law)
    notes = generate(work, 5, 0).notes
    assert [note.split(":")[0] for note in notes] == ["prompt_tokens", "output_tokens"]


def test_empirical_law():
    weights = (2.0, 0.0, 5.0, 3.0, 0.0)
    law = EmpiricalLengths(values=(7, 8, 7_000, 1, 9), weights=weights)
    drawn = draw_lengths(law, N, np.random.default_rng(13))
    counts = [int((drawn == v).sum()) for v in (7, 7_000, 1)]
    assert sum(counts) == N
    # Chi-squared with 2 degrees of freedom: P(X > 24) = exp(-12).
    chi2 = stats.chisquare(counts, N * np.array([0.2, 0.5, 0.3])).statistic
    assert chi2 < 24
    even = draw_lengths(EmpiricalLengths(values=(1, 2)), N, np.random.default_rng(13))
    assert abs((even == 1).mean() - 0.5) < 4.5 * 0.5 / math.sqrt(N)


class _Uniform:
    """A generator whose uniforms are all the same."""

    def __init__(self, value):
        self.value = value

    def random(self, n):
        return np.full(n, self.value)


def test_a_value_without_weight_is_never_drawn():
    # Ten tenths add up to less than 1 in floating point, so the largest uniform lies above them.
    tenths = EmpiricalLengths(values=tuple(range(1, 12)), weights=(0.1,) * 10 + (0.0,))
    assert np.cumsum(np.full(10, 0.1) / 1.0)[-1] < 1.0
    assert draw_lengths(tenths, 2, _Uniform(np.nextafter(1.0, 0.0))).tolist() == [10, 10]
    # The smallest uniform lies on the upper edge of a value that has no weight.
    first = EmpiricalLengths(values=(1, 2), weights=(0.0, 1.0))
    assert draw_lengths(first, 2, _Uniform(0.0)).tolist() == [2, 2]


def test_arrivals_come_from_a_stream_of_their_own():
    work = PoissonWorkload(rate=2.0, n_requests=20, **COMMON)
    gaps = generator(4, 3, Stream.ARRIVALS).standard_exponential(20)
    np.testing.assert_array_equal(generate(work, 4, 3).arrival_s, np.cumsum(gaps) / 2.0)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0, 100, allow_subnormal=False), min_size=1, max_size=30),
    st.floats(1e-3, 1e3),
)
def test_arrival_conventions(gaps, rate):
    g = np.array(gaps)
    n = len(g)
    plain = arrival_times(g, rate, "plain")
    exact = [math.fsum(gaps[: i + 1]) / rate for i in range(n)]
    np.testing.assert_allclose(plain, exact, rtol=1e-12)
    later = arrival_times(g, rate, "sglang")
    assert later[0] == 0.0
    np.testing.assert_allclose(later, np.array(exact) - exact[0], rtol=1e-9, atol=1e-9 * exact[-1])
    if g.sum() > 0:
        scaled = arrival_times(g, rate, "vllm")
        assert scaled[-1] == n / rate
        np.testing.assert_allclose(scaled, np.array(exact) * (n / rate) / exact[-1], rtol=1e-9)
        assert (np.diff(scaled) >= 0).all()


def test_arrivals_that_cannot_be_made():
    with pytest.raises(InputError, match="all gaps are 0"):
        arrival_times(np.zeros(3), 1.0, "vllm")
    with pytest.raises(InputError, match="semantics is 'trt'; expected plain, vllm or sglang"):
        arrival_times(np.ones(3), 1.0, "trt")


@pytest.mark.parametrize("semantics", ["plain", "vllm"])
@pytest.mark.parametrize("burstiness", [0.3, 1.0, 5.0])
def test_gamma_gaps_are_gamma(burstiness, semantics):
    work = GammaWorkload(
        rate=20.0, burstiness=burstiness, semantics=semantics, n_requests=N, **COMMON
    )
    arrival = generate(work, 21, 0).arrival_s
    gaps = np.diff(arrival, prepend=0.0) * 20.0
    # Kolmogorov: P(sqrt(n) D > 3.1) < 1e-8; with the scale fitted, as vllm does, D is smaller.
    assert stats.kstest(gaps, stats.gamma(burstiness, scale=1 / burstiness).cdf).statistic < 3.1 / (
        math.sqrt(N)
    )
    if semantics == "vllm":
        assert arrival[-1] == N / 20.0
    # Wrong by a fifth in shape, it would be seen.
    other = stats.gamma(burstiness * 1.2, scale=1 / (burstiness * 1.2)).cdf
    assert stats.kstest(gaps, other).statistic > 3.1 / math.sqrt(N)


def test_counts_of_a_poisson_process_are_poisson():
    work = PoissonWorkload(rate=5.0, n_requests=N, **COMMON)
    arrival = generate(work, 22, 0).arrival_s
    counts = np.histogram(arrival, bins=np.arange(0.0, arrival[-1] - 1.0))[0]
    m = len(counts)
    # Mean and variance are 5; the variance of the sample variance is (5 + 2 * 25) / m.
    assert abs(counts.mean() - 5.0) < 4.5 * math.sqrt(5.0 / m)
    assert abs(counts.var() - 5.0) < 4.5 * math.sqrt(55.0 / m)
    # Independent gaps have no lag-1 correlation.
    gaps = np.diff(arrival)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 4.5 / math.sqrt(N)


@pytest.mark.parametrize(
    "work",
    [
        PoissonWorkload(rate=2.0, n_requests=300, **COMMON),
        PoissonWorkload(rate=2.0, n_requests=300, semantics="sglang", **COMMON),
        GammaWorkload(rate=2.0, burstiness=0.4, n_requests=300, **COMMON),
        BatchWorkload(
            n_requests=300,
            prompt_tokens=LognormalLengths(mean=90, cv=1),
            output_tokens=EmpiricalLengths(values=(3, 4, 5)),
        ),
    ],
)
def test_a_longer_run_starts_with_the_shorter(work):
    short = generate(work.model_copy(update={"n_requests": 120}), 9, 2)
    long = generate(work, 9, 2)
    for name in ("arrival_s", "prompt_tokens", "output_tokens"):
        np.testing.assert_array_equal(getattr(long, name)[:120], getattr(short, name))


def test_seeds_and_replications_differ_and_repeat():
    work = PoissonWorkload(
        rate=2.0,
        n_requests=50,
        prompt_tokens=LognormalLengths(mean=900, cv=1),
        output_tokens=LognormalLengths(mean=900, cv=1),
    )
    seen = {}
    for key in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        a, b = generate(work, *key), generate(work, *key)
        np.testing.assert_array_equal(a.arrival_s, b.arrival_s)
        np.testing.assert_array_equal(a.prompt_tokens, b.prompt_tokens)
        seen[key] = (a.arrival_s[0], *a.prompt_tokens[:5].tolist())
        # Prompts and outputs of one law are not the same draws.
        assert (a.prompt_tokens != a.output_tokens).mean() > 0.9
    assert len(set(seen.values())) == 4
    # Arrivals don't depend on the lengths.
    other = work.model_copy(update={"prompt_tokens": 4, "output_tokens": 4})
    np.testing.assert_array_equal(generate(other, 1, 1).arrival_s, generate(work, 1, 1).arrival_s)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "poisson"},
        {"kind": "poisson", "rate": True},
        {"kind": "poisson", "rate": 0.0},
        {"kind": "poisson", "rate": -1.0},
        {"kind": "poisson", "rate": math.inf},
        {"kind": "poisson", "rate": math.nan},
        {"kind": "poisson", "rate": 1.0, "semantics": "trt"},
        {"kind": "gamma", "rate": 1.0, "burstiness": 0.0},
        {"kind": "gamma", "rate": 1.0, "burstiness": 1.0, "semantics": "sglang"},
        {"kind": "concurrency", "concurrency": 0},
        {"kind": "concurrency", "concurrency": 2.0},
        {"kind": "batch", "rate": 1.0},
        {"kind": "batch", "n_requests": True},
        {"kind": "batch", "n_requests": 0},
        {"kind": "batch", "prompt_tokens": 0},
        {"kind": "batch", "prompt_tokens": True},
        {"kind": "batch", "prompt_tokens": 8.0},
        {"kind": "batch", "prompt_tokens": {"kind": "lognormal", "mean": 9, "cv": -1}},
        {"kind": "batch", "prompt_tokens": {"kind": "lognormal", "mean": 9, "cv": 1, "max": 8}},
        {"kind": "batch", "prompt_tokens": {"kind": "empirical", "values": []}},
        {"kind": "batch", "prompt_tokens": {"kind": "empirical", "values": [1], "weights": [0.0]}},
        {"kind": "batch", "prompt_tokens": {"kind": "empirical", "values": [1], "weights": [1, 2]}},
        {"kind": "batch", "prompt_tokens": {"kind": "uniform"}},
    ],
)
def test_impossible_workloads(change):
    adapter = TypeAdapter(Workload)
    base = {"n_requests": 5, **COMMON}
    adapter.validate_python({"kind": "batch", **base})
    with pytest.raises(ValidationError):
        adapter.validate_python(base | change)


def test_a_closed_loop_has_no_arrivals_but_lengths():
    work = ConcurrencyWorkload(
        concurrency=64,
        n_requests=1000,
        prompt_tokens=LognormalLengths(mean=90, cv=1),
        output_tokens=5,
    )
    r = generate(work, 0, 0)
    assert (r.concurrency, r.open_loop, len(r)) == (64, False, 1000)
    assert not r.arrival_s.any()
    # The same lengths as a batch of the same seed: what is asked for doesn't depend on how.
    batch = BatchWorkload(
        n_requests=1000, prompt_tokens=work.prompt_tokens, output_tokens=work.output_tokens
    )
    np.testing.assert_array_equal(r.prompt_tokens, generate(batch, 0, 0).prompt_tokens)
