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
    free = run("minedraft", 3, requests, draft=Timer(0.0625), placement="shared")
    assert free.makespan_s == pytest.approx(apart.makespan_s, rel=1e-12)
    # D = 3/16, V = 1/4, both at half speed while both run: D ends at 3/8, V at 7/16.
    half = run(
        "minedraft", 3, requests, draft=Timer(0.0625), placement="shared", slow_down=(2.0, 2.0)
    )
    both = (half.steps["draft_group"] >= 0) & (half.steps["verify_group"] >= 0)
    both &= half.steps["draft_group"] != half.steps["verify_group"]
    lengths = (half.steps["end_s"] - half.steps["start_s"])[both]
    np.testing.assert_allclose(lengths, 7 / 16, rtol=1e-12)
    conserved(half)


@pytest.mark.parametrize(
    "draft_s, slow_down, step",
    [
        # D = 3/16 takes 3/8; meanwhile the target, slowed by 1.5, does 1/4: both end together.
        (0.0625, (1.5, 2.0), 3 / 8),
        # D = 3/16 takes 15/64; the target, not slowed, ends at 1/4.
        (0.0625, (1.0, 1.25), 1 / 4),
        # The target takes 5/16; D = 3/8 has 1/16 left, alone.
        (0.125, (1.25, 1.0), 3 / 8),
        # The target takes 3/8 and the draft has done 3/16 of its 3/8.
        (0.125, (1.5, 2.0), 3 / 8 + 3 / 16),
    ],
)
def test_each_model_has_its_own_slow_down(draft_s, slow_down, step):
    raw = run(
        "minedraft", 3, work([40] * 8), draft=Timer(draft_s), placement="shared",
        slow_down=slow_down,
    )  # fmt: skip
    both = (raw.steps["draft_group"] >= 0) & (raw.steps["verify_group"] >= 0)
    both &= raw.steps["draft_group"] != raw.steps["verify_group"]
    lengths = (raw.steps["end_s"] - raw.steps["start_s"])[both]
    assert both.sum() > 5
    np.testing.assert_allclose(lengths, step, rtol=1e-12)
    conserved(raw)


def test_sd_on_a_device_of_its_own_pays_the_handover():
    m, k, n = 4, 3, 33
    raw = run(
        "sd", k, work([n] * m), m=m, acceptance=IidAcceptance(alpha=1.0), placement="separate",
        target=Timer(0.25), draft=Timer(0.03125), overhead=0.0625, sync=0.015625,
        cost={"comm_per_token_s": 0.0009765625},
    )  # fmt: skip
    rounds = (n - 1) // (k + 1)
    handover = 0.015625 + m * k * 0.0009765625
    step = 0.0625 + 3 * 0.03125 + handover + 0.25
    assert raw.makespan_s == 0.0625 + max(0.25, 0.03125) + rounds * step
    assert raw.tally.draft_busy_s == 0.03125 + rounds * 3 * 0.03125
    conserved(raw)


@pytest.mark.parametrize("draft_s", [0.03125, 0.5])
def test_overhead_for_each_request_of_a_step(draft_s):
    """Steps count who is verified; drafting alone, who is drafted for; prefill, who is new."""
    m, k, n = 4, 3, 33
    fixed, each = 0.0625, 0.0078125
    raw = run(
        "minedraft", k, work([n] * (2 * m - 1)), m=m, acceptance=IidAcceptance(alpha=1.0),
        target=Timer(0.25), draft=Timer(draft_s), overhead=fixed,
        cost={"step_overhead_per_seq_s": each},
    )  # fmt: skip
    s = raw.steps
    expected = np.where(s["verify_group"] >= 0, s["n_verify_seqs"], s["n_draft_seqs"])
    expected[s["kind"] == 0] = 2 * m - 1
    # The halves hold 4 and 3 requests, so that who drafts and who verifies differ.
    assert sorted(set(expected.tolist())) == [3, 4, 7]
    np.testing.assert_array_equal(s["overhead_s"], fixed + each * expected)
    np.testing.assert_array_equal(s["end_s"][:-1], s["start_s"][1:])
    busy = np.where(s["kind"] == 0, max(0.25, draft_s), 0.0)
    busy += np.where(s["kind"] > 0, np.maximum(s["draft_time_s"], s["verify_time_s"]), 0.0)
    alone = (s["draft_group"] >= 0) & (s["draft_group"] == s["verify_group"])
    busy[alone] = (s["draft_time_s"] + s["verify_time_s"])[alone]
    np.testing.assert_array_equal(s["end_s"] - s["start_s"], s["overhead_s"] + busy)


@pytest.mark.parametrize("schedule, k", [("ar", 0), ("sd", 3), ("minedraft", 3), ("pearl", 3)])
def test_no_overhead_per_request_changes_nothing(schedule, k):
    requests = work(np.arange(5, 40), prompt=3)
    plain = run(schedule, k, requests, overhead=0.0625)
    # So small that adding it rounds away: held passes begin as others do.
    held = run(schedule, k, requests, overhead=0.0625, cost={"step_overhead_per_seq_s": 1e-30})
    same(plain, held)


@pytest.mark.parametrize("k", [0, 3])
def test_overhead_counts_prompt_pieces_only_where_nobody_decodes(k):
    raw = run(
        "sd", k, work([9, 9], prompt=[6, 40]), chunked=True, max_num_batched_tokens=16,
        overhead=0.0625, cost={"step_overhead_per_seq_s": 0.0078125},
    )  # fmt: skip
    s = raw.steps
    decodes = s["n_verify_seqs"] > 0
    assert (decodes & (s["n_prefill_tokens"] > 0)).any()
    charged = (s["overhead_s"] - 0.0625) / 0.0078125
    np.testing.assert_array_equal(charged[decodes], s["n_verify_seqs"][decodes])
    assert charged[~decodes].tolist() == [2.0]
