"""TETRIS alone and inside MineDraft: traces, conservation, closed forms, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.allocation import tetris_lengths, tetris_value
from analysis.rounds import acceptance_length_iid
from psdsim import Scenario
from psdsim.acceptance import BetaAcceptance, IidAcceptance
from psdsim.commands import Confidence
from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.run.simulate import simulate
from psdsim.schedules.tetris import MineDraftTetris, Tetris, best_drafts
from psdsim.verdict import Proposals
from tests.engine.kit import Timer, conserved, run, work
from tests.methods.confidence_kit import (
    DECODE,
    DRAFT,
    ORACLE,
    PREFILL,
    Doubted,
    agrees,
    deviation,
    fixed,
    fresh_rounds,
    log,
)

# --- the choice -------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5), st.integers(0, 40))
def test_the_choice_is_the_theorys(seed: int, n: int, k: int, capacity: int) -> None:
    rates = np.round(np.random.default_rng(seed).random((n, k)), 1)  # with ties
    taken = best_drafts(np.cumprod(rates, axis=1), capacity)
    assert taken.sum() == min(capacity, n * k)
    theirs = tetris_lengths(rates, capacity)
    assert tetris_value(rates, taken) == pytest.approx(tetris_value(rates, theirs))
    assert taken.tolist() == theirs.tolist()


# --- traces -----------------------------------------------------------------------------------


def test_tetris_spends_the_batchs_budget_where_drafts_survive() -> None:
    # k=1, e=1: two drafts a request, as many verified as requests. Confidences are the verdicts.
    # Request 0: 1 ok, 2 ok -> both verified, bonus 3: done. Request 1: 1 no -> none verified.
    # Then request 1 alone: budget 1: 2 ok, bonus 3: done.
    bits = ((1, 1, 1, 0), (1, 0, 1, 1, 1))
    raw = run(
        "sd", 1, work([4, 4]), schedule_class=Tetris, proposals=ORACLE,
        acceptance=Doubted(bits=bits), target=Timer(0.25, 0, 0.015625), draft=Timer(0.0625),
        overhead=0.125,
    )  # fmt: skip
    t = np.cumsum([
        0.0,
        0.125 + 0.25 + 2 / 64 + 0.0625,
        0.125 + 2 * 0.0625 + 0.25 + 4 / 64,
        0.125 + 2 * 0.0625 + 0.25 + 2 / 64,
    ])  # fmt: skip
    assert log(raw) == [
        (PREFILL, t[0], t[1], -1, -1, 0, 0, 0, 0, 0, 2),
        (DECODE, t[1], t[2], 0, 0, 2, 4, 2, 2, 2, 4),
        (DECODE, t[2], t[3], 0, 0, 1, 2, 1, 1, 1, 2),
    ]
    assert raw.tally.n_dropped == 3
    conserved(raw)


def test_minedraft_tetris_chooses_within_the_half() -> None:
    # Halves {0, 2} and {1}; k=1, e=1. Half 0: request 0 gets both rows of its half's budget.
    bits = ((1, 1, 1), (1, 1, 0), (1, 0, 1))
    raw = run(
        "minedraft", 1, work([4, 3, 2]), m=2, schedule_class=MineDraftTetris, proposals=ORACLE,
        acceptance=Doubted(bits=bits), target=Timer(0.25, 0, 0.015625), draft=Timer(0.0625),
        overhead=0.125, sync=0.03125,
    )  # fmt: skip
    t = np.cumsum([
        0.0,
        0.125 + 0.25 + 3 / 64,
        0.125 + 2 / 16 + 0.03125,
        0.125 + 0.25 + 4 / 64 + 0.03125,
        0.125 + 0.25 + 2 / 64,
    ])  # fmt: skip
    assert log(raw) == [
        (PREFILL, t[0], t[1], -1, -1, 0, 0, 0, 0, 0, 3),
        (DRAFT, t[1], t[2], 0, -1, 2, 4, 0, 0, 0, 0),
        (DECODE, t[2], t[3], 1, 0, 1, 2, 2, 2, 2, 4),
        # Half 0 is done; half 1's second draft is beyond its budget.
        (DECODE, t[3], t[4], -1, 1, 0, 0, 1, 1, 1, 2),
    ]
    assert raw.tally.n_dropped == 3
    conserved(raw)


# --- conservation and couplings -----------------------------------------------------------------


@settings(max_examples=40)
@given(
    cls=st.sampled_from([Tetris, MineDraftTetris]),
    k=st.integers(1, 4),
    extra=st.integers(0, 3),
    m=st.integers(1, 4),
    output=st.lists(st.integers(1, 30), min_size=1, max_size=20),
    gap=st.sampled_from([0.0, 0.1, 0.9]),
    kv_blocks=st.sampled_from([None, 20, 30, 60]),
    concentration=st.sampled_from([0.5, 3.0, math.inf]),
    acceptance=st.sampled_from([IidAcceptance(alpha=0.7), BetaAcceptance(a=3.0, b=1.0)]),
)
def test_conservation(cls, k, extra, m, output, gap, kv_blocks, concentration, acceptance) -> None:
    name = "minedraft" if cls is MineDraftTetris else "sd"
    raw = run(
        name, k, work(output, prompt=4, arrival=gap * np.arange(len(output))), m=m,
        schedule_class=fixed(cls, extra=extra), proposals=Proposals(concentration=concentration),
        acceptance=acceptance, kv_blocks=kv_blocks, block_size=4, overhead=0.01, sync=0.001,
    )  # fmt: skip
    conserved(raw)
    assert extra or not raw.tally.n_dropped


def test_arrivals_before_the_first_decode_never_join_a_drafted_half() -> None:
    # Without that, a pass would verify a request that nobody drafted for.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        arrival = np.cumsum(np.round(rng.random(6) * 0.4, 3)) * (np.arange(6) > 0)
        conserved(run("minedraft", 3, work([8] * 6, arrival=arrival), m=3))
        conserved(
            run("minedraft", 3, work([8] * 6, arrival=arrival), m=3, schedule_class=MineDraftTetris)
        )


@pytest.mark.parametrize(
    "name, base, cls", [("sd", "sd", Tetris), ("minedraft", "minedraft", MineDraftTetris)]
)
def test_without_extra_drafts_it_is_the_schedule_below(name, base, cls) -> None:
    requests = work([30, 20, 10, 25, 17])
    same = run(name, 3, requests, m=2, seed=4, schedule_class=fixed(cls, extra=0))
    plain = run(base, 3, requests, m=2, seed=4)
    assert log(same) == log(plain)


def test_confidences_that_know_nothing_verify_what_sd_verifies() -> None:
    requests = work([40] * 6)
    blind = run("sd", 3, requests, m=6, seed=2, schedule_class=fixed(Tetris, extra=2))
    plain = run("sd", 3, requests, m=6, seed=2)
    for column in ("n_verified_tokens", "n_accepted_tokens", "n_emitted_tokens"):
        assert blind.steps[column].tolist() == plain.steps[column].tolist()
    assert blind.tally.n_dropped == 2 * plain.tally.n_drafted / 3


# --- closed forms -----------------------------------------------------------------------------


def test_two_requests_with_uniform_confidences_accept_ten_ninths() -> None:
    # k=1, e=1, confidences X1, Y1, X2, Y2 uniform: the best two of X1, X1 Y1, X2, X2 Y2 are M, the
    # larger X, and max(m, M Y): E = 2/3 + E[M] E[max(V, Y)] = 2/3 + 4/9 with m = M V.
    uniform = Proposals(concentration=2.0)
    steps = fresh_rounds(Tetris, 1, 0.5, uniform, 12_000, 2, extra=1)
    accepted = [int(a.sum()) for _, _, a in steps]
    assert all(tested.sum() == 2 for _, tested, _ in steps)
    assert agrees(accepted, 10 / 9)
    assert deviation(accepted, 1.0) > 9  # nothing drafted beyond k
    assert deviation(accepted, 10 / 9 + 0.1) > 9


def test_a_half_of_two_requests_accepts_as_much() -> None:
    # Every request has one round; the half that was verified is filled anew before it drafts.
    raw = run(
        "minedraft", 1, work([2] * 8000), m=2, schedule_class=MineDraftTetris,
        acceptance=IidAcceptance(alpha=0.5), proposals=Proposals(concentration=2.0),
    )  # fmt: skip
    full = raw.steps["n_verify_seqs"] == 2
    assert full.sum() > 3900
    accepted = raw.steps["n_accepted_tokens"][full]
    assert (raw.steps["n_verified_tokens"][full] == 2).all()
    assert agrees(accepted, 10 / 9)
    assert deviation(accepted, 1.0) > 7  # nothing drafted beyond k


@pytest.mark.parametrize("cls", [Tetris, MineDraftTetris])
def test_preemption_takes_the_drafts_of_who_goes(cls) -> None:
    name = "minedraft" if cls is MineDraftTetris else "sd"
    raw = run(
        name, 3, work([32] * 6, prompt=8), m=3, kv_blocks=20, block_size=4, schedule_class=cls,
        proposals=Proposals(concentration=2.0),
    )  # fmt: skip
    assert raw.requests["n_preemptions"].sum() > 0
    conserved(raw)


@pytest.mark.parametrize("alpha", [0.5, 0.8])
def test_confidences_that_know_the_verdict_fill_the_budget_with_accepted_drafts(alpha) -> None:
    k, extra, n = 2, 2, 4
    steps = fresh_rounds(Tetris, k, alpha, ORACLE, 8000, n, extra=extra)
    accepted = [int(a.sum()) for _, _, a in steps]
    # E[min(budget, L_1 + ... + L_n)], L a geometric run cut at k + e.
    runs = alpha ** np.arange(k + extra + 1)
    runs[:-1] *= 1 - alpha
    total = np.ones(1)
    for _ in range(n):
        total = np.convolve(total, runs)
    theory = float(np.minimum(np.arange(total.size), k * n) @ total)
    assert agrees(accepted, theory)
    assert deviation(accepted, n * (acceptance_length_iid(alpha, k) - 1)) > 9


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_what_is_accepted_is_what_calibrated_confidences_promise(temperature) -> None:
    promised: list[float] = []
    got: list[int] = []

    class Heard(Tetris):
        def _test(self, ids, draft, chunks):
            chances = yield Confidence(draft)
            score = yield from super()._test(ids, draft, chunks)
            promised.append(tetris_value(chances, np.minimum(score.command.n, chances.shape[1])))
            return score

        def _learn(self, ids, draft, verdict):
            got.append(int(verdict.n_accepted.sum()))

    proposals = Proposals(concentration=3.0, temperature=temperature)
    raw = run(
        "sd", 3, work([1500] * 8), m=8, schedule_class=fixed(Heard, extra=2), proposals=proposals,
        acceptance=IidAcceptance(alpha=0.7),
    )  # fmt: skip
    conserved(raw)
    gap = np.array(got) - np.array(promised)
    # The promise of a temperature below 1 is too bold.
    assert agrees(gap, 0.0) == (temperature == 1.0)
    if temperature != 1.0:
        assert gap.mean() < 0


def test_at_equal_confidence_the_gain_grows_with_the_auc() -> None:
    scenario = Scenario.builtin({"workload.n_requests": 96})
    names = ["sd", "tetris:auc=0.5", "tetris:auc=0.7", "tetris:auc=0.85", "tetris:auc=0.95"]
    found = [simulate(scenario, name, 4).metrics["acceptance_length"] for name in names]
    assert found[0] == found[1]
    assert found[1:] == sorted(found[1:])


# --- what is said and refused -------------------------------------------------------------------


def test_notes_state_how_good_confidences_are() -> None:
    scenario = Scenario.builtin({"workload.n_requests": 4})
    lines = simulate(scenario, "tetris:auc=0.9:temperature=0.5", 4).notes
    assert any("an AUC of 0.9 at acceptance rate 0.77" in line for line in lines)
    assert any(line.startswith("ASSUMED tetris: extra 1") for line in lines)
    assert not any(line.startswith("ASSUMED tetris: auc") for line in lines)
    blind = simulate(scenario, "minedraft+tetris:auc=0.5", 4).notes
    assert any("carry no information: all drafts look alike" in line for line in blind)


@pytest.mark.parametrize(
    "spec",
    ["tetris:extra=-1", "tetris:extra=1.5", "tetris:auc=0.4", "minedraft+tetris:temperature=0"],
)
def test_bad_knobs_are_refused(spec: str) -> None:
    with pytest.raises(InputError):
        method(spec)


@pytest.mark.parametrize("cls", [Tetris, MineDraftTetris])
def test_bad_arguments_are_refused(cls) -> None:
    for k, options in ((0, {}), (4, {"extra": -1}), (60, {"extra": 5})):
        with pytest.raises(InputError):
            cls(k, 4, **options)
