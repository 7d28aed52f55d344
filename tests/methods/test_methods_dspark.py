"""DSpark: its scheduler against the theory, traces, conservation, closed forms, load, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.dspark import global_schedule, prefix_schedule, theta
from psdsim import Scenario
from psdsim.acceptance import BetaAcceptance, IidAcceptance
from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.run.basis import n_gpus
from psdsim.run.simulate import simulate
from psdsim.schedules.dspark import DSpark, prefix_budget
from psdsim.verdict import Proposals
from tests.engine.kit import Timer, conserved, run, work
from tests.methods.confidence_kit import (
    DECODE,
    ORACLE,
    PREFILL,
    Doubted,
    agrees,
    deviation,
    fixed,
    log,
)


class Speed:
    """A view that knows seconds of a pass by its tokens."""

    def __init__(self, seconds):
        self._seconds = seconds

    def target_s(self, n_seqs, n_tokens):
        return self._seconds[n_tokens - 1]

    def draft_s(self, n_seqs, n):
        return 0.0


def decide(survival, seconds, **options):
    """Return the lengths of the schedule's own decision function."""
    n, k = survival.shape
    return DSpark(k, n, **options).lengths(np.arange(n), survival, Speed(seconds))


# --- the scheduler ------------------------------------------------------------------------------


@given(st.integers(0, 100_000), st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_the_scheduler_is_the_theorys(seed: int, n: int, k: int, jagged: bool) -> None:
    rng = np.random.default_rng(seed)
    survival = np.cumprod(rng.random((n, k)), axis=1)
    seconds = 1.0 + np.cumsum(rng.random(n * (k + 1)))
    if jagged:
        seconds *= np.exp(rng.normal(0, 0.3, seconds.size))
    assert decide(survival, seconds).tolist() == prefix_schedule(survival, 1 / seconds).tolist()

    def pass_s(n_tokens: int) -> float:
        return float(seconds[n_tokens - 1])

    whole = prefix_budget(survival, pass_s, whole_path=True)
    assert whole == global_schedule(survival, 1 / seconds).sum()
    assert prefix_budget(survival, pass_s) <= survival.size


def test_the_counter_example_of_appendix_a() -> None:
    # Steps/s 1, .5, .45: one draft of .8 lowers 1 to .9, two would raise it to 1.17. Stopping there
    # keeps the choice from depending on the second confidence.
    seconds = 1 / np.array([1.0, 0.5, 0.45])
    survival = np.array([[0.8, 0.8]])
    speed = 1 / seconds
    assert theta([0], survival, speed) == pytest.approx(1.0)
    assert theta([1], survival, speed) == pytest.approx(0.9)
    for second in (0.0, 0.4, 0.54, 0.8):
        assert decide(np.array([[0.8, 0.8 * second]]), seconds).tolist() == [0]
    # Without the early stop it does depend on it: verified after likely seconds only.
    looks = [
        prefix_budget(np.array([[0.8, 0.8 * c]]), lambda n: float(seconds[n - 1]), whole_path=True)
        for c in (0.4, 0.54)
    ]
    assert looks == [0, 2]


def test_what_counts_in_the_engines_speed_matters() -> None:
    survival = np.cumprod(np.full((4, 5), 0.6), axis=1)
    seconds = 0.01 + 0.002 * np.arange(1, 25)
    few = decide(survival, seconds).sum()
    assert decide(survival, seconds, fixed_s=0.02).sum() > few


def test_old_confidences_decide_how_many_and_new_ones_which() -> None:
    schedule = DSpark(2, 4, lag=2)
    steep = Speed([1.0, 1.0, 1.0, 1.0, 9.0, 9.0])  # two requests: two drafts are free, no more
    ids = np.array([3, 5])
    sure, doubtful = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[0.5, 0.1], [0.9, 0.8]])
    assert schedule.lengths(ids, sure, steep).tolist() == [2, 0]
    assert schedule.lengths(ids, doubtful, steep).tolist() == [0, 2]
    # Two steps ago request 3 was sure of 2 and request 5 of none: the budget is 2; 5 gets it.
    assert schedule.lengths(ids, doubtful, steep).tolist() == [0, 2]
    # A request without a past counts as the mean of the others.
    ids = np.array([5, 9])
    found = schedule._lagged(ids, 2)
    assert found.tolist() == [[0.9, 0.8], [0.7, 0.45]]


# --- traces -----------------------------------------------------------------------------------


def test_a_pass_drafts_the_block_and_what_pays_is_verified() -> None:
    # Confidences are the verdicts: request 0 has two good drafts, request 1 none. A row costs
    # 1/64 beside 1/4: a sure token pays, a lost one never does.
    bits = ((1, 1, 1, 0), (1, 0, 1, 1, 1))
    raw = run(
        "sd", 2, work([4, 4]), schedule_class=DSpark, proposals=ORACLE,
        acceptance=Doubted(bits=bits), target=Timer(0.25, 0, 0.015625),
        draft=Timer(0.0625, 0, 0.0078125), overhead=0.125, cost={"draft_start_s": 0.03125},
    )  # fmt: skip
    t = np.cumsum([
        0.0,
        0.125 + 0.25 + 2 / 64 + 0.0625 + 2 / 128,
        0.125 + (0.0625 + 4 / 128 + 0.03125) + 0.25 + 4 / 64,
        0.125 + (0.0625 + 2 / 128 + 0.03125) + 0.25 + 3 / 64,
    ])  # fmt: skip
    assert log(raw) == [
        (PREFILL, t[0], t[1], -1, -1, 0, 0, 0, 0, 0, 2),
        (DECODE, t[1], t[2], 0, 0, 2, 4, 2, 2, 2, 4),
        (DECODE, t[2], t[3], 0, 0, 1, 2, 1, 2, 2, 2),
    ]
    assert raw.tally.n_dropped == 2
    conserved(raw)


@settings(max_examples=40)
@given(
    k=st.integers(0, 5),
    m=st.integers(1, 4),
    lag=st.integers(0, 3),
    output=st.lists(st.integers(1, 30), min_size=1, max_size=20),
    gap=st.sampled_from([0.0, 0.1, 0.9]),
    kv_blocks=st.sampled_from([None, 20, 30, 60]),
    slope=st.sampled_from([0.0, 0.02, 0.2]),
    chunked=st.booleans(),
    acceptance=st.sampled_from([IidAcceptance(alpha=0.7), BetaAcceptance(a=3.0, b=1.0)]),
)
def test_conservation(k, m, lag, output, gap, kv_blocks, slope, chunked, acceptance) -> None:
    raw = run(
        "sd", k, work(output, prompt=4, arrival=gap * np.arange(len(output))), m=m,
        schedule_class=fixed(DSpark, lag=lag), acceptance=acceptance, chunked=chunked,
        proposals=Proposals(concentration=2.0), kv_blocks=kv_blocks, block_size=4, overhead=0.01,
        target=Timer(0.25, 0, slope),
    )  # fmt: skip
    conserved(raw)


# --- closed forms -----------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [0.0, 1e-3, 3e-3, 2e-2])
@pytest.mark.parametrize("lag", [0, 2])
def test_alike_drafts_are_cut_at_one_length_and_throughput_follows(slope, lag) -> None:
    # Without information every step's lengths are those of alpha, alpha^2, ...; the step time is
    # constant, so tokens per step decide.
    alpha, k, n = 0.8, 6, 8
    raw = run(
        "sd", k, work([1200] * n), m=n, schedule_class=fixed(DSpark, lag=lag),
        acceptance=IidAcceptance(alpha=alpha), target=Timer(0.02, 0, slope), draft=Timer(0.004),
    )  # fmt: skip
    # Two steps of a lagged scheduler have no past; the last ones lack requests that are done.
    full = np.flatnonzero(raw.steps["n_verify_seqs"] == n)[2:-1]
    survival = np.tile(np.cumprod(np.full(k, alpha)), (n, 1))
    seconds = 0.02 + slope * np.arange(1, n * (k + 1) + 1)
    lengths = prefix_schedule(survival, 1 / seconds)
    assert (raw.steps["n_verified_tokens"][full] == lengths.sum()).all()
    span = (raw.steps["end_s"] - raw.steps["start_s"])[full]
    step_s = 0.004 + seconds[n + lengths.sum() - 1]
    assert np.allclose(span, step_s)
    rate = raw.steps["n_emitted_tokens"][full] / step_s
    tokens = n + sum(survival[0, :length].sum() for length in lengths)
    if not lengths.any():
        assert (rate == n / step_s).all()
        return
    assert agrees(rate, tokens / step_s)
    other = n + sum(np.cumprod(np.full(k, alpha + 0.05))[:length].sum() for length in lengths)
    assert deviation(rate, other / step_s) > 9


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_what_it_verifies_is_accepted_as_often_as_it_believed(temperature) -> None:
    believed: list[float] = []
    got: list[int] = []

    class Heard(DSpark):
        def lengths(self, ids, survival, view):
            n = super().lengths(ids, survival, view)
            believed.append(float(survival[np.arange(survival.shape[1]) < n[:, None]].sum()))
            return n

        def _learn(self, ids, draft, verdict):
            got.append(int(verdict.n_accepted.sum()))

    run(
        "sd", 5, work([1500] * 8), m=8, schedule_class=Heard, acceptance=IidAcceptance(alpha=0.75),
        proposals=Proposals(concentration=3.0, temperature=temperature),
        target=Timer(0.02, 0, 2e-3), draft=Timer(0.004),
    )  # fmt: skip
    gap = np.array(got) - np.array(believed)
    assert agrees(gap, 0.0) == (temperature == 1.0)


def test_without_a_price_on_rows_it_is_a_block_drafter_that_verifies_all() -> None:
    raw = run(
        "sd", 4, work([40] * 3), schedule_class=DSpark, proposals=Proposals(concentration=2.0)
    )
    plain = run("sd", 4, work([40] * 3))
    assert raw.tally.n_dropped == 0
    for column in ("n_verified_tokens", "n_accepted_tokens", "n_emitted_tokens"):
        assert raw.steps[column].tolist() == plain.steps[column].tolist()


def loaded(m: int, spec: str = "dspark", k: int = 7):
    return simulate(
        Scenario.builtin({
            "engine.max_num_seqs": m, "workload.n_requests": 2 * m,
            "step_time.target.per_token_s": 1e-4, "workload.output_tokens": 64,
            "workload.prompt_tokens": 1,
        }), spec, k,
    )  # fmt: skip


def test_the_budget_falls_with_the_load() -> None:
    found = []
    for m in (4, 32, 128):
        steps = loaded(m).raw.steps
        full = steps["n_verify_seqs"] == m
        found.append(float(1 + steps["n_verified_tokens"][full].mean() / m))
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] + 1


def test_better_confidences_give_more_at_load() -> None:
    def throughput(spec: str) -> float:
        return loaded(64, spec).metrics["output_throughput"]

    blind, published = throughput("dspark:auc=0.5"), throughput("dspark")
    assert published > 1.01 * blind
    assert throughput("dspark:auc=0.97") > 1.03 * published


# --- the method -------------------------------------------------------------------------------


@pytest.mark.parametrize("place, length", [(1, 5.58), (2, 5.18), (3, 3.52)])
def test_its_profiles_have_the_published_acceptance_length(place: int, length: float) -> None:
    adapted = method(f"dspark:profile={place}").adapt(Scenario.builtin(), 7)
    assert adapted.acceptance.acceptance_length(7) == pytest.approx(length, abs=0.01)


def test_it_brings_its_own_drafter() -> None:
    scenario = Scenario.builtin()
    chosen = method("dspark:drafter=0.25:head=0.01")
    adapted = chosen.adapt(scenario, 5)
    assert adapted.draft.shared
    assert adapted.draft.config == scenario.target.config
    assert n_gpus("dspark", scenario, 5) == scenario.target.n_gpus
    target, draft = adapted.timers()["target"], adapted.timers()["draft"]
    assert draft(16, 80, 100) == pytest.approx(0.25 * target(16, 80, 100))
    head_s = 5 * 0.01 * target(16, 16 * 6, 0)
    assert adapted.step_time.draft_start_s == pytest.approx(head_s)
    assert method("dspark:profile=0").adapt(scenario, 5).acceptance == scenario.acceptance
    # No draft model is needed.
    bare = Scenario.builtin({"draft": None, "acceptance": None, "step_time.draft": None})
    assert simulate(bare.set({"workload.n_requests": 4}), "dspark", 3).metrics["n_requests"] == 4


def test_notes_say_what_is_assumed() -> None:
    lines = loaded(2).notes
    for knob in ("profile 2", "drafter 0.14", "head 0.001", "auc 0.85"):
        assert any(line.startswith(f"ASSUMED dspark: {knob}") for line in lines), knob
    assert any("expected calibration error of 0 %" in line for line in lines)
    blind = loaded(2, "dspark:auc=0.5").notes
    assert any("drafts differ by their place only" in line for line in blind)


@pytest.mark.parametrize(
    "spec", ["dspark:profile=4", "dspark:drafter=-1", "dspark:lag=0.5", "dspark:auc=0.3"]
)
def test_bad_knobs_are_refused(spec: str) -> None:
    with pytest.raises(InputError):
        method(spec)


@pytest.mark.parametrize("options", [{"lag": -1}, {"fixed_s": math.nan}])
def test_bad_arguments_are_refused(options) -> None:
    with pytest.raises(InputError):
        DSpark(4, 4, **options)
