"""PEARL without post-verify and without pre-verify: written tapes, couplings, conservation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.pearl import (
    tokens_per_step_no_post_verify,
    tokens_per_step_no_pre_verify,
)
from psdsim.acceptance import IidAcceptance, MarkovAcceptance
from tests.engine.kit import Scripted, Timer, conserved, run, work
from tests.engine.test_engine_hand_traces import DECODE, DRAFT, PREFILL, log

POST, PRE = "pearl-no-post-verify", "pearl-no-pre-verify"
TIMES = {
    "target": Timer(0.25, 0, 0.015625), "draft": Timer(0.0625), "overhead": 0.125, "sync": 0.03125,
}  # fmt: skip


def test_no_post_verify_throws_away_what_is_drafted_beside_a_block():
    # k=2. Pre tests 1: ok -> 2 is tentative. The pass over it tests 2: ok, and its last row gives
    # 3, the same token whether it equals the void block's first draft (here it does) or not.
    # So pre again, though all was accepted: tests 4: no -> corrected. Pre tests 5: ok, the sixth.
    bits = ((1, 1, 1, 1, 0, 1, 1),)
    raw = run(POST, 2, work([6]), m=1, acceptance=Scripted(bits=bits), **TIMES)
    one, two = (0.125 + 0.25 + rows / 64 + 0.03125 for rows in (1, 2))
    t = np.cumsum([0.0, 0.125 + 0.25 + 1 / 64, one, two, one, one])
    assert log(raw) == [
        (PREFILL, t[0], t[1], -1, -1, 0, 0, 0, 0, 0, 1),
        (DECODE, t[1], t[2], 0, 0, 1, 2, 1, 1, 1, 1),
        (DECODE, t[2], t[3], 0, 0, 1, 2, 1, 2, 2, 2),
        (DECODE, t[3], t[4], 0, 0, 1, 2, 1, 1, 0, 1),
        (DECODE, t[4], t[5], 0, 0, 1, 2, 1, 1, 1, 1),
    ]
    # The second token of the blocks drafted in the last three steps.
    assert raw.tally.n_discarded == 3
    conserved(raw)


def test_no_post_verify_gets_the_last_row_also_where_the_draft_is_wrong():
    # As above, but 3 differs from the void draft: the same steps and tokens.
    a, b = (
        run(POST, 2, work([6]), m=1, acceptance=Scripted(bits=((1, 1, 1, third, 0, 1, 1),)))
        for third in (0, 1)
    )
    assert a.steps["n_emitted_tokens"].tolist() == b.steps["n_emitted_tokens"].tolist()
    assert a.steps["end_s"].tolist() == b.steps["end_s"].tolist()


def test_no_pre_verify_drafts_alone_after_a_rejection():
    # k=2. Draft 1,2. Test 1,2 and, of the next block, 3: ok. 4 is tentative: no -> corrected.
    # Draft 5,6. Test 5,6,7: ok, but 5 was the last wanted.
    bits = ((1, 1, 1, 1, 0, 1, 1, 1),)
    raw = run(PRE, 2, work([6]), m=1, acceptance=Scripted(bits=bits), **TIMES)
    alone = 0.125 + 2 * 0.0625 + 0.03125
    two, three = (0.125 + 0.25 + rows / 64 + 0.03125 for rows in (2, 3))
    t = np.cumsum([0.0, 0.125 + 0.25 + 1 / 64, alone, three, two, alone, three])
    assert log(raw) == [
        (PREFILL, t[0], t[1], -1, -1, 0, 0, 0, 0, 0, 1),
        (DRAFT, t[1], t[2], 0, -1, 1, 2, 0, 0, 0, 0),
        (DECODE, t[2], t[3], 0, 0, 1, 2, 1, 3, 3, 3),
        (DECODE, t[3], t[4], 0, 0, 1, 2, 1, 2, 0, 1),
        (DRAFT, t[4], t[5], 0, -1, 1, 2, 0, 0, 0, 0),
        (DECODE, t[5], t[6], 0, 0, 1, 2, 1, 3, 3, 1),
    ]
    assert raw.tally.n_discarded == 2
    conserved(raw)


def test_no_pre_verify_in_a_batch_keeps_a_flag_for_each_request():
    # Request 0 accepts, request 1 rejects its first draft: the step after tests only request 0.
    bits = ((1,) * 12, (1, 0) + (1,) * 10)
    raw = run(PRE, 2, work([8, 5]), m=2, acceptance=Scripted(bits=bits), **TIMES)
    steps = {name: raw.steps[name].tolist() for name in raw.steps}
    assert steps["kind"] == [PREFILL, DRAFT, DECODE, DECODE, DECODE]
    assert steps["n_draft_seqs"] == [0, 2, 2, 2, 2]
    assert steps["n_verify_seqs"] == [0, 0, 2, 1, 2]
    # Both test 3; request 0 goes on with 2 and 2; request 1 starts anew: 3 more, all wanted.
    assert steps["n_verified_tokens"] == [0, 0, 6, 2, 5]
    assert steps["n_emitted_tokens"] == [2, 0, 4, 2, 5]
    conserved(raw)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_extremes(k):
    n = 4 * k + 2  # one token comes from the prefill

    def n_steps(schedule, alpha):
        raw = run(schedule, k, work([n]), acceptance=IidAcceptance(alpha=alpha))
        conserved(raw)
        return raw.tally.n_steps - 1

    assert n_steps(POST, 0.0) == n - 1
    assert n_steps(PRE, 0.0) == 2 * (n - 1)
    # All accepted: 1 and k in turn; a step that drafts, k + 1, then k each.
    assert n_steps(PRE, 1.0) == 1 + 4
    assert n_steps(POST, 1.0) == (n - 1 if k == 1 else 2 * (4 * k + 1) // (k + 1) + (k == 5))


@settings(max_examples=80, deadline=None)
@given(
    schedule=st.sampled_from([POST, PRE]),
    k=st.integers(1, 6),
    m=st.integers(1, 5),
    alpha=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    output=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    gap=st.sampled_from([0.0, 0.1, 1.7]),
    kv_blocks=st.sampled_from([None, 16, 24, 60]),
    seed=st.integers(0, 5),
)
def test_conservation(schedule, k, m, alpha, output, gap, kv_blocks, seed):
    if schedule == PRE:
        kv_blocks = None  # see the note on preemption in the class
    requests = work(output, prompt=4, arrival=gap * np.arange(len(output)))
    conserved(
        run(
            schedule, k, requests, m=m, acceptance=IidAcceptance(alpha=alpha), seed=seed,
            kv_blocks=kv_blocks, block_size=4, overhead=0.01, sync=0.001,
        )
    )  # fmt: skip


@pytest.mark.parametrize("kv_blocks", [16, 24])
def test_preemption_loses_no_token(kv_blocks):
    requests = work([32, 32, 32], prompt=8)
    raw = run(PRE, 3, requests, m=3, kv_blocks=kv_blocks, block_size=4)
    assert raw.requests["n_preemptions"].sum() > 0
    assert raw.tally.n_emitted == 96
    # One discarded draft may be missing for each request preempted after drafting only.
    t = raw.tally
    missing = t.n_drafted - t.n_verified - t.n_dropped - t.n_discarded
    assert 0 <= missing <= raw.requests["n_preemptions"].sum()


@pytest.mark.parametrize("schedule, rate", [(POST, tokens_per_step_no_post_verify),
                                            (PRE, tokens_per_step_no_pre_verify)])  # fmt: skip
def test_long_run_rate_with_memory(schedule, rate):
    a1, a0, k, n = 0.9, 0.4, 4, 20_000
    raw = run(
        schedule, k, work([n] * 8), m=8,
        acceptance=MarkovAcceptance(after_accept=a1, after_reject=a0), seed=5,
    )  # fmt: skip
    # A request is in every step, so tokens per step and request are its tokens over its steps.
    steps = raw.steps["kind"] != PREFILL
    full = steps & (raw.steps["n_draft_seqs"] == 8)
    tokens = raw.steps["n_emitted_tokens"][full].sum() / full.sum() / 8
    assert tokens == pytest.approx(float(rate(a1, k, a0)), rel=0.01)
