"""Our own results: proofs turned into checks, and small simulations that use no formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import clustering, new_results, pearl, psd, psd_groups
from analysis._kinds import AssumptionError
from analysis.queues import UnstableError
from analysis.rounds_correlated import acceptance_length_markov

AFFINE = st.builds(
    psd_groups.AffineTimes,
    st.floats(0.0, 9.0), st.floats(0.0, 1.0), st.floats(0.0, 50.0), st.floats(0.001, 1.0),
)  # fmt: skip
TIMES = psd_groups.AffineTimes(2.0, 0.25, 20.0, 0.125)


# ---- Equal GPUs --------------------------------------------------------------------------------


@given(AFFINE, st.integers(1, 500), st.integers(1, 12), st.integers(1, 8), st.integers(0, 3))
@settings(max_examples=300, deadline=None)
def test_equal_gpu_condition_is_the_ratio_above_one(
    times: psd_groups.AffineTimes, m: int, k: int, g_target: int, g_draft: int
) -> None:
    ratio = float(new_results.equal_gpu_ratio(times, m, k, g_target, g_draft))
    if abs(ratio - 1.0) > 1e-9:
        assert bool(new_results.equal_gpu_wins(times, m, k, g_target, g_draft)) == (ratio > 1)


@given(AFFINE, st.integers(1, 200), st.integers(1, 12), st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_equal_gpu_ratio_has_the_two_known_comparisons_as_ends(
    times: psd_groups.AffineTimes, m: int, k: int, g: int
) -> None:
    fair = psd_groups.fair_split_ratio(times, m, k)
    assert new_results.equal_gpu_ratio(times, 2 * m, k, g, 0) == pytest.approx(float(fair))
    no_base = psd_groups.AffineTimes(0.0, times.draft_per_seq_s, 0.0, times.verify_per_token_s)
    per_gpu = psd.speedup_per_gpu(no_base.draft_s(m, k), no_base.verify_s(m, k), g)
    assert new_results.equal_gpu_ratio(no_base, m, k, g) == pytest.approx(float(per_gpu))


# ---- Open arrivals -----------------------------------------------------------------------------


def simulate(rate: float, rounds: float, k: int, *, parallel: bool, steps: int = 60_000) -> float:
    """Return the mean number in flight; a verified request ends with chance 1/rounds."""
    rng = np.random.default_rng(7)
    groups = [0, 0] if parallel else [0]
    turn, busy, area = 0, 0.0, 0.0
    for step in range(steps):
        size = groups[turn]
        if parallel:
            other = groups[1 - turn]
            time = max(float(TIMES.draft_s(other, k)), float(TIMES.verify_s(size, k)))
        else:
            time = float(TIMES.draft_s(size, k) + TIMES.verify_s(size, k))
        if step > steps // 10:
            busy += time
            area += time * sum(groups)
        groups[turn] -= rng.binomial(size, 1.0 / rounds) if size else 0
        # New requests join the half that is drafted next: the one just verified.
        groups[turn] += rng.poisson(rate * time)
        turn = 1 - turn if parallel else 0
    return area / busy


@pytest.mark.parametrize("load", [0.35, 0.62, 0.85])
def test_requests_in_flight_against_a_small_simulation(
    load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Plain arithmetic in place of the checked methods, for speed only.
    monkeypatch.setattr(psd_groups.AffineTimes, "draft_s", lambda s, n, k: k * (2.0 + 0.25 * n))
    monkeypatch.setattr(
        psd_groups.AffineTimes, "verify_s", lambda s, n, k: 20.0 + 0.125 * n * (k + 1)
    )
    k, rounds = 1, 10.0
    limit, _ = new_results.stability_limits(TIMES, k, rounds)
    rate = load * float(limit)
    serial, parallel = new_results.in_flight(TIMES, k, rounds, rate)
    found_sd = simulate(rate, rounds, k, parallel=False)
    found_psd = simulate(rate, rounds, k, parallel=True)
    assert found_sd == pytest.approx(float(serial.value), rel=0.03)
    assert found_psd == pytest.approx(float(parallel.value), rel=0.03)
    cross = float(new_results.crossover_rate(TIMES, k, rounds).value)
    assert cross / float(limit) == pytest.approx(0.62, abs=0.01)
    if load != 0.62:
        assert (found_psd < found_sd) == (rate > cross)


@given(AFFINE, st.integers(1, 12), st.floats(1.0, 200.0), st.floats(0.01, 0.99))
@settings(max_examples=200, deadline=None)
def test_fixed_points_stability_and_crossing(
    times: psd_groups.AffineTimes, k: int, rounds: float, load: float
) -> None:
    sd_limit, psd_limit = (float(v) for v in new_results.stability_limits(times, k, rounds))
    s_d, s_v = k * times.draft_per_seq_s, times.verify_per_token_s * (k + 1)
    assert psd_limit / sd_limit == pytest.approx(1 + min(s_d, s_v) / max(s_d, s_v))
    rate = load * sd_limit
    serial, parallel = (float(a.value) for a in new_results.in_flight(times, k, rounds, rate))
    # Little's law in each: B = lambda E[R] T(B).
    if serial > 1e-6 and parallel > 1e-6:
        period = times.draft_s(serial, k) + times.verify_s(serial, k)
        assert serial == pytest.approx(rate * rounds * float(period), rel=1e-7)
        period = psd_groups.round_period(times, parallel, 2, k)
        assert parallel == pytest.approx(rate * rounds * float(period), rel=1e-7)
    cross = float(new_results.crossover_rate(times, k, rounds).value)
    if np.isfinite(cross):
        assert cross <= sd_limit * (1 + 1e-12)
    if abs(serial - parallel) > 1e-6 * serial:
        assert (parallel < serial) == (rate > cross)


def test_no_growing_time_has_no_limit_and_overload_is_named() -> None:
    flat = psd_groups.AffineTimes(1.0, 0.0, 2.0, 0.0)
    assert [float(v) for v in new_results.stability_limits(flat, 2, 5.0)] == [np.inf, np.inf]
    with pytest.raises(UnstableError):
        new_results.in_flight(TIMES, 1, 10, 0.3)


# ---- Clustered rejections ----------------------------------------------------------------------


def bits(a1: float, a0: float, n: int) -> list[bool]:
    u = np.random.default_rng(11).random(n).tolist()
    found, last = [], True
    for value in u:
        last = value < (a1 if last else a0)
        found.append(last)
    return found


def play_serial(accepts: list[bool], k: int) -> float:
    at = rounds = 0
    while at + k + 1 < len(accepts):
        run = 0
        while run < k and accepts[at + run]:
            run += 1
        at += run + 1  # the corrected token, or the bonus: a position nobody tests
        rounds += 1
    return at / rounds


def play_pearl(accepts: list[bool], k: int, *, pre_verify: bool = True) -> float:
    at = steps = 0
    post, rows = False, k
    while at + k + 1 < len(accepts):
        steps += 1
        if not post and pre_verify:
            post, rows = accepts[at], k
            at += 1
        elif not post:
            post, rows = True, k + 1
        else:
            run = 0
            while run < rows and accepts[at + run]:
                run += 1
            post = run == rows
            at += run if post else run + 1
            rows = k
    return at / steps


@pytest.mark.parametrize("a1, k", [(0.8, 4), (0.9, 4), (0.95, 3)])
def test_pearl_against_minedraft_on_the_same_bits(a1: float, k: int) -> None:
    length = 2.6
    a0 = float(clustering.after_reject_at(a1, k, length))
    assert acceptance_length_markov(a1, a0, k) == pytest.approx(length)
    tape = bits(a1, a0, 200_000)
    assert play_serial(tape, k) == pytest.approx(length, rel=0.012)
    assert play_pearl(tape, k) == pytest.approx(
        float(clustering.pearl_tokens_at(a1, k, length)), rel=0.012
    )


@pytest.mark.parametrize("a1, a0", [(0.94, 0.94), (0.94, 0.75), (0.8, 0.3)])
def test_pre_verify_saves_a_step_per_clustered_rejection(a1: float, a0: float) -> None:
    tape = bits(a1, a0, 200_000)
    ratio = play_pearl(tape, 5) / play_pearl(tape, 5, pre_verify=False)
    gain = float(clustering.pre_verify_gain(a1, a0, 5))
    assert ratio == pytest.approx(gain, rel=0.004)
    if a0 == a1:
        iid = pearl.tokens_per_step(a1, 5) / pearl.tokens_per_step_no_pre_verify(a1, 5)
        assert gain == pytest.approx(float(iid))


@given(st.floats(0.05, 0.95), st.integers(2, 12), st.floats(0.001, 0.04))
@settings(max_examples=200, deadline=None)
def test_clustering_raises_pearl_at_the_same_length_and_at_the_same_rate(
    alpha: float, k: int, more: float
) -> None:
    length = float(acceptance_length_markov(alpha, alpha, k))
    iid = float(pearl.tokens_per_step(alpha, k))
    assert clustering.pearl_tokens_at(alpha, k, length) == pytest.approx(iid, rel=1e-9)
    a0 = float(clustering.after_reject_at(alpha + more, k, length))
    assert a0 < alpha
    assert float(clustering.pearl_tokens_at(alpha + more, k, length)) > iid
    assert clustering.pearl_tokens_at_rate(alpha, k, alpha) == pytest.approx(iid, rel=1e-9)
    assert float(clustering.pearl_tokens_at_rate(alpha + more, k, alpha)) > iid
    # The printed form of the proof, and the limit of endless runs.
    m, a1 = length - 1.0, alpha + more
    full, last = sum(a1**j for j in range(k)), a1**k
    inverse = (full**2 / m + full + last - full * last) / ((full - 1) * (full + last))
    assert clustering.pearl_tokens_at(a1, k, length) == pytest.approx(1 + 1 / inverse, rel=1e-9)
    limit = 1 + m * (k**2 - 1) / (k**2 + m)
    assert clustering.pearl_tokens_at(1 - 1e-9, k, length) == pytest.approx(limit, rel=1e-6)


def test_out_of_reach_is_named() -> None:
    with pytest.raises(AssumptionError, match="out of reach"):
        clustering.after_reject_at(0.1, 4, 4.5)
    with pytest.raises(AssumptionError, match="out of reach"):
        clustering.pearl_tokens_at_rate(0.1, 4, 0.9)
    with pytest.raises(AssumptionError, match="leaves both states"):
        clustering.pre_verify_gain(1.0, 0.0, 4)
