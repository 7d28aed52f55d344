"""Whatever the setting: tokens are conserved, nobody is lost, devices are never overbooked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psdsim.acceptance import IidAcceptance
from psdsim.errors import InputError
from tests.engine.kit import conserved, run, work

lengths = st.lists(st.integers(1, 40), min_size=1, max_size=30)


@settings(max_examples=120)
@given(
    schedule=st.sampled_from(["ar", "sd", "minedraft", "pearl", "pearl-draft-ahead"]),
    k=st.integers(1, 6),
    m=st.integers(1, 5),
    alpha=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    output=lengths,
    gap=st.sampled_from([0.0, 0.1, 1.7]),
    kv_blocks=st.sampled_from([None, 16, 24, 60]),
    cv=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 5),
)
def test_conservation(schedule, k, m, alpha, output, gap, kv_blocks, cv, seed):
    requests = work(output, prompt=4, arrival=gap * np.arange(len(output)))
    raw = run(
        schedule, k, requests, m=m, acceptance=IidAcceptance(alpha=alpha), seed=seed,
        kv_blocks=kv_blocks, block_size=4, overhead=0.01, sync=0.001,
        cost={"target_jitter_cv": cv, "draft_jitter_cv": cv},
    )  # fmt: skip
    conserved(raw)


@settings(max_examples=60)
@given(
    schedule=st.sampled_from(["ar", "sd"]),
    k=st.integers(1, 4),
    output=lengths,
    budget=st.sampled_from([24, 32, 50]),
    kv_blocks=st.sampled_from([None, 30, 60]),
)
def test_conservation_with_chunked_prefill(schedule, k, output, budget, kv_blocks):
    requests = work(output, prompt=37, arrival=0.3 * np.arange(len(output)))
    raw = run(
        schedule, k, requests, m=4, chunked=True, max_num_batched_tokens=budget,
        kv_blocks=kv_blocks, block_size=4,
    )  # fmt: skip
    conserved(raw)
    if not raw.requests["n_preemptions"].any():
        assert raw.steps["n_prefill_tokens"].sum() == 37 * len(output)


@settings(max_examples=40)
@given(
    schedule=st.sampled_from(["ar", "sd", "minedraft", "pearl"]),
    n_replicas=st.integers(2, 4),
    routing=st.sampled_from(["round_robin", "least_loaded"]),
    concurrency=st.sampled_from([None, 1, 7]),
    output=st.lists(st.integers(1, 30), min_size=8, max_size=30),
)
def test_conservation_over_replicas(schedule, n_replicas, routing, concurrency, output):
    requests = work(output, concurrency=concurrency)
    raw = run(schedule, 2, requests, m=2, n_replicas=n_replicas, routing=routing)
    conserved(raw)
    if routing == "round_robin":
        expected = np.arange(len(output)) % n_replicas
        np.testing.assert_array_equal(raw.requests["replica"], expected)


def test_closed_loop_never_exceeds_its_concurrency():
    raw = run("sd", 3, work([20] * 50, concurrency=5), m=16)
    order = np.argsort(raw.requests["finish_s"])
    finish, arrival = raw.requests["finish_s"][order], np.sort(raw.requests["arrival_s"])
    # The (i+5)-th request arrives exactly when the i-th finishes.
    np.testing.assert_array_equal(arrival[5:], finish[:-5])
    assert raw.steps["n_running"].max() <= 5


@pytest.mark.parametrize("schedule", ["ar", "sd", "minedraft", "pearl"])
def test_preemption_recomputes_and_keeps_the_order(schedule):
    # Three requests of 8+32 tokens want 30 blocks of 4; 16 hold one and a half.
    requests = work([32, 32, 32], prompt=8)
    raw = run(schedule, 3, requests, m=3, kv_blocks=16, block_size=4)
    assert raw.requests["n_preemptions"].sum() > 0
    assert raw.requests["n_preemptions"][0] == 0  # the first admitted is never preempted
    conserved(raw)
    roomy = run(schedule, 3, requests, m=3, kv_blocks=1000, block_size=4)
    assert roomy.requests["n_preemptions"].sum() == 0
    assert roomy.makespan_s < raw.makespan_s


def test_kv_pool_never_overflows():
    requests = work([30] * 12, prompt=9)
    raw = run("sd", 4, requests, m=8, kv_blocks=40, block_size=4)
    # Contexts alone (prompt + emitted - 1 per request) stay within the pool.
    assert (raw.steps["n_kv_tokens"] <= 40 * 4).all()
    conserved(raw)


def test_request_longer_than_the_pool_is_refused():
    with pytest.raises(InputError, match=r"engine.kv_blocks: request 1 .* needs 29 KV blocks"):
        run("sd", 3, work([20, 100], prompt=8), kv_blocks=20, block_size=4)


def test_prompt_longer_than_the_budget_is_refused():
    with pytest.raises(InputError, match="has 300 prompt tokens and one pass takes 256"):
        run("sd", 3, work([20], prompt=300), max_num_batched_tokens=256)
