"""Serial SD: published and worked numbers, brute force, limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import sd, sd_batch
from analysis._kinds import AssumptionError
from psdsim.errors import InputError

COSTS = {
    "draft_base_s": 2.0,
    "draft_per_seq_s": 0.005,
    "target_base_s": 20.0,
    "per_token_s": 0.05,
}
ALPHA = st.floats(0.01, 0.99)
COST = st.floats(0.005, 1.5)


def tokens_by_summing(alpha: float, k: int) -> float:
    return sum(alpha**j for j in range(k + 1))


@pytest.mark.parametrize(
    "alpha, cost, real_k, k, speedup, oracle, gain",
    [
        (0.8, 0.1, 5.756205, 6, 2.46964000, 3.57142857, 1.4461),
        (0.8, 0.05, 7.856654, 8, 3.09207954, 4.16666667, 1.3475),
        (0.7, 0.2, 2.704196, 3, 1.58312500, 2.27272727, 1.4356),
        (0.6, 0.1, 2.977904, 3, 1.67384615, 2.17391304, 1.2988),
    ],
)
def test_best_length_and_oracle_t10_to_t14(
    alpha: float, cost: float, real_k: float, k: int, speedup: float, oracle: float, gain: float
) -> None:
    assert sd.best_k_continuous(alpha, cost) == pytest.approx(real_k, abs=5e-7)
    assert sd.best_k(alpha, cost) == k
    best = sd.speedup(alpha, k, cost)
    assert best == pytest.approx(speedup, abs=5e-9)
    assert sd.oracle_speedup(alpha, cost) == pytest.approx(oracle, abs=5e-9)
    assert sd.oracle_speedup(alpha, cost) / best == pytest.approx(gain, abs=5e-5)


def test_speedups_operations_and_waste_t15_to_t19() -> None:
    assert sd.speedup(0.8, 4, 0.1) == pytest.approx(2.40114286, abs=5e-9)
    assert sd.speedup(0.6, 4, 0.3) == pytest.approx(1.048, abs=1e-12)
    assert sd.operations_factor(0.8, 5, 0.05) == pytest.approx(1.6940975, abs=5e-8)
    assert sd.operations_factor(0.75, 7) == pytest.approx(2.2225011, abs=5e-8)
    # Leviathan's Table 2: 3.4 times as fast at alpha .75 and k = 7 implies a ratio of .0084.
    assert sd.speedup(0.75, 7, 0.0084) == pytest.approx(3.4, abs=0.005)
    assert sd.wasted_drafts_per_token(0.8, 4) == pytest.approx(0.48739, abs=5e-6)


@given(ALPHA, COST)
@settings(max_examples=200, deadline=None)
def test_best_k_is_that_of_a_search_over_all_k(alpha: float, cost: float) -> None:
    rates = [tokens_by_summing(alpha, k) / (k * cost + 1.0) for k in range(41)]
    found = int(sd.best_k(alpha, cost, max_k=40))
    assert rates[found] >= max(rates) * (1.0 - 1e-12)
    real = float(sd.best_k_continuous(alpha, cost))
    if 0.0 < real < 40.0:
        assert np.floor(real) <= found <= np.ceil(real)
    if found == 0:
        assert alpha <= cost * (1.0 + 1e-9)


@given(ALPHA, COST, st.integers(0, 40))
@settings(max_examples=200, deadline=None)
def test_speedup_stays_below_its_bounds_and_the_oracle(alpha: float, cost: float, k: int) -> None:
    found = float(sd.speedup(alpha, k, cost))
    bound = sd.speedup_bound(alpha, k, cost)
    assert bound.kind == "upper"
    assert found <= float(bound.value) * (1.0 + 1e-12)
    # The oracle drafts only what will be accepted, so it beats every fixed length above 0.
    if alpha > cost or k == 0:
        assert found <= max(float(sd.oracle_speedup(alpha, cost)), 1.0) * (1.0 + 1e-12)


def test_limits_of_the_speedup() -> None:
    assert sd.speedup([0.0, 1.0], 4, 0.25).tolist() == [0.5, 2.5]
    assert sd.speedup(0.3, 0, 5.0) == 1.0
    assert sd.best_k([0.0, 1.0], 0.1, max_k=12).tolist() == [0, 12]
    assert sd.best_k(0.3, 0.3) == 0  # alpha = c: the first draft gains nothing
    assert sd.target_busy_share(1.0, 3.0) == 0.75
    assert sd.break_even_alpha(0.25) == 0.25


@pytest.mark.parametrize("k", [1, 4, 9])
def test_break_even_is_where_one_draft_pays(k: int) -> None:
    cost = 0.2
    assert sd.speedup(cost, 1, cost) == pytest.approx(1.0)
    assert sd.speedup(cost - 1e-6, k, cost) < 1.0
    assert sd.speedup(cost + 1e-6, 1, cost) > 1.0


def test_batch_form_t27() -> None:
    batch = np.array([1, 32, 128, 256])
    ratio = sd_batch.effective_cost_ratio(batch, **COSTS)
    np.testing.assert_allclose(ratio, [0.10249377, 0.17407407, 0.34242424, 0.49024390], atol=5e-9)
    k = sd.best_k(0.7, ratio)
    assert k.tolist() == [4, 3, 2, 1]
    np.testing.assert_allclose(
        sd.speedup(0.7, k, ratio), [1.966772, 1.664015, 1.299820, 1.140753], atol=5e-7
    )
    assert sd_batch.break_even_batch(0.7, **COSTS) == pytest.approx(600.0)
    assert sd_batch.effective_cost_ratio(600, **COSTS) == pytest.approx(0.7)


@given(ALPHA, st.integers(1, 12), st.integers(1, 600))
@settings(max_examples=100, deadline=None)
def test_effective_ratio_gives_the_speedup_of_the_affine_times(
    alpha: float, k: int, n: int
) -> None:
    ratio = sd_batch.effective_cost_ratio(n, **COSTS)
    plain = 20.0 + 0.05 * n
    round_s = k * (2.0 + 0.005 * n) + 20.0 + 0.05 * n * (k + 1)
    direct = tokens_by_summing(alpha, k) * plain / round_s
    assert sd.speedup(alpha, k, ratio) == pytest.approx(direct, rel=1e-12)
    # MagicDec's form is the same, upside down.
    again = sd_batch.relative_token_time(
        alpha, k, (2.0 + 0.005 * n) / plain, (20.0 + 0.05 * n * (k + 1)) / plain
    )
    assert 1.0 / again == pytest.approx(direct, rel=1e-12)


def test_measured_fit_t28() -> None:
    # A fit to measured steps (theory note 2.5), K = 3, tau 2.39, 500 KV tokens per request.
    batch = np.array([1.0, 8.0, 64.0])
    plain = 5.8859e-3 + 2.1010e-5 * batch + 3.9265e-8 * 500 * batch
    verify = 5.8859e-3 + 2.1010e-5 * batch * 4 + 3.9265e-8 * 500 * batch
    draft = 2.1353e-3 + 8.4e-7 * batch * 3 + 2.378e-9 * 500 * batch
    speedup = 2.39 * (plain + 1.207e-3) / (draft + verify + 1.207e-3)
    np.testing.assert_allclose(speedup, [1.827, 1.758, 1.439], rtol=1.5e-3)
    np.testing.assert_allclose(speedup, [1.81, 1.73, 1.36], rtol=0.06)
    # The pass itself is `long_context_time_ratio`.
    ratio = sd_batch.long_context_time_ratio(
        batch, 500, 4, base_s=5.8859e-3, per_token_s=2.1010e-5, per_kv_token_s=3.9265e-8
    )
    np.testing.assert_allclose(ratio, verify / plain, rtol=1e-12)


def test_long_context_makes_verification_free_at_any_batch() -> None:
    kwargs = {"base_s": 5.9e-3, "per_token_s": 2.1e-5, "per_kv_token_s": 3.9e-8}
    context = np.array([0.0, 1e3, 1e5, 1e9])
    for n in (1, 64):
        ratio = sd_batch.long_context_time_ratio(n, context, 4, **kwargs)
        assert np.all(np.diff(ratio) < 0)
        assert ratio[-1] == pytest.approx(1.0, abs=2e-6)
    # At short contexts the ratio grows with the batch.
    short = sd_batch.long_context_time_ratio([1, 64], 0, 4, **kwargs)
    assert short[0] < short[1]
    limit = sd_batch.long_context_speedup_limit(0.8, 4)
    reached = 1.0 / sd_batch.relative_token_time(0.8, 4, 1e-9, 1.0)
    assert reached == pytest.approx(float(limit.value), rel=1e-6)
    assert reached < float(limit.value)


def test_experts_touched_t29() -> None:
    assert sd_batch.touched_experts(512, 10, 4) == pytest.approx(38.843309, abs=5e-7)
    assert sd_batch.touched_experts(64, 8, 5) == pytest.approx(31.173828, abs=5e-7)
    # One token touches its K, none touches none, very many touch all.
    assert sd_batch.touched_experts(64, 8, [0, 1, 10_000]).tolist() == pytest.approx([0, 8, 64])
    with pytest.raises(AssumptionError, match="n_active"):
        sd_batch.touched_experts(4, 5, 1)


def test_target_efficiency_of_experts_falls_and_rises_with_the_batch() -> None:
    batch = np.array([1, 2, 4, 8, 16, 64, 256])
    found = sd_batch.target_efficiency_moe(
        batch, 4, n_experts=64, n_active=8, base_s=2.0, per_expert_s=1.0
    )
    low = int(np.argmin(found))
    assert np.all(np.diff(found)[low:] > 0)
    assert found[-1] == pytest.approx(1.0, abs=1e-9)
    small = sd_batch.target_efficiency_moe(
        [1, 2], 1, n_experts=64, n_active=1, base_s=32.0, per_expert_s=1.0
    )
    assert small[1] < small[0]


def test_parallel_drafter_and_medusa_t30() -> None:
    assert pytest.approx(2.84, abs=0.005) == 3.47 / 1.22
    assert sd_batch.parallel_drafter_speedup(3.47, 0.22) == pytest.approx(2.84, abs=0.005)
    even = sd_batch.break_even_acceptance_length(0.7)
    assert sd_batch.parallel_drafter_speedup(even, 0.7) == pytest.approx(1.0)


def test_inputs_that_break_an_assumption_are_named() -> None:
    with pytest.raises(AssumptionError, match="drafting costs nothing"):
        sd.oracle_speedup(1.0, 0.0)
    with pytest.raises(sd_batch.NeverBreaksEvenError):
        sd_batch.break_even_batch(
            1.0, draft_base_s=1.0, draft_per_seq_s=0.0, target_base_s=2.0, per_token_s=0.5
        )
    for bad in (True, float("nan"), -0.1, 1.1, "x"):
        with pytest.raises(InputError, match="alpha"):
            sd.speedup(bad, 4, 0.1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="draft_cost_ratio"):
        sd.speedup(0.5, 4, -0.1)
