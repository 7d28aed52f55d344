"""Calibration gives back what the runs were made with, and its intervals hold it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from measured import measure, profile, scaled, truth

from psdsim import Scenario, simulate
from psdsim.acceptance import (
    BetaAcceptance,
    HistogramAcceptance,
    IidAcceptance,
    MarkovAcceptance,
)
from psdsim.calibrate import Calibration, calibrate, read_profile, read_run
from psdsim.calibrate.acceptance import estimate_alpha, fit_acceptance
from psdsim.calibrate.contention import elapsed
from psdsim.calibrate.figures import spread
from psdsim.calibrate.runs import MeasuredRun
from psdsim.cli.main import main
from psdsim.records import Recording, Rounds
from psdsim.schedules import schedule_class

CASES = (("ar", 0), ("sd", 4), ("sd", 1), ("minedraft", 4), ("pearl", 4))


def fitted(folder: Path, scenario: Scenario, cases=CASES, **profiled) -> Calibration:
    runs = [
        read_run(measure(folder / f"{name}-{k}.jsonl", scenario, name, k, seed=1))
        for name, k in cases
    ]
    return calibrate(runs, read_profile(profile(folder / "p.json", **profiled)), "out.yaml")


@pytest.fixture(scope="module")
def many() -> Scenario:
    work = {"kind": "batch", "n_requests": 160, "prompt_tokens": 8, "output_tokens": 60}
    slow = {"target": 1.1, "draft": 1.4}
    return scaled(truth(workload=work, **{"draft.slow_down": slow}), 1.2, 0.9)


@pytest.fixture(scope="module")
def found(many, tmp_path_factory) -> Calibration:
    return fitted(tmp_path_factory.mktemp("fit"), many)


def test_factors_of_the_passes(found):
    # The median of a lognormal factor of mean 1 lies at 1 / sqrt(1 + cv^2).
    assert found.target.mean == pytest.approx(1.2, rel=0.01)
    assert found.draft.mean == pytest.approx(0.9, rel=0.02)
    for fit, factor, cv in ((found.target, 1.2, 0.1), (found.draft, 0.9, 0.2)):
        assert fit.median.low < factor / np.sqrt(1 + cv**2) < fit.median.high
        assert fit.cv == pytest.approx(cv, rel=0.12)


def test_overheads_are_exact_where_nothing_else_varies(found):
    assert found.overhead.fixed.value == pytest.approx(0.0005, rel=1e-6)
    assert found.overhead.per_seq.value == pytest.approx(0.00002, rel=1e-6)
    assert found.overhead.sync.value == pytest.approx(0.0, abs=1e-9)
    assert found.start.own.low < 0.0003 < found.start.own.high
    assert found.start.pause.low < 1e-9
    assert found.start.own.value == pytest.approx(0.0003, rel=0.25)


RESUMED_S = 0.0012


def test_a_pause_is_told_from_slower_passes(tmp_path):
    paused = truth().set({"step_time.target_resume_s": RESUMED_S})
    start = fitted(tmp_path, paused, CASES[:3])
    assert start.start.pause.low < RESUMED_S < start.start.pause.high
    assert start.start.pause.value == pytest.approx(RESUMED_S, rel=0.05)
    assert start.target.mean == pytest.approx(1.0, rel=0.02)
    assert f"target_resume_s: {start.start.pause.value:.6g}"[:20] in start.files["out.yaml"]


def test_a_drafter_without_a_model_has_no_pause(tmp_path):
    # It has no weights that would take the place of the target's.
    paused = truth().set({"step_time.target_resume_s": RESUMED_S})
    models = json.loads(profile(tmp_path / "x.json").read_text())["models"]
    models["draft"] = {"name": "ngram", "kind": "ngram", "device": "cpu:1"}
    found = fitted(tmp_path, paused, CASES[:3], models=models)
    assert found.start.pause is None
    assert found.target.mean > 1.1
    assert "target_resume_s" not in found.files["out.yaml"]


def test_overheads_under_noise_lie_in_their_intervals(many, tmp_path):
    runs = [read_run(measure(tmp_path / f"{s}.jsonl", many, s, k)) for s, k in CASES[:2]]
    rng = np.random.default_rng(3)
    for run in runs:
        steps = run.recording.steps
        steps["end_s"] += 0.0001 * rng.exponential(size=steps["end_s"].size)
    over = calibrate(runs, read_profile(profile(tmp_path / "p.json")), "o.yaml").overhead
    assert over.sync.low == 0.0
    for figure, value in ((over.fixed, 0.0006), (over.per_seq, 0.00002)):
        assert figure.low < value < figure.high
        assert 0 < figure.high - figure.low < 0.0002


def test_slow_downs_from_overlapped_steps(found):
    assert found.slow_down.target.low < 1.1 < found.slow_down.target.high
    assert found.slow_down.draft.low < 1.4 < found.slow_down.draft.high
    assert found.slow_down.target.high - found.slow_down.target.low < 0.1
    assert "steps of the runs" in found.slow_down.source


def test_slow_downs_from_the_profile_where_no_run_overlaps(many, tmp_path):
    found = fitted(tmp_path, many, CASES[:3], busy=(1.25, 1.5))
    assert found.slow_down.target.value == pytest.approx(1.25)
    assert found.slow_down.draft.value == pytest.approx(1.5)
    none = fitted(tmp_path, many, CASES[:3])
    assert none.slow_down is None
    assert "nothing was measured while both models ran" in none.files["out.yaml"]


def test_elapsed_times_of_passes_that_begin_together():
    both = elapsed(np.array([0.5, 2.0, 1.0]), np.array([1.0, 1.0, 1.0]), 1.25, 1.5)
    # .5 x 1.5 of drafting, in which the target does .6 of its 1; 1 x 1.25 of the target, in
    # which the draft does 5/6 of its 2; 1.25 of the target, the draft does 5/6 of its 1.
    expected = [[0.75, 1.25 + 7 / 6, 1.25 + 1 / 6], [0.75 + 0.4, 1.25, 1.25]]
    np.testing.assert_allclose(both, expected, rtol=1e-12)


def test_the_scenario_predicts_the_runs(many, tmp_path, capsys):
    runs = [measure(tmp_path / f"{s}-{k}.jsonl", many, s, k, seed=1) for s, k in CASES]
    out = tmp_path / "fit" / "out.yaml"
    files = [str(path) for path in (*runs, profile(tmp_path / "p.json"))]
    assert main(["calibrate", *files, "--output", str(out)]) == 0
    assert str(out) in capsys.readouterr().err
    scenario = Scenario.load(out)
    assert scenario.draft.serial_on == "own"
    assert scenario.workload.n_requests == 160
    for schedule, k in CASES:
        rates = [
            [simulate(one, schedule, k, seed=s).metrics["output_throughput"] for s in range(3)]
            for one in (scenario, many)
        ]
        ours, theirs = np.mean(rates, axis=1)
        assert ours == pytest.approx(theirs, rel=0.03), schedule
    assert main(["predict", str(out), "--schedule", "pearl", "--replications", "1"]) == 0


def test_lengths_that_differ_become_a_trace(many, tmp_path):
    lengths = {"kind": "empirical", "values": [20, 60]}
    work = {"kind": "batch", "n_requests": 50, "prompt_tokens": 8, "output_tokens": lengths}
    mixed = many.set({"workload": work})
    run = measure(tmp_path / "sd.jsonl", mixed, "sd", 4)
    files = [str(run), str(profile(tmp_path / "p.json"))]
    assert main(["calibrate", *files, "--output", str(tmp_path / "out.yaml")]) == 0
    again = simulate(Scenario.load(tmp_path / "out.yaml"), "sd", 4).raw.requests
    kept = read_run(run).recording.requests["output_tokens"]
    np.testing.assert_array_equal(again["output_tokens"], kept)
    # Without ar there is nothing to tell the handover from the overhead by.
    assert "no ar run beside the sd runs" in (tmp_path / "out.yaml").read_text()


# --- acceptance ------------------------------------------------------------------------------


def recorded(accepted: np.ndarray, k: int) -> MeasuredRun:
    """Return a run of chain rounds, shape (n_requests, n_rounds)."""
    n = len(accepted)
    requests = {"request_id": np.arange(n)}
    rounds = Rounds(tuple(np.full(len(row), k) for row in accepted), tuple(accepted))
    recording = Recording({"acceptance": "measured"}, {}, requests, rounds, ())
    return MeasuredRun("run.jsonl", schedule_class("sd"), k, recording)


def sums(accepted: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    rejected = (accepted < k).sum(axis=1)
    total = accepted.sum(axis=1)
    return total.astype(float), (total + rejected).astype(float)


@pytest.mark.parametrize(
    "model", [IidAcceptance(alpha=0.75), BetaAcceptance(mean=0.75, concentration=6.0)]
)
def test_the_interval_of_alpha_covers_at_its_level(model):
    k, n_requests, n_rounds = 4, 24, 15
    rng = np.random.default_rng(11)
    a, t = sums(model.sample_requests(k, 200_000, 8, rng), k)
    alpha = a.sum() / t.sum()
    hits, n, naive = 0, 1000, 0
    for _ in range(n):
        a, t = sums(model.sample_requests(k, n_requests, n_rounds, rng), k)
        figure = estimate_alpha(a, t)
        hits += figure.low <= alpha <= figure.high
        reach = 1.96 * np.sqrt(figure.value * (1 - figure.value) / t.sum())
        naive += abs(figure.value - alpha) <= reach
    # Standard error of the coverage: 0.7 %.
    assert 0.92 < hits / n < 0.975
    if isinstance(model, BetaAcceptance):
        assert naive / n < 0.85  # an interval that takes positions for independent does not


def test_intervals_at_the_edges():
    full = estimate_alpha(np.full(10, 4.0), np.full(10, 4.0))
    assert (full.value, full.high) == (1.0, 1.0)
    assert full.low == pytest.approx(0.025 ** (1 / 10))
    none = estimate_alpha(np.zeros(10), np.full(10, 4.0))
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 10))


RATES = [800, 50, 50, 20, 400]


@pytest.mark.parametrize(
    "model, kind",
    [
        (IidAcceptance(alpha=0.7), "iid"),
        (HistogramAcceptance(counts=RATES), "position"),
        (BetaAcceptance(mean=0.7, concentration=3.0), "beta"),
        (MarkovAcceptance(after_accept=0.85, after_reject=0.4), "markov"),
    ],
)
def test_the_kind_is_found_and_its_figures(model, kind):
    fit = fit_acceptance([of_length(model, 4, 100, seed=5)])
    assert fit.data["kind"] == kind
    if kind == "position":
        np.testing.assert_allclose(fit.data["rates"], model.conditional_rates(4), atol=0.05)
    elif kind == "markov":
        assert fit.data["after_accept"] == pytest.approx(0.85, abs=0.03)
        assert fit.data["after_reject"] == pytest.approx(0.4, abs=0.06)
    elif kind == "beta":
        assert fit.data["mean"] == pytest.approx(0.7, abs=0.07)
        assert 1.5 < fit.data["concentration"] < 6.0
    else:
        assert fit.alpha.low < 0.7 < fit.alpha.high
        assert any("positions do not differ" in text for text in fit.comments)
        assert any("requests do not differ" in text for text in fit.comments)
        assert any("neighbours do not differ" in text for text in fit.comments)


def of_length(model, k: int, n_tokens: int, seed: int = 0, prompts: str = "") -> MeasuredRun:
    """Return a run whose requests all have so many tokens: hard ones take more rounds."""
    drawn = model.sample_requests(k, 60, n_tokens, np.random.default_rng(seed))
    done = np.cumsum(drawn + 1, axis=1) >= n_tokens
    rows = [row[: int(stop.argmax()) + 1] for row, stop in zip(drawn, done, strict=True)]
    run = recorded(rows, k)
    run.metadata["prompts"] = prompts
    return run


def test_a_model_must_give_the_lengths_at_every_k():
    # A chain at two draft lengths: a Beta law fitted to it is likely, too, and misses the second.
    model = MarkovAcceptance(after_accept=0.9, after_reject=0.6)
    fit = fit_acceptance([of_length(model, k, 200, seed=k, prompts=str(k)) for k in (1, 8)])
    assert fit.data["kind"] == "markov"


def test_other_prompts_are_other_texts():
    model = BetaAcceptance(mean=0.75, concentration=6.0)
    same = [of_length(model, 4, 60, seed=1, prompts="a") for _ in range(4)]
    other = [of_length(model, 4, 60, seed=s, prompts=str(s)) for s in range(4)]
    once, four = fit_acceptance(same), fit_acceptance(other)
    assert once.alpha.high - once.alpha.low > 1.5 * (four.alpha.high - four.alpha.low)
    assert any("of 60 prompts" in text for text in once.comments)
    assert any("of 240 prompts" in text for text in four.comments)


def test_one_rate_is_rarely_taken_for_several():
    rng = np.random.default_rng(2)
    kinds = [
        fit_acceptance([recorded(IidAcceptance(alpha=0.7).sample_requests(4, 20, 20, rng), 4)])
        for _ in range(200)
    ]
    wrong = sum(fit.data["kind"] != "iid" for fit in kinds)
    assert wrong <= 12  # two tests at 1 %


def test_the_same_text_in_two_runs_is_counted_once_for_the_interval():
    accepted = IidAcceptance(alpha=0.7).sample_requests(4, 30, 20, np.random.default_rng(1))
    one = fit_acceptance([recorded(accepted, 4)]).alpha
    two = fit_acceptance([recorded(accepted, 4)] * 2).alpha
    assert (two.value, two.low, two.high) == pytest.approx((one.value, one.low, one.high))
    assert two.n == 2 * one.n


def test_spread_is_robust():
    ratios = np.random.default_rng(0).lognormal(0.0, 0.1, 2000)
    ratios[:100] = 50.0  # a pause of the machine now and then
    fit = spread(ratios)
    assert fit.median.value == pytest.approx(1.0, abs=0.02)
    assert fit.cv == pytest.approx(0.1, rel=0.15)
