"""Synthetic workloads: arrivals by each convention, lengths by each law, streams by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psdsim.errors import InputError
from psdsim.workload import (
    BatchWorkload,
    ConcurrencyWorkload,
    EmpiricalLengths,
    GammaWorkload,
    LognormalLengths,
    PoissonWorkload,
    Requests,
    generate,
)

N = 40_000


def poisson(**more):
    return PoissonWorkload(rate=5.0, n_requests=N, prompt_tokens=8, output_tokens=8, **more)


def gaps_of(workload, replication=0):
    return np.diff(generate(workload, 1, replication).arrival_s, prepend=0.0)


def test_poisson_gaps_are_exponential():
    gaps = gaps_of(poisson())
    assert abs(gaps.mean() - 0.2) < 4.5 * 0.2 / math.sqrt(N)
    # Var of the sample variance of an exponential is 8 sigma^4 / n.
    assert abs(gaps.var() - 0.04) < 4.5 * 0.04 * math.sqrt(8 / N)
    assert abs((gaps > 0.2).mean() - math.exp(-1)) < 4.5 * math.sqrt(0.2325 / N)


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gamma_gaps_have_mean_and_cv(burstiness):
    work = GammaWorkload(
        rate=5.0, burstiness=burstiness, n_requests=N, prompt_tokens=8, output_tokens=8
    )
    gaps = gaps_of(work)
    cv = 1 / math.sqrt(burstiness)
    assert abs(gaps.mean() - 0.2) < 4.5 * 0.2 * cv / math.sqrt(N)
    # Gamma kurtosis: Var of the variance estimate is sigma^4 (2 + 6/shape) / n.
    error = (0.2 * cv) ** 2 * math.sqrt((2 + 6 / burstiness) / N)
    assert abs(gaps.var() - (0.2 * cv) ** 2) < 4.5 * error


def test_vllm_semantics_end_exactly_and_sglang_start_at_zero():
    vllm = generate(poisson(semantics="vllm"), 1, 0)
    assert vllm.arrival_s[-1] == N / 5.0
    assert any("not a Poisson process" in note for note in vllm.notes)
    sglang = generate(poisson(semantics="sglang"), 1, 0)
    assert sglang.arrival_s[0] == 0.0
    plain = generate(poisson(), 1, 0)
    np.testing.assert_allclose(np.diff(sglang.arrival_s), np.diff(plain.arrival_s), atol=1e-9)


def test_gamma_of_burstiness_1_is_poisson_in_law_only_but_rate_scales_the_same_gaps():
    slow = generate(poisson(), 1, 0).arrival_s
    fast = generate(poisson().model_copy(update={"rate": 10.0}), 1, 0).arrival_s
    np.testing.assert_allclose(fast * 2, slow)


def test_streams_are_separate():
    base = BatchWorkload(
        n_requests=50,
        prompt_tokens=LognormalLengths(mean=100, cv=0.5),
        output_tokens=LognormalLengths(mean=50, cv=0.5),
    )
    other = base.model_copy(update={"prompt_tokens": 7})
    a, b = generate(base, 1, 0), generate(other, 1, 0)
    np.testing.assert_array_equal(a.output_tokens, b.output_tokens)
    assert (a.output_tokens != generate(base, 1, 1).output_tokens).any()
    np.testing.assert_array_equal(a.output_tokens, generate(base, 1, 0).output_tokens)


def test_lognormal_moments():
    law = LognormalLengths(mean=400, cv=0.8)
    work = BatchWorkload(n_requests=N, prompt_tokens=law, output_tokens=1)
    drawn = generate(work, 2, 0).prompt_tokens
    assert abs(drawn.mean() - 400) < 4.5 * 320 / math.sqrt(N)
    assert drawn.std() / drawn.mean() == pytest.approx(0.8, rel=0.05)
    assert drawn.min() >= 1


def test_empirical_frequencies():
    law = EmpiricalLengths(values=(10, 20, 30), weights=(1.0, 0.0, 3.0))
    work = BatchWorkload(n_requests=N, prompt_tokens=law, output_tokens=1)
    drawn = generate(work, 2, 0).prompt_tokens
    assert set(drawn.tolist()) == {10, 30}
    assert abs((drawn == 30).mean() - 0.75) < 4.5 * math.sqrt(0.1875 / N)


def test_closed_loop_and_batch():
    closed = generate(
        ConcurrencyWorkload(concurrency=3, n_requests=9, prompt_tokens=4, output_tokens=4), 0, 0
    )
    assert closed.concurrency == 3
    assert not closed.open_loop
    batch = generate(BatchWorkload(n_requests=9, prompt_tokens=4, output_tokens=4), 0, 0)
    assert batch.concurrency is None
    assert not batch.arrival_s.any()


@pytest.mark.parametrize(
    "columns, message",
    [
        (([], [], []), "there are no requests"),
        (([1.0, 0.0], [1, 1], [1, 1]), "non-decreasing"),
        (([0.0], [0], [1]), "prompt_tokens contains 0"),
        (([0.0], [1], [0]), "output_tokens contains 0"),
        (([0.0, 1.0], [1, 1], [1]), "output_tokens has shape"),
        (([float("nan")], [1], [1]), "not finite"),
    ],
)
def test_impossible_requests(columns, message):
    arrival, prompt, output = columns
    with pytest.raises(InputError, match=message):
        Requests(np.array(arrival), np.array(prompt, dtype=int), np.array(output, dtype=int))
