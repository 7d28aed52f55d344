"""Written tapes, whole event logs: every step of each schedule worked out on paper.

All times are dyadic, so every sum is exact and compared with ==.
"""

from __future__ import annotations

import numpy as np

from tests.engine.kit import Scripted, Timer, conserved, run, work

FIELDS = (
    "kind", "start_s", "end_s", "draft_group", "verify_group", "n_draft_seqs",
    "n_drafted_tokens", "n_verify_seqs", "n_verified_tokens", "n_accepted_tokens",
    "n_emitted_tokens",
)  # fmt: skip
PREFILL, DRAFT, DECODE = 0, 1, 2


def log(raw):
    return [tuple(float(raw.steps[name][i]) for name in FIELDS) for i in range(raw.tally.n_steps)]


def test_ar_two_requests():
    # Target: 1/4 + 1/16 per token. Prefill of two 3-token prompts: 1/4 + 6/16 = 5/8.
    raw = run("ar", 0, work([2, 3], prompt=3), target=Timer(0.25, 0, 0.0625), overhead=0.125)
    assert log(raw) == [
        (PREFILL, 0.0, 0.75, -1, -1, 0, 0, 0, 0, 0, 2),
        # overhead 1/8 + 1/4 + 2 tokens / 16
        (DECODE, 0.75, 1.25, -1, 0, 0, 0, 2, 0, 0, 2),
        (DECODE, 1.25, 1.6875, -1, 0, 0, 0, 1, 0, 0, 1),
    ]
    assert raw.requests["first_token_s"].tolist() == [0.75, 0.75]
    assert raw.requests["finish_s"].tolist() == [1.25, 1.6875]
    conserved(raw)


def test_sd_accepts_rejects_and_clips():
    # Position 0 is the prefill's token. k=2, positions tested: 1,2 | ...
    # Request 0 (6 tokens): 1 ok, 2 ok, bonus 3 | 4 no, corrected 4 | 5 ok, 6 ok, clipped at 6.
    # Request 1 (3 tokens): 1 no, corrected 1 | 2 ok, then beyond the end: clipped.
    bits = ((1, 1, 1, 1, 0, 1, 1), (1, 0, 1, 0))
    raw = run(
        "sd", 2, work([6, 3]), acceptance=Scripted(bits=bits),
        target=Timer(0.25, 0, 0.015625), draft=Timer(0.0625), overhead=0.125, sync=8.0,
    )  # fmt: skip
    # Draft phase 2 x 1/16; pass over 2 requests x 3 rows: 1/4 + 6/64; sync is not paid: one device.
    # Prefill: target 1/4 + 2/64, then draft 1/16.
    step = 0.125 + 0.125 + 0.25 + 6 / 64
    first = 0.125 + 0.25 + 2 / 64 + 0.0625
    assert log(raw) == [
        (PREFILL, 0.0, first, -1, -1, 0, 0, 0, 0, 0, 2),
        (DECODE, first, first + step, 0, 0, 2, 4, 2, 4, 2, 4),
        # request 0 rejects, request 1 accepts both tested? no: 2 ok, 3 no -> 1 accepted + corrected
        (DECODE, first + step, first + 2 * step, 0, 0, 2, 4, 2, 4, 1, 2),
        (DECODE, first + 2 * step, first + 3 * step - 3 / 64, 0, 0, 1, 2, 1, 2, 2, 1),
    ]
    assert raw.requests["n_rounds"].tolist() == [3, 2]
    assert raw.requests["n_accepted_tokens"].tolist() == [4, 1]
    conserved(raw)


def test_minedraft_two_halves_with_tail():
    # m=1: two requests, one in each half; k=1; draft 1/16, verify 1/4, sync 1/32, overhead 1/8.
    # Request 0: 4 tokens, all accepted: 1 | 1,2 -> pos 1 ok, bonus 2 | pos 3 ok -> clipped at 4.
    # Request 1: 4 tokens, nothing accepted: one token a round.
    bits = ((1, 1, 1, 1, 1), (0, 0, 0, 0, 0))
    raw = run(
        "minedraft", 1, work([4, 4]), m=1, acceptance=Scripted(bits=bits),
        target=Timer(0.25), draft=Timer(0.0625), overhead=0.125, sync=0.03125,
    )  # fmt: skip
    p = 0.125 + 0.25  # prefill on both devices at once: the target's is longer
    d = 0.125 + 0.0625 + 0.03125  # draft-only start
    s = 0.125 + 0.25 + 0.03125  # max(1/16, 1/4) + sync
    alone = 0.125 + 0.0625 + 0.03125 + 0.25  # serial SD on two devices
    t = np.cumsum([0.0, p, d, s, s, s, 0.125 + 0.25, alone])
    assert log(raw) == [
        (PREFILL, t[0], t[1], -1, -1, 0, 0, 0, 0, 0, 2),
        (DRAFT, t[1], t[2], 0, -1, 1, 1, 0, 0, 0, 0),
        # verify 0 beside drafting for 1
        (DECODE, t[2], t[3], 1, 0, 1, 1, 1, 1, 1, 2),
        (DECODE, t[3], t[4], 0, 1, 1, 1, 1, 1, 0, 1),
        # request 0 gets its last token; the bonus is clipped
        (DECODE, t[4], t[5], 1, 0, 1, 1, 1, 1, 1, 1),
        # half 0 is empty: its turn to draft is void, half 1 is verified alone, without a barrier
        (DECODE, t[5], t[6], -1, 1, 0, 0, 1, 1, 0, 1),
        # serial steps from now on
        (DECODE, t[6], t[7], 1, 1, 1, 1, 1, 1, 0, 1),
    ]
    assert raw.tally.n_single_group_steps == 2
    conserved(raw)


def test_pearl_pre_verify_post_verify():
    # k=2. Position tested: 1 (pre) ok -> the other drafted token (2) is tentative.
    # Post: tests 2 and, from the next block, 3: ok, ok -> tentative again (4).
    # Post: tests 4: no -> corrected 4; the new block is void.
    # Pre: tests 5: no -> corrected 5 = sixth token, done.
    bits = ((1, 1, 1, 1, 0, 0, 1),)
    raw = run(
        "pearl", 2, work([6]), m=1, acceptance=Scripted(bits=bits),
        target=Timer(0.25, 0, 0.015625), draft=Timer(0.0625), overhead=0.125, sync=0.03125,
    )  # fmt: skip
    p = 0.125 + 0.25 + 1 / 64
    pre = 0.125 + 0.25 + 1 / 64 + 0.03125
    post = 0.125 + 0.25 + 2 / 64 + 0.03125
    t = np.cumsum([0.0, p, pre, post, post, pre])
    assert log(raw) == [
        (PREFILL, t[0], t[1], -1, -1, 0, 0, 0, 0, 0, 1),
        (DECODE, t[1], t[2], 0, 0, 1, 2, 1, 1, 1, 1),
        (DECODE, t[2], t[3], 0, 0, 1, 2, 1, 2, 2, 2),
        (DECODE, t[3], t[4], 0, 0, 1, 2, 1, 2, 0, 1),
        (DECODE, t[4], t[5], 0, 0, 1, 2, 1, 1, 0, 1),
    ]
    # Discarded unseen: the second token of the third block, both but the tested one of the rest.
    assert raw.tally.n_discarded == 2
    conserved(raw)


def test_draft_ahead_is_pearl_step_by_step():
    args = (3, work([40, 30, 20, 10]))
    a, b = run("pearl", *args, seed=3), run("pearl-draft-ahead", *args, seed=3)
    for name in a.steps:
        assert np.array_equal(a.steps[name], b.steps[name])


def test_later_arrival_joins_the_half_about_to_be_drafted():
    # Half 1 is empty from the start; the second request comes while request 0 decodes alone.
    raw = run(
        "minedraft", 1, work([8, 4], arrival=[0.0, 1.0]), m=1,
        acceptance=Scripted(bits=((0,) * 8, (0,) * 8)),
        target=Timer(0.25), draft=Timer(0.0625),
    )  # fmt: skip
    kinds, groups = raw.steps["kind"].tolist(), raw.steps["verify_group"].tolist()
    second_prefill = kinds.index(PREFILL, 1)
    # The roles go on swapping in serial steps, so both halves get work after the arrival.
    assert len(set(groups[second_prefill + 1 :]) - {-1}) == 2
    conserved(raw)


def test_chunked_prefill_rides_along():
    # Budget 4: the 6-token prompt needs two pieces beside request 0's single decode row.
    raw = run(
        "ar", 0, work([6, 2], prompt=[1, 6], arrival=[0.0, 0.5]), m=2, chunked=True,
        target=Timer(0.25, 0, 0.0625), max_num_batched_tokens=4,
    )  # fmt: skip
    steps = raw.steps
    assert steps["n_prefill_tokens"].tolist() == [1, 0, 3, 3, 0, 0]
    # The pass with 1 decode row and a 3-token piece feeds 4 tokens.
    third = steps["end_s"][2] - steps["start_s"][2]
    assert third == 0.25 + 4 * 0.0625
    assert (steps["kind"] == DECODE).all()
    conserved(raw)
