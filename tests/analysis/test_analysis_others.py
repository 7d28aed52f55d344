"""DSI, SSD, allocation, DSpark, SmartSpec, relaxed verification, CARD."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from analysis import allocation, card, dsi, dspark, goodput, relaxed, saguaro, sd
from analysis._kinds import AssumptionError
from analysis.rounds import acceptance_length_iid
from psdsim.errors import InputError

RATE = st.floats(0.01, 0.99)


# ---- DSI ---------------------------------------------------------------------------------------


def test_dsi_t45_to_t47() -> None:
    bound = dsi.expected_time(50, 0.8, 0.1, 1.0)
    assert bound.kind == "upper"
    assert bound.value == pytest.approx(14.72)
    assert 50 / float(bound.value) == pytest.approx(3.3967391, abs=5e-8)
    assert dsi.speedup_limit(0.8, 0.1, 1.0) == pytest.approx(3.5714286, abs=5e-8)
    assert dsi.servers_needed(0.05, 1.0, 5) == 4
    assert dsi.least_lookahead(0.05, 1.0, [7, 3]).tolist() == [3, 7]
    assert dsi.parallelism_to_match(0.8, 2) == pytest.approx(2.78, abs=0.005)


@given(RATE, st.floats(0.01, 1.0))
@settings(max_examples=50, deadline=None)
def test_dsi_tends_to_the_oracle_length(p: float, t1: float) -> None:
    limit = float(dsi.speedup_limit(p, t1, 1.0))
    assert limit == pytest.approx(float(sd.oracle_speedup(p, t1)))
    long = 10**7
    assert long / float(dsi.expected_time(long, p, t1, 1.0).value) == pytest.approx(limit, rel=1e-4)
    # At worst, a rejection every time, it is plain decoding.
    assert dsi.expected_time(9, 0.0, t1, 1.0).value == 9.0


def test_dsi_bound_is_the_mean_of_the_proofs_variable() -> None:
    # Of the first N-1 tokens each costs t2 if its draft misses, else t1; the last costs t2.
    n, p, t1 = 6, 0.7, 0.2
    mean = 0.0
    for misses in itertools.product((0, 1), repeat=n - 1):
        weight = np.prod([1 - p if m else p for m in misses])
        mean += weight * (sum(1.0 if m else t1 for m in misses) + 1.0)
    assert dsi.expected_time(n, p, t1, 1.0).value == pytest.approx(mean)


# ---- SSD / Saguaro -----------------------------------------------------------------------------


def test_ssd_t48_to_t52() -> None:
    found = float(saguaro.speedup(0.85, 3.3616, 1.0, 0.5, 0.0))
    assert found == pytest.approx(3.00736, abs=5e-6)
    serial = float(sd.speedup(0.8, 4, 0.1))  # T_SD = 4 x .1
    assert found / serial == pytest.approx(1.2524703, abs=5e-8)
    low, high = (
        float(saguaro.ratio_to_sd_bound(0.85, 3.3616, 3.3616, 0.4, 0.5, 0.0, side).value)
        for side in ("lower", "upper")
    )
    assert (low, high) == (pytest.approx(1.19), pytest.approx(1.4))
    batches = saguaro.speedup(0.85, 3.3616, 3.3616, 0.4, 0.4, [1, 4, 16])
    np.testing.assert_allclose(batches, [3.1713208, 2.8220341, 2.4531862], atol=5e-8)
    assert saguaro.stationary_hit_rate(0.9, 0.6) == pytest.approx(0.85714286, abs=5e-9)
    assert saguaro.backup_switch_batch(0.85, 3.3616, 1.0, 0.4) == pytest.approx(2.1463142, abs=5e-8)


def test_backup_switch_is_where_both_backups_are_equally_fast() -> None:
    # The primary as its own backup: E_hit either way, T_p after a miss. The fast one: nothing.
    p, e_hit, e_miss, t = 0.85, 3.3616, 1.0, 0.4

    def difference(batch: float) -> float:
        primary = e_hit / (p**batch + (1 - p**batch) * (1 + t))
        return primary - (p * e_hit + (1 - p) * e_miss)

    root = brentq(difference, 1.0, 50.0)
    assert saguaro.backup_switch_batch(p, e_hit, e_miss, t) == pytest.approx(root, rel=1e-10)
    # An almost free primary is never worth replacing.
    assert saguaro.backup_switch_batch(p, e_hit, e_miss, 0.01) == np.inf


@given(RATE, RATE, st.floats(1.0, 6.0), st.floats(0.0, 0.99), st.floats(0.0, 2.0))
@settings(max_examples=100, deadline=None)
def test_ssd_never_loses_to_sd_and_stays_in_its_sandwich(
    p: float, q: float, tokens: float, draft: float, sd_draft: float
) -> None:
    # Corollary 8: the same speculator as primary and backup.
    same = float(saguaro.speedup(p, tokens, tokens, sd_draft, sd_draft))
    assert same >= tokens / (1 + sd_draft) * (1 - 1e-12)
    # Corollary 9: any miss between 1 token and as many as a hit gives.
    e_miss = 1.0 + q * (tokens - 1.0)
    ratio = float(saguaro.speedup(p, tokens, e_miss, draft, 0.0)) / (tokens / (1 + sd_draft))
    low, high = (
        float(saguaro.ratio_to_sd_bound(p, tokens, tokens, sd_draft, draft, 0.0, side).value)
        for side in ("lower", "upper")
    )
    assert low * (1 - 1e-12) <= ratio <= high * (1 + 1e-12)


def test_stationary_hit_rate_solves_its_balance() -> None:
    p = float(saguaro.stationary_hit_rate(0.7, 0.2))
    assert p == pytest.approx(p * 0.7 + (1 - p) * 0.2)
    with pytest.raises(AssumptionError):
        saguaro.stationary_hit_rate(1.0, 0.0)


@pytest.mark.parametrize("alpha, k, budget, r", [(0.8, 3, 40.0, 0.7), (0.5, 2, 25.0, 1.5)])
def test_fan_outs_are_the_best_real_split(alpha: float, k: int, budget: float, r: float) -> None:
    found = saguaro.fan_outs(alpha, k, budget, r)
    assert found.sum() == pytest.approx(budget)
    rest = found[:-1] / found[0]
    np.testing.assert_allclose(rest, alpha ** (np.arange(k) / (1 + r)), rtol=1e-12)
    # The printed F_0 and a constrained numerical optimum.
    e = 1 / (1 + r)
    first = budget / (
        alpha ** (k * e) * (1 - alpha) ** -e + (1 - alpha ** (k * e)) / (1 - alpha**e)
    )
    assert found[0] == pytest.approx(first)
    best = minimize(
        lambda f: -saguaro.hit_rate(alpha, f, r),
        np.full(k + 1, budget / (k + 1)),
        bounds=[(1.0, budget)] * (k + 1),
        constraints={"type": "eq", "fun": lambda f: f.sum() - budget},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(found, best.x, rtol=1e-3)
    assert saguaro.hit_rate(alpha, found, r) >= -best.fun - 1e-9


def test_ssd_bounds_refuse_what_their_corollary_excludes() -> None:
    with pytest.raises(AssumptionError, match="draft_time"):
        saguaro.ratio_to_sd_bound(0.5, 2.0, 2.0, 0.4, 1.0, 0.0, "upper")
    with pytest.raises(AssumptionError, match="backup_time"):
        saguaro.ratio_to_sd_bound(0.5, 2.0, 2.0, 0.4, 0.5, 0.1, "upper")


# ---- Allocation --------------------------------------------------------------------------------


def splits(capacity: int, n: int, cap: int) -> list[tuple[int, ...]]:
    return [s for s in itertools.product(range(cap + 1), repeat=n) if sum(s) <= capacity]


def test_allocation_t31_to_t33() -> None:
    rates = np.repeat([[0.9], [0.5]], 6, axis=1)
    assert allocation.tetris_lengths(rates, 6).tolist() == [6, 0]
    assert allocation.tetris_value(rates, [6, 0]) == pytest.approx(4.217031)
    assert allocation.tetris_value(rates, [3, 3]) == pytest.approx(3.314)
    capped = np.repeat([[0.9], [0.6]], 5, axis=1)
    assert allocation.tetris_lengths(capped, 6).tolist() == [5, 1]
    assert allocation.tetris_value(capped, [5, 1]) == pytest.approx(4.28559)
    assert allocation.tetris_value(capped, [3, 3]) == pytest.approx(3.615)
    assert allocation.goodspeed_lengths([0.9, 0.5], 6).tolist() == [4, 2]
    assert allocation.goodspeed_value([0.9, 0.5], [4, 2]) == pytest.approx(1.96940692, abs=5e-9)


@given(
    st.lists(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3), min_size=3, max_size=3),
    st.integers(0, 10),
)
@settings(max_examples=60, deadline=None)
def test_allocations_are_the_best_of_all_splits(rates: list[list[float]], capacity: int) -> None:
    found = allocation.tetris_lengths(rates, capacity)
    assert found.sum() == min(capacity, 9)
    best = max(allocation.tetris_value(rates, s) for s in splits(capacity, 3, 3))
    assert allocation.tetris_value(rates, found) == pytest.approx(best)
    alpha = [row[0] for row in rates]
    lengths = allocation.goodspeed_lengths(alpha, min(capacity, 6))
    best = max(float(allocation.goodspeed_value(alpha, s)) for s in splits(min(capacity, 6), 3, 6))
    assert allocation.goodspeed_value(alpha, lengths) == pytest.approx(best)


def test_equal_requests_share_equally() -> None:
    assert allocation.tetris_lengths(np.full((4, 5), 0.7), 8).tolist() == [2, 2, 2, 2]
    assert allocation.goodspeed_lengths(np.full(4, 0.7), 8).tolist() == [2, 2, 2, 2]


# ---- DSpark ------------------------------------------------------------------------------------


def test_dspark_counter_example_of_its_appendix() -> None:
    speed, survival = [1.0, 0.5, 0.45], [[0.8, 0.6]]
    assert dspark.theta([0], survival, speed) == 1.0
    assert dspark.theta([1], survival, speed) == pytest.approx(0.9)
    assert dspark.prefix_schedule(survival, speed).tolist() == [0]
    # The law that a scheduler without the early stop would realise, from the appendix: it keeps
    # both drafts only if the first draft was token 1, whose second confidence is above .53.
    q, p = np.array([0.5, 0.5]), np.array([0.7, 0.3])
    accept = np.minimum(1.0, p / q)
    residual = np.maximum(p - q, 0.0) / np.maximum(p - q, 0.0).sum()
    first = q[0] * (accept[0] * np.array([1.0, 0.0]) + (1 - accept[0]) * residual)
    law = first + q[1] * p  # after token 2 nothing is verified: the target samples itself
    np.testing.assert_allclose(law, [0.85, 0.15])
    # Once the second draft's survival exceeds .53, two drafts are the best of all.
    edge = 1.0 / 0.45 - 1.8
    assert edge * 0.8**-1 == pytest.approx(0.53, abs=0.005)
    assert dspark.global_schedule([[0.8, edge + 0.01]], speed).tolist() == [2]
    assert dspark.global_schedule([[0.8, edge - 0.01]], speed).tolist() == [0]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_dspark_schedules_against_all_lengths(seed: int) -> None:
    rng = np.random.default_rng(seed)
    survival = np.cumprod(rng.uniform(0.2, 1.0, (3, 2)), axis=1)
    jagged = rng.uniform(0.2, 1.0, 9)
    every = list(itertools.product(range(3), repeat=3))
    best = max(dspark.theta(s, survival, jagged) for s in every)
    found = dspark.global_schedule(survival, jagged)
    assert dspark.theta(found, survival, jagged) == pytest.approx(best)
    # Step time affine in tokens: theta is concave over affine, one peak, the greedy is optimal.
    smooth = 1.0 / (1.0 + rng.uniform(0.0, 1.0) * np.arange(1, 10))
    best = max(dspark.theta(s, survival, smooth) for s in every)
    greedy = dspark.prefix_schedule(survival, smooth)
    assert dspark.theta(greedy, survival, smooth) == pytest.approx(best)


def test_dspark_refuses_what_is_no_survival() -> None:
    with pytest.raises(InputError, match="increases"):
        dspark.theta([1], [[0.5, 0.6]], [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="entries"):
        dspark.prefix_schedule([[0.5, 0.4]], [1.0, 1.0])


# ---- SmartSpec, relaxed verification, CARD -----------------------------------------------------


def test_goodput_and_its_best_length() -> None:
    times = np.array([1.0, 1.1, 1.2, 1.3, np.inf])
    k = int(goodput.best_k(0.6, times))
    rates = [goodput.goodput(8, 0.6, n, t) for n, t in enumerate(times[:-1])]
    assert k == int(np.argmax(rates))
    assert goodput.best_k(0.05, times) == 0
    # With the affine times of Leviathan it is the same best k.
    for alpha, cost in ((0.8, 0.1), (0.7, 0.2)):
        assert goodput.best_k(alpha, 1.0 + cost * np.arange(30)) == sd.best_k(alpha, cost)
    # No request proposes: plain decoding's tokens, whatever alpha.
    assert goodput.goodput(8, 0.9, 4, 2.0, n_proposing=0) == 4.0
    with pytest.raises(InputError, match="n_proposing"):
        goodput.goodput(2, 0.5, 1, 1.0, n_proposing=3)
    with pytest.raises(InputError, match="every k"):
        goodput.best_k(0.5, [np.inf, np.inf])


@given(
    st.lists(st.floats(0.01, 1.0), min_size=3, max_size=6),
    st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6),
    st.floats(0.0, 1.0),
)
@settings(max_examples=60, deadline=None)
def test_relaxed_law_against_the_distributions(
    target: list[float], draft: list[float], weight: float
) -> None:
    p = np.array(target) / sum(target)
    q = np.array(draft[: p.size]) / sum(draft[: p.size])
    v = weight * p + (1 - weight) * q
    alpha = np.minimum(p, q).sum()
    found = float(relaxed.relaxed_alpha(min(alpha, 1.0), weight))
    assert found == pytest.approx(np.minimum(v, q).sum(), abs=1e-12)
    bias = float(relaxed.output_bias(min(alpha, 1.0), weight))
    assert bias == pytest.approx(0.5 * np.abs(v - p).sum(), abs=1e-12)
    # Yin et al.: rejections and bias add up to TV(p, q).
    assert (1 - found) + bias == pytest.approx(0.5 * np.abs(p - q).sum(), abs=1e-12)


def test_target_weight_inverts_the_linear_law() -> None:
    weight = relaxed.target_weight_for(0.6, 0.9)
    assert relaxed.relaxed_alpha(0.6, weight) == pytest.approx(0.9)
    with pytest.raises(InputError, match="target_weight"):
        relaxed.target_weight_for(0.6, 0.5)
    with pytest.raises(InputError, match="alpha is 1"):
        relaxed.target_weight_for(1.0, 1.0)


def test_card_is_limited_by_its_drafter() -> None:
    assert card.tokens_per_period([1, 5]).value.tolist() == [1.0, 5.0]
    rising = card.speedup(np.arange(1, 30), 0.2).value
    assert np.all(np.diff(rising) >= -1e-12)
    assert rising[-1] == pytest.approx(5.0)  # 1/c
    assert np.all(card.speedup(np.arange(1, 30), 0.2, 0.1).value < rising)
    # No chain of the same period can pass it: k accepted and a bonus need k + 1 levels.
    k = np.arange(1, 8)
    serial = acceptance_length_iid(0.99, k - 1) / np.maximum(k * 0.2, 1.0)
    assert np.all(serial <= card.speedup(k, 0.2).value)
