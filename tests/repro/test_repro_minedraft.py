"""MineDraft's figures: theorem recomputed apart, gains by hand, both versions of Arena."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from repro import minedraft, minedraft_arena, minedraft_play
from repro.claims import Claim
from repro.minedraft_play import Phases, play_whole, published, roofline_phases


@pytest.fixture(scope="module")
def claims() -> dict[str, Claim]:
    found = minedraft.claims(quick=True)
    assert len({c.id for c in found}) == len(found)
    return {c.id.removeprefix("minedraft-"): c for c in found}


def test_what_is_asked_for_holds(claims: dict[str, Claim]) -> None:
    asked = [c for c in claims.values() if c.asked]
    assert len(asked) == 7
    assert [c.id for c in asked if not c.holds] == []


def slowest_over_fastest(x: float) -> float:
    """T_SD / T_PSD at a = 1, V = x, each minimised over the drafting time numerically."""

    def sd(t: float) -> float:
        return float((t + x) / -np.expm1(-t))

    def psd(t: float) -> float:
        return float(max(t, x) / -np.expm1(-t))

    return float(
        minimize_scalar(sd, bounds=(1e-9, 60.0), method="bounded", options={"xatol": 1e-10}).fun
        / minimize_scalar(psd, bounds=(1e-9, 60.0), method="bounded", options={"xatol": 1e-10}).fun
    )


def test_theorem_against_a_minimisation_of_its_own(claims: dict[str, Claim]) -> None:
    ratios = {x: slowest_over_fastest(x) for x in (1.2564312086, 1.68, 2.23, 5.20, 5.22, 50.0)}
    assert ratios[1.2564312086] == pytest.approx(2.0, abs=1e-6)
    assert ratios[1.68] == pytest.approx(1.979859, abs=1e-5)
    assert ratios[5.20] > 1.59 > ratios[5.22]
    assert f"{ratios[1.68]:.4f}" in claims["theorem-1.68-point"].reason
    assert f"{ratios[2.23]:.4f}" in claims["theorem-2.23-point"].reason
    for version, ratio in (("1.68", 1.59), ("2.23", 1.61)):
        assert claims[f"theorem-{version}-point"].verdict == "reproduced"
        false = claims[f"theorem-{version}-all"]
        assert false.verdict == "not"
        assert (false.ours or 0.0) > ratio - ratios[50.0]


def test_a_bound_that_does_not_hold_at_its_own_point_is_noticed(monkeypatch: Any) -> None:
    data = published()
    wrong = {**data["theorem"], "versions": [{"key": "6", "x": 6.0, "ratio": 1.59}]}
    monkeypatch.setattr(minedraft, "published", lambda: {**data, "theorem": wrong})
    point = next(c for c in minedraft.theorem() if c.id.endswith("point"))
    assert point.verdict == "not"


def test_gain_by_hand() -> None:
    assert Phases(0.25, 0.5).gain(1) == 0.5
    assert Phases(0.25, 0.5).gain(2) == 1.0
    assert Phases(0.25, 0.5).gain(4) == 0.5
    # (1 + 2 + 4) / (1 + 4 + 2)
    assert Phases(1.0, 4.0, overhead_s=1.0, sync_s=2.0).gain(2) == 0.0


def test_simulated_gain_is_that_of_the_phases() -> None:
    # No fixed costs; a prefill step, which nothing overlaps, weighs little in long outputs.
    phases = Phases(0.25, 1.0)
    sd, parallel = (play_whole(s, 2, phases, 16, 160, 0) for s in ("sd", "minedraft"))
    gain = parallel.throughput / sd.throughput - 1.0
    assert 0.8 * phases.gain(2) < gain < phases.gain(2)
    # The drafting doubled, everything else kept: the phases are what moves the gain.
    longer = replace(phases, draft_s=0.5)
    sd, parallel = (play_whole(s, 2, longer, 16, 160, 0) for s in ("sd", "minedraft"))
    assert parallel.throughput / sd.throughput - 1.0 > 1.5 * gain


def test_everything_simulated_says_what_it_assumes(claims: dict[str, Claim]) -> None:
    for name, c in claims.items():
        if name.startswith("gain-"):
            assert "4 H100 + 1" in c.assumed
            assert c.verdict != "reproduced"
            assert c.interval is not None
            assert c.interval[0] < (c.ours or 0.0) < c.interval[1]
    fits = [n for n, c in claims.items() if n.startswith("gain-") and c.holds]
    assert len(fits) == 5
    assert claims["gain-llama-70b-8b"].verdict == "not"
    assert "AWQ" in claims["gain-llama-70b-8b"].reason


def test_another_gpu_count_breaks_the_gain_per_gpu(monkeypatch: Any) -> None:
    data = published()
    setting = {**data["setting"], "n_target_gpus": 3}
    monkeypatch.setattr(minedraft, "published", lambda: {**data, "setting": setting})
    assert not next(c for c in minedraft.limits() if c.id == "minedraft-per-gpu").holds


def test_the_best_k_hides_drafting() -> None:
    phases = roofline_phases("qwen3-1.7b", 3, 16)
    assert minedraft.best_k("qwen3-1.7b", 16) == 3
    assert 3 < phases.target_s / phases.draft_s < 4
    assert minedraft.best_k("vicuna-13b-eagle", 16) == 5


def test_latency_of_a_queue_by_hand() -> None:
    # 4 requests, one a step: SD's finish at 1, 2, 3, 4; with twice the speed in waves of two of
    # one unit each: 1, 1, 2, 2. Mean 2.5 against 1.5.
    assert minedraft_arena.latency_ratio(2.0, 4.0, parallel=True) == pytest.approx(1.5 / 2.5)
    assert minedraft_arena.latency_ratio(2.0, 4.0, parallel=False) == 0.5


def test_latency_of_a_queue_as_simulated() -> None:
    phases = Phases(0.5, 1.0)
    sd, parallel = (play_whole(s, 1, phases, 8, 160, 1) for s in ("sd", "minedraft"))
    ratio = parallel.throughput / sd.throughput
    expected = minedraft_arena.latency_ratio(ratio, 160 / 8, parallel=True)
    assert parallel.e2el_s / sd.e2el_s == pytest.approx(expected, rel=0.04)


def test_draft_ahead_keeps_a_least_share() -> None:
    # k=2: R = (1+a)/(1+a-a^2) and E[N] = 1+a+a^2.
    assert minedraft_arena.share_of_minedraft(0.5, 2) == pytest.approx(1.5 / 1.25 / 1.75)
    at, least = minedraft_arena.least_share(2)
    a = np.linspace(0.0, 1.0, 100_001)
    shares = (1 + a) / ((1 + a - a**2) * (1 + a + a**2))
    assert least == pytest.approx(shares.min(), abs=1e-8)
    assert at == pytest.approx(a[shares.argmin()], abs=1e-3)
    alpha = minedraft_arena.alpha_for_share(0.75, 2)
    assert alpha is not None
    assert minedraft_arena.share_of_minedraft(alpha, 2) == pytest.approx(0.75)
    assert minedraft_arena.alpha_for_share(0.6, 2) is None


def test_which_version_of_arena_some_alpha_gives(claims: dict[str, Claim]) -> None:
    assert claims["arena-table-reachable"].ours == 2
    assert claims["arena-chart-reachable"].ours == 3
    assert claims["arena-table-pearl"].verdict == "not"
    assert "no alpha" in claims["arena-table-pearl"].reason
    assert claims["arena-chart-pearl"].verdict == "consistent"
    # Neither order is presupposed: each version's own phases give its own order.
    assert "SD is ahead, as in this version" in claims["arena-table-order"].reason
    assert "PEARL is ahead, as in this version" in claims["arena-chart-order"].reason
    assert claims["arena-table-little"].ours == pytest.approx(433.18 * 0.76041 / 256)


def test_tetris_is_played_below_its_cap(claims: dict[str, Claim]) -> None:
    _, cap = minedraft_arena.tetris_cap(2, 1)
    assert 0.2 < cap < 0.22
    played = claims["arena-table-tetris-played"]
    assert 0.02 < (played.ours or 0.0) < cap
    assert "AUC .85" in played.assumed


def test_shapes_that_were_not_read_are_close_to_their_names() -> None:
    for name, billions in (("qwen3-4b", 4.0), ("vicuna-33b", 32.5), ("vicuna-13b", 13.0)):
        assert minedraft_play.shape(name).n_params == pytest.approx(billions * 1e9, rel=0.02)
    awq = minedraft_play.shape("llama-3.3-70b-awq")
    assert awq.n_params == pytest.approx(70.6e9, rel=0.01)
    assert awq.weight_bytes == pytest.approx(40e9, rel=0.05)
