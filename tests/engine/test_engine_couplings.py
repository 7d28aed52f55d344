"""Exact couplings: limits, equal schedules, same text, same bytes."""

from __future__ import annotations

import numpy as np
import pytest

from psdsim.acceptance import IidAcceptance
from tests.engine.kit import Timer, conserved, run, work


def same(a, b, *, but=()):
    for table in ("steps", "requests"):
        one, two = getattr(a, table), getattr(b, table)
        for name in one:
            if name not in but:
                np.testing.assert_array_equal(one[name], two[name], err_msg=name)


def test_sd_with_k_0_is_ar_exactly():
    requests = work(np.arange(1, 40), prompt=5)
    same(run("sd", 0, requests, overhead=0.125), run("ar", 3, requests, overhead=0.125))


@pytest.mark.parametrize("schedule", ["sd", "minedraft"])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_alpha_0_and_1_give_the_extreme_round_counts(schedule, k):
    n = 40
    none = run(schedule, k, work([n] * 6), acceptance=IidAcceptance(alpha=0.0))
    every = run(schedule, k, work([n] * 6), acceptance=IidAcceptance(alpha=1.0))
    assert (none.requests["n_rounds"] == n - 1).all()
    assert (every.requests["n_rounds"] == -(-(n - 1) // (k + 1))).all()
    conserved(none)
    conserved(every)


@pytest.mark.parametrize("k", [2, 5])
def test_pearl_extremes(k):
    n = 61
    none = run("pearl", k, work([n]), acceptance=IidAcceptance(alpha=0.0))
    every = run("pearl", k, work([n]), acceptance=IidAcceptance(alpha=1.0))
    assert none.requests["n_rounds"].tolist() == [n - 1]
    # One pre-verify step gives a token, every post-verify step k.
    assert every.requests["n_rounds"].tolist() == [1 + -(-(n - 2) // k)]


def test_pearl_with_k_1_is_ar_in_steps():
    raw = run("pearl", 1, work([50] * 3), acceptance=IidAcceptance(alpha=0.6))
    assert (raw.requests["n_rounds"] == 49).all()


def test_rounds_do_not_depend_on_the_schedule_or_the_batch():
    requests = work([64] * 24)
    counts = [
        run(schedule, 4, requests, m=m, seed=5).requests["n_rounds"]
        for schedule, m in (("sd", 1), ("sd", 8), ("minedraft", 3), ("minedraft", 12))
    ]
    for other in counts[1:]:
        np.testing.assert_array_equal(counts[0], other)


def test_each_replication_and_seed_draws_another_text():
    requests = work([64] * 24)
    first = run("sd", 4, requests, seed=5).requests["n_rounds"]
    assert (first != run("sd", 4, requests, seed=6).requests["n_rounds"]).any()
    again = run("sd", 4, requests, seed=5, replication=1).requests["n_rounds"]
    assert (first != again).any()


def test_same_seed_same_bytes():
    args = ("minedraft", 3, work(np.arange(2, 60)))
    more = {"cost": {"target_jitter_cv": 0.25, "draft_jitter_cv": 0.5}, "seed": 9}
    same(run(*args, **more), run(*args, **more))


@pytest.mark.parametrize("draft_s", [0.03125, 0.125, 0.5])
def test_deterministic_max_plus_makespan_of_minedraft(draft_s):
    # alpha = 1: rounds are known, so the makespan is a max-plus sum.
    m, k, n = 4, 3, 33
    raw = run(
        "minedraft", k, work([n] * 2 * m), m=m, acceptance=IidAcceptance(alpha=1.0),
        target=Timer(0.25), draft=Timer(draft_s), overhead=0.0625, sync=0.015625,
    )  # fmt: skip
    rounds = (n - 1) // (k + 1)
    draft, verify, o, y = k * draft_s, 0.25, 0.0625, 0.015625
    prefill = o + max(verify, draft_s)
    step = o + max(draft, verify) + y
    # draft-only start; 2 rounds - 1 overlapped steps; the last half is verified alone
    expected = prefill + (o + draft + y) + (2 * rounds - 1) * step + o + verify
    assert raw.makespan_s == expected


def test_deterministic_makespan_of_sd():
    m, k, n = 4, 3, 33
    raw = run(
        "sd", k, work([n] * m), m=m, acceptance=IidAcceptance(alpha=1.0),
        target=Timer(0.25), draft=Timer(0.03125), overhead=0.0625, sync=7.0,
    )  # fmt: skip
    rounds = (n - 1) // (k + 1)
    assert raw.makespan_s == (0.0625 + 0.25 + 0.03125) + rounds * (0.0625 + 3 * 0.03125 + 0.25)


def test_closed_form_draft_phase_equals_forward_by_forward():
    coefficients = (0.0625, 0.0078125, 0.00390625, 0.0009765625)
    requests = work(np.arange(3, 30), prompt=7)
    quick = run("sd", 5, requests, draft=Timer(*coefficients))
    slow = run("sd", 5, requests, draft=Timer(*coefficients, loop=True))
    same(quick, slow)


def test_placement_on_shared_gpus():
    requests = work([40] * 8)
    apart = run("minedraft", 3, requests, draft=Timer(0.0625))
    free = run("minedraft", 3, requests, draft=Timer(0.0625), placement="shared", slow_down=1.0)
    assert free.makespan_s == pytest.approx(apart.makespan_s, rel=1e-12)
    # D = 3/16, V = 1/4, both at half speed while both run: D ends at 3/8, V at 7/16.
    half = run("minedraft", 3, requests, draft=Timer(0.0625), placement="shared", slow_down=2.0)
    both = (half.steps["draft_group"] >= 0) & (half.steps["verify_group"] >= 0)
    both &= half.steps["draft_group"] != half.steps["verify_group"]
    lengths = (half.steps["end_s"] - half.steps["start_s"])[both]
    np.testing.assert_allclose(lengths, 7 / 16, rtol=1e-12)
    conserved(half)
