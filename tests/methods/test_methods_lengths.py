"""SpecDec++, SmartSpec, PACER: traces, conservation, closed forms, limits, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.goodput import best_k, goodput
from analysis.pacer import block_round
from analysis.rounds import acceptance_length_iid
from analysis.stopping import power_round
from psdsim import Scenario
from psdsim.acceptance import BetaAcceptance, IidAcceptance
from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.run.simulate import simulate
from psdsim.schedules.smartspec import SmartSpec
from psdsim.schedules.stopping import StopByBlock, StopByThreshold
from psdsim.verdict import Classifier, Proposals
from tests.engine.kit import Scripted, Timer, conserved, run, work
from tests.methods.confidence_kit import (
    DECODE,
    ORACLE,
    PREFILL,
    Doubted,
    agrees,
    deviation,
    fixed,
    fresh_rounds,
    log,
)

# --- traces -----------------------------------------------------------------------------------


def test_a_draft_stops_at_the_first_doubtful_token_and_that_one_is_verified() -> None:
    # Confidences are the verdicts. Request 0: 1 ok, 2 no -> drafts 2, corrected 2: 3 tokens of 4.
    # Request 1: 1 no -> drafts 1. Then 0: 3 no -> 1 draft; 1: 2, 3, 4 ok -> all 3 drafted.
    bits = ((1, 1, 0, 0), (1, 0, 1, 1, 1))
    raw = run(
        "sd", 3, work([4, 5]), schedule_class=StopByThreshold, proposals=ORACLE,
        acceptance=Doubted(bits=bits), target=Timer(0.25, 0, 0.015625),
        draft=Timer(0.0625, 0.0078125), overhead=0.125,
    )  # fmt: skip
    t = np.cumsum([
        0.0,
        0.125 + 0.25 + 2 / 64 + 0.0625 + 2 / 128,
        # Forwards over 2 and then 1 request; 2 + 1 drafts and 2 more rows.
        0.125 + 2 * 0.0625 + 3 / 128 + 0.25 + 5 / 64,
        0.125 + 3 * 0.0625 + 4 / 128 + 0.25 + 6 / 64,
    ])  # fmt: skip
    assert log(raw) == [
        (PREFILL, t[0], t[1], -1, -1, 0, 0, 0, 0, 0, 2),
        (DECODE, t[1], t[2], 0, 0, 2, 3, 2, 3, 1, 3),
        # Request 1's bonus lies behind its end.
        (DECODE, t[2], t[3], 0, 0, 2, 4, 2, 4, 3, 4),
    ]
    conserved(raw)


@pytest.mark.parametrize("send", [True, False])
def test_blocks_are_drafted_until_one_fails(send: bool) -> None:
    # A perfect pre-verifier, blocks of 2: (1 ok, 2 ok) yes, (3 ok, 4 no) no: 4 drafts of 6.
    raw = run(
        "sd", 6, work([5]), schedule_class=fixed(StopByBlock, block=2, send_failed=send),
        proposals=Proposals(classifier=Classifier(2, 1.0, 0.0)),
        acceptance=Scripted(bits=((1, 1, 1, 1, 0, 0, 0, 0, 0),)),
        target=Timer(0.25, 0, 0.015625), draft=Timer(0.0625), overhead=0.125,
    )  # fmt: skip
    p = 0.125 + 0.25 + 1 / 64 + 0.0625
    first = 0.125 + 4 * 0.0625 + 0.25 + (5 if send else 3) / 64
    last = 0.125 + 2 * 0.0625 + 0.25 + (3 if send else 1) / 64
    t = np.cumsum([0.0, p, first, last])
    rows = [
        (PREFILL, t[0], t[1], -1, -1, 0, 0, 0, 0, 0, 1),
        # Sent: 3 accepted, 4 corrected. Not sent: 2 accepted and the bonus 3.
        (DECODE, t[1], t[2], 0, 0, 1, 4, 1, 4 if send else 2, 3 if send else 2, 4 if send else 3),
    ]
    if send:
        assert log(raw) == rows
    else:
        # Then (4 no, 5) fails at once, and the pass only gives the token 4.
        assert log(raw) == [*rows, (DECODE, t[2], t[3], 0, 0, 1, 2, 1, 0, 0, 1)]
    assert raw.tally.n_dropped == (0 if send else 4)
    conserved(raw)


def test_smartspec_gives_up_drafting_when_nothing_is_accepted() -> None:
    # A draft costs half a pass: goodput(1) = (1 + alpha) / 1.5 beats 1 while alpha > 1/2, and
    # goodput(2) is lower still. Prior .74 of ten: 7.4 / (10 + rejections) > 1/2 up to 4.
    raw = run(
        "sd", 2, work([9]), acceptance=Scripted(bits=((0,) * 20,)),
        schedule_class=fixed(SmartSpec, prior=0.74, interval=1, memory=1e9),
        target=Timer(1.0), draft=Timer(0.5),
    )  # fmt: skip
    assert log(raw) == [
        (PREFILL, 0.0, 1.5, -1, -1, 0, 0, 0, 0, 0, 1),
        *[(DECODE, 1.5 * i, 1.5 * i + 1.5, 0, 0, 1, 1, 1, 1, 0, 1) for i in range(1, 6)],
        *[(DECODE, 9.0 + i, 10.0 + i, -1, 0, 0, 0, 1, 0, 0, 1) for i in range(3)],
    ]
    conserved(raw)


def test_smartspec_comes_back_when_its_memory_fades() -> None:
    raw = run(
        "sd", 2, work([60]), acceptance=Scripted(bits=((0,) * 80,)),
        schedule_class=fixed(SmartSpec, prior=0.75, interval=1, memory=8.0),
        target=Timer(1.0), draft=Timer(0.5),
    )  # fmt: skip
    drafted = raw.steps["n_drafted_tokens"][raw.steps["kind"] == DECODE]
    idle = np.flatnonzero(drafted == 0)
    assert idle.size
    assert drafted[idle[0] :].any()


# --- conservation and couplings -----------------------------------------------------------------

SCHEDULES = {
    "threshold": fixed(StopByThreshold, threshold=0.4),
    "block": fixed(StopByBlock, block=2, send_failed=False),
    "smart": fixed(SmartSpec, interval=3, memory=10.0),
}


@settings(max_examples=50)
@given(
    name=st.sampled_from(sorted(SCHEDULES)),
    k=st.integers(0, 5),
    m=st.integers(1, 4),
    output=st.lists(st.integers(1, 30), min_size=1, max_size=20),
    gap=st.sampled_from([0.0, 0.1, 0.9]),
    kv_blocks=st.sampled_from([None, 20, 30, 60]),
    classifier=st.sampled_from([None, Classifier(2, 0.8, 0.3), Classifier(2, 1.0, 0.0)]),
    chunked=st.booleans(),
    acceptance=st.sampled_from([IidAcceptance(alpha=0.7), BetaAcceptance(a=3.0, b=1.0)]),
)
def test_conservation(name, k, m, output, gap, kv_blocks, classifier, chunked, acceptance) -> None:
    raw = run(
        "sd", k, work(output, prompt=4, arrival=gap * np.arange(len(output))), m=m,
        schedule_class=SCHEDULES[name], acceptance=acceptance, chunked=chunked,
        proposals=Proposals(concentration=2.0, classifier=classifier), kv_blocks=kv_blocks,
        block_size=4, overhead=0.01, sync=0.001, target=Timer(0.25, 0, 0.01),
    )  # fmt: skip
    conserved(raw)


@pytest.mark.parametrize(
    "cls, proposals",
    [
        (fixed(StopByThreshold, threshold=1.0), Proposals(concentration=2.0)),
        (fixed(StopByBlock, block=2), Proposals(classifier=Classifier(2, 1.0, 1.0))),
        (fixed(StopByBlock, block=4), Proposals(classifier=Classifier(4, 0.0, 0.0))),
    ],
)
def test_a_draft_that_never_stops_early_is_sds(cls, proposals) -> None:
    requests = work([30, 20, 10, 25])
    same = run("sd", 4, requests, schedule_class=cls, proposals=proposals, seed=4)
    assert log(same) == log(run("sd", 4, requests, seed=4))


def test_any_doubt_stops_a_draft_at_threshold_0() -> None:
    same = run("sd", 4, work([30, 20]), schedule_class=fixed(StopByThreshold, threshold=0.0))
    plain = run("sd", 1, work([30, 20]))
    for column in ("n_drafted_tokens", "n_accepted_tokens", "start_s"):
        assert same.steps[column].tolist() == plain.steps[column].tolist()


# --- closed forms -----------------------------------------------------------------------------


@pytest.mark.parametrize("alpha, threshold", [(0.8, 0.7), (0.5, 0.9), (0.7, 0.4)])
def test_a_threshold_round_follows_its_closed_form(alpha: float, threshold: float) -> None:
    # Confidences Beta(n, 1), n = alpha / (1 - alpha): the concentration is n + 1 = 1 / (1 - alpha).
    steps = fresh_rounds(
        StopByThreshold, 32, alpha, Proposals(concentration=1 / (1 - alpha)), 6000, 500,
        threshold=threshold,
    )  # fmt: skip
    drafted = np.concatenate([d for d, _, _ in steps])
    accepted = np.concatenate([a for _, _, a in steps])
    tokens, drafts = power_round(alpha, 1.0 - threshold)
    assert agrees(accepted, tokens - 1)
    assert agrees(drafted, drafts)
    _, other = power_round(alpha + 0.02, 1.0 - threshold)
    assert deviation(drafted, other) > 9
    assert deviation(drafted, drafts + 0.3) > 9


@pytest.mark.parametrize("send", [True, False])
@pytest.mark.parametrize(
    "alpha, k, block, rates",
    [
        (0.8, 8, 2, (0.9, 0.2)),
        (0.8, 7, 3, (0.8, 0.5)),
        (0.7, 12, 1, (1.0, 0.0)),  # the oracle
        (0.7, 8, 2, (0.6, 0.6)),  # knows nothing: a geometric number of blocks
    ],
)
def test_a_block_round_follows_its_closed_form(alpha, k, block, rates, send) -> None:
    proposals = Proposals(classifier=Classifier(block, *rates))
    steps = fresh_rounds(
        StopByBlock, k, alpha, proposals, 10_000, 500, block=block, send_failed=send
    )
    drafted, tested, accepted = (np.concatenate(part) for part in zip(*steps, strict=True))
    theory = block_round(alpha, k, block, *rates, send_failed=send)
    assert agrees(accepted, theory.tokens - 1)
    assert agrees(drafted, theory.drafted)
    assert agrees(tested, theory.verified)
    other = block_round(alpha + 0.02, k, block, *rates, send_failed=send)
    worse = block_round(alpha, k, block, *np.clip(np.array(rates) - 0.1, 0, 1), send_failed=send)
    assert deviation(drafted, worse.drafted) > 9
    assert deviation(accepted, other.tokens - 1) > 2


def test_the_limits_of_a_pre_verifier() -> None:
    alpha, k = 0.7, 8
    oracle = block_round(alpha, k, 1, 1.0, 0.0)
    assert oracle.tokens == pytest.approx(float(acceptance_length_iid(alpha, k)))
    assert oracle.drafted == pytest.approx((1 - alpha**k) / (1 - alpha))
    blind = block_round(alpha, k, 2, 0.6, 0.6)
    assert blind.drafted == pytest.approx(2 * (1 - 0.6**4) / 0.4)
    # Every answer between the two emits no more tokens than the oracle.
    for true_positive in (0.2, 0.6, 1.0):
        for false_positive in (0.0, 0.2, true_positive):
            some = block_round(alpha, k, 1, true_positive, false_positive)
            assert some.tokens <= oracle.tokens + 1e-12


@pytest.mark.parametrize("alpha, n_seqs", [(0.8, 4), (0.8, 64), (0.5, 64), (0.35, 64)])
def test_smartspec_settles_on_the_k_of_most_goodput(alpha: float, n_seqs: int) -> None:
    # 20 ms + .2 ms a token; a draft forward 2 ms; 1 ms overhead.
    target, draft, overhead, most = Timer(0.02, 0, 2e-4), Timer(0.002), 0.001, 6
    ks = np.arange(most + 1)
    times = 0.02 + 2e-4 * n_seqs * (ks + 1) + 0.002 * ks + overhead
    wanted = int(best_k(alpha, times))
    chosen: list[int] = []

    class Heard(SmartSpec):
        def _learn(self, ids, draft, verdict):
            super()._learn(ids, draft, verdict)
            chosen.append(self.chosen)

    raw = run(
        "sd", most, work([25_600 // n_seqs] * n_seqs), m=n_seqs, target=target, draft=draft,
        overhead=overhead,
        schedule_class=fixed(Heard, overhead_s=overhead, memory=400.0),
        acceptance=IidAcceptance(alpha=alpha),
    )  # fmt: skip
    full = raw.steps["n_verify_seqs"] == n_seqs
    settled = np.array(chosen[: int(full.sum())])[60:]
    assert set(settled.tolist()) == {wanted}
    emitted = raw.steps["n_emitted_tokens"][full][60:-1]
    span = (raw.steps["end_s"] - raw.steps["start_s"])[full][60:-1]
    theory = float(goodput(n_seqs, alpha, wanted, times[wanted]))
    assert np.allclose(span, times[wanted])
    rate = emitted / times[wanted]
    if wanted:
        assert agrees(rate, theory)
        other = goodput(n_seqs, alpha + 0.05, wanted, times[wanted])
        assert deviation(rate, float(other)) > 9
    else:
        assert (emitted == n_seqs).all()


def test_smartspec_drafts_less_at_a_larger_batch() -> None:
    found = []
    for m in (1, 8, 32, 128):
        scenario = Scenario.builtin({"engine.max_num_seqs": m, "workload.n_requests": 2 * m,
                                     "step_time.target.per_token_s": 2e-4})  # fmt: skip
        result = simulate(scenario, "smartspec", 8)
        found.append(result.raw.tally.n_drafted / result.raw.requests["n_rounds"].sum())
    assert found == sorted(found, reverse=True)
    assert found[0] > 4 * max(found[-1], 0.1)


# --- what is said and refused -------------------------------------------------------------------


def test_the_pre_verifiers_pass_is_paid_for() -> None:
    scenario = Scenario.builtin({"workload.n_requests": 20})
    free = simulate(scenario, "pacer:block=2", 4)
    dear = simulate(scenario, "pacer:block=2:check=1", 4)
    prefill = free.raw.steps["kind"] == PREFILL
    a, b = (run.raw.steps["draft_time_s"] for run in (free, dear))
    # One check beside two forwards; prompts are read as before.
    assert b[~prefill] == pytest.approx(1.5 * a[~prefill])
    assert b[prefill].tolist() == a[prefill].tolist()


def test_notes_say_what_is_assumed() -> None:
    scenario = Scenario.builtin({"workload.n_requests": 4})
    lines = simulate(scenario, "pacer:tpr=1", 4).notes
    assert any(line.startswith("ASSUMED pacer: fpr 0.2") for line in lines)
    assert not any(line.startswith("ASSUMED pacer: tpr") for line in lines)
    lines = simulate(scenario, "specdec++", 4).notes
    assert any(line.startswith("ASSUMED specdec++: threshold 0.5") for line in lines)
    assert any(line.startswith("ASSUMED smartspec: memory")
               for line in simulate(scenario, "smartspec", 4).notes)  # fmt: skip


@pytest.mark.parametrize(
    "spec",
    ["specdec++:threshold=1.5", "specdec++:auc=1", "smartspec:interval=0", "smartspec:memory=0.5",
     "pacer:block=0", "pacer:tpr=2", "pacer:send=0.5", "smartspec:auc=0.8"],
)  # fmt: skip
def test_bad_knobs_are_refused(spec: str) -> None:
    with pytest.raises(InputError):
        method(spec)


@pytest.mark.parametrize(
    "cls, options",
    [
        (StopByThreshold, {"threshold": -0.1}),
        (StopByThreshold, {"threshold": math.nan}),
        (StopByBlock, {"block": 0}),
        (SmartSpec, {"prior": 1.1}),
        (SmartSpec, {"interval": 0}),
        (SmartSpec, {"memory": 0.0}),
        (SmartSpec, {"overhead_s": -1.0}),
        (SmartSpec, {"overhead_per_seq_s": math.nan}),
    ],
)
def test_bad_arguments_are_refused(cls, options) -> None:
    with pytest.raises(InputError):
        cls(4, 4, **options)
