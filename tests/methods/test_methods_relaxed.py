"""DistillSpec, DIVERSED and reflective verification: what-ifs on acceptance, on top of anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import relaxed as theory
from analysis.rounds import acceptance_length_iid as length_of
from analysis.schedule_forms import NoClosedForm
from analysis.schedules import steady_state
from psdsim import simulate
from psdsim.acceptance import (
    BetaAcceptance,
    EnsembleAcceptance,
    IidAcceptance,
    MarkovAcceptance,
    relax,
)
from psdsim.errors import InputError
from psdsim.methods import METHODS, method
from psdsim.methods.relaxed import equivalent_alpha, gained
from psdsim.schedules.reflective import ReflectiveDecoding
from psdsim.schedules.serial import SpeculativeDecoding
from tests.engine.kit import Scripted, Timer, conserved
from tests.methods.method_kit import bound, close, log, rounds_of, run, scenario, work

MARKOV = {"kind": "markov", "after_accept": 0.8, "after_reject": 0.5}
BETA = {"kind": "beta", "a": 3.0, "b": 1.0}
POSITION = {"kind": "position", "rates": [0.8, 0.6, 0.5], "convention": "conditional"}


def acceptance_of(spec: str, k: int = 3, **more: Any) -> Any:
    return method(spec).adapt(scenario(**more), k).acceptance


# --- DistillSpec --------------------------------------------------------------------------------


def test_a_gain_is_added_to_alpha() -> None:
    assert acceptance_of("distillspec:gain=0.125") == IidAcceptance(alpha=0.875)
    assert acceptance_of("distillspec:gain=0.5") == IidAcceptance(alpha=1.0)
    # The student project's 49.52 % to 53.93 %.
    student = acceptance_of("distillspec", acceptance={"kind": "iid", "alpha": 0.4952})
    assert student.alpha == pytest.approx(0.5393, abs=1e-12)


@pytest.mark.parametrize("model", [MARKOV, BETA, POSITION], ids=lambda m: m["kind"])
def test_other_models_lose_the_same_share_of_rejections(model: dict[str, Any]) -> None:
    base = scenario(acceptance=model).acceptance
    assert base is not None
    after = acceptance_of("distillspec:gain=0.1", acceptance=model)
    # Every rate loses one share of its rejections.
    if model is MARKOV:  # the rate of a round's start hangs on both, so each is looked at
        left = [(1 - after.after_accept) / 0.2, (1 - after.after_reject) / 0.5]
    else:
        before = 1 - base.conditional_rates(3)
        left = ((1 - after.conditional_rates(3)) / before).tolist()
    if model is not BETA:  # requests that differ: later places are reached by the better ones
        assert left == pytest.approx([left[0]] * len(left), rel=1e-9)
    assert equivalent_alpha(after, 3) == pytest.approx(equivalent_alpha(base, 3) + 0.1, abs=1e-9)


def test_nothing_is_left_to_gain_at_one() -> None:
    one = IidAcceptance(alpha=1.0)
    assert gained(one, 0.1, 4) == one
    chain = MarkovAcceptance(after_accept=0.8, after_reject=0.5)
    assert gained(chain, 0.0, 4) is chain
    assert gained(chain, 0.9, 4).conditional_rates(4).tolist() == [1.0] * 4


def test_distillspec_is_sd_at_the_better_alpha() -> None:
    better = scenario(acceptance={"kind": "iid", "alpha": 0.875})
    one = simulate(scenario(), "distillspec:gain=0.125", 3)
    other = simulate(better, "sd", 3)
    for name, column in other.raw.steps.items():
        assert np.array_equal(one.raw.steps[name], column), name


@pytest.mark.parametrize("schedule", ["sd", "pearl", "minedraft"])
@pytest.mark.parametrize("top", ["distillspec:gain=0.125", "diversed:weight=0.5"])
def test_they_go_on_top_of_any_schedule(schedule: str, top: str) -> None:
    better = scenario(acceptance={"kind": "iid", "alpha": 0.875})
    stacked = method(f"{schedule}+{top}")
    assert stacked.closed_form == schedule
    assert stacked.lossless == (not top.startswith("diversed"))
    one, other = simulate(scenario(), f"{schedule}+{top}", 3), simulate(better, schedule, 3)
    assert one.raw.makespan_s == other.raw.makespan_s
    assert one.raw.tally.n_accepted == other.raw.tally.n_accepted


def test_reflective_is_a_schedule_and_goes_on_top_of_nothing() -> None:
    with pytest.raises(InputError, match="can't be put on top"):
        method("pearl+reflective")
    assert simulate(scenario(acceptance={"kind": "iid", "alpha": 0.5}), "ar+distillspec", 0)
    assert "distillspec" in METHODS


# --- DIVERSED -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 0.7, 0.25, 0.0])
def test_alpha_is_linear_in_the_weight(weight: float) -> None:
    alpha = acceptance_of(f"diversed:weight={weight}").alpha
    assert alpha == pytest.approx(float(theory.relaxed_alpha(0.75, weight)), rel=1e-15)
    told = [line for line in method(f"diversed:weight={weight}").notes(scenario(), 3)
            if "lossy" in line]  # fmt: skip
    bias = float(theory.output_bias(0.75, weight))
    assert f"= {bias:.3g} away" in told[0]


def test_the_linear_law_holds_on_the_published_plot() -> None:
    # Project page at N = 3, read with an error of a point: 75.6 % at w = 1, 88 % at w = 0.5.
    assert relax(IidAcceptance(alpha=0.756), 0.5).conditional_rates(1) == pytest.approx(
        0.88, abs=0.01
    )


@pytest.mark.parametrize("base", [0.6, 0.8])
def test_a_relaxed_round_is_as_long_as_theory_says(base: float) -> None:
    k, weight = 4, 0.6
    model = relax(IidAcceptance(alpha=base), weight)
    accepted = rounds_of(SpeculativeDecoding, k, model, n=128, n_rounds=500)
    alpha = float(theory.relaxed_alpha(base, weight))
    close(accepted, float(length_of(alpha, k)) - 1, float(length_of(alpha + 0.02, k)) - 1)
    wrong = float(theory.relaxed_alpha(base, weight + 0.05))
    close(accepted, float(length_of(alpha, k)) - 1, float(length_of(wrong, k)) - 1)


@pytest.mark.parametrize(
    "spec, base",
    [
        ("diversed:weight=0.6:concentration=2", {"kind": "iid", "alpha": 0.7}),
        ("diversed:weight=0.6:concentration=2:per_position=1", BETA),
        ("diversed:weight=0.6", BETA),
        ("diversed:weight=0.6", MARKOV),
        ("diversed:weight=0.6", POSITION),
    ],
)
def test_whole_runs_agree_with_the_closed_form_for_their_length(spec: str, base: Any) -> None:
    k, n_tokens, n = 3, 24, 2500
    work_ = {"kind": "batch", "n_requests": n, "prompt_tokens": 1, "output_tokens": n_tokens + 1}
    one = scenario(
        acceptance=base, workload=work_, engine={"max_num_seqs": 64, "kv_blocks": "unlimited"}
    )
    adapted = method(spec).adapt(one, k)
    assert method(spec).closed_form == "sd"
    assert adapted.acceptance is not None

    def rounds(acceptance: Any) -> float:
        form = steady_state(
            "sd", acceptance=acceptance, k=k, n_tokens=n_tokens, n_seqs_per_step=1,
            draft_time_s=0.1, verify_time_s=0.1,
        )  # fmt: skip
        return n_tokens / form.tokens_per_step_per_request

    found = simulate(one, spec, k, seed=7).raw.requests["n_rounds"]
    error = found.std(ddof=1) / np.sqrt(n)
    theory_rounds = rounds(adapted.acceptance)
    assert abs(found.mean() - theory_rounds) < 4.5 * error
    assert one.acceptance is not None
    assert abs(rounds(one.acceptance) - theory_rounds) > 9 * error


def test_where_no_form_is_known_none_is_given() -> None:
    both = relax(BetaAcceptance(a=3.0, b=1.0), 0.6, concentration=2.0)
    states = EnsembleAcceptance(rates=((0.8, 0.2), (0.5, 0.5)), second_share=0.3, mean_run=5.0)
    times = {"k": 3, "n_seqs_per_step": 1, "draft_time_s": 0.1, "verify_time_s": 0.1}
    for schedule, model, n_tokens in (
        ("pearl", both, None), ("sd", both, 24), ("sd", states, 24), ("pearl", states, None),
    ):  # fmt: skip
        with pytest.raises(NoClosedForm):
            steady_state(schedule, acceptance=model, n_tokens=n_tokens, **times)
    endless = steady_state("sd", acceptance=both, **times)
    assert endless.tokens_per_step_per_request == pytest.approx(both.pooled_acceptance_length(3))


# --- reflective ---------------------------------------------------------------------------------


def test_hand_trace_of_the_wider_pass() -> None:
    # k=2, 3 tokens of prompt: 1 + 2 + 3 + 2 = 8 rows of 1/8 on top of 1/4. Position 1 ok, 2 no.
    raw = run(
        "sd", 2, work([4]), schedule_class=bound(ReflectiveDecoding, prompt=3),
        acceptance=Scripted(bits=((1, 1, 0, 1, 1),)), target=Timer(0.25, per_token=0.125),
        draft=Timer(0.0625),
    )  # fmt: skip
    assert log(raw) == [(0.125, 1.25, 2, 2, 1, 2), (0.125, 1.25, 2, 2, 2, 1)]
    conserved(raw)


def test_the_wider_pass_eats_the_gain_in_large_batches() -> None:
    # Base 1 ms, 1/16 ms a row: a gain of 0.1 pays alone and not in a batch of 64.
    def ratio(m: int) -> float:
        one = scenario(
            step_time={
                "target": {"kind": "affine", "base_s": 1.0, "per_token_s": 1 / 1024},
                "draft": {"kind": "constant", "time_s": 0.0625},
            },
            workload={"kind": "batch", "n_requests": m, "prompt_tokens": 1, "output_tokens": 400},
            engine={"max_num_seqs": m, "kv_blocks": "unlimited"},
        )
        plain, mine = simulate(one, "sd", 4), simulate(one, "reflective:gain=0.1", 4)
        return plain.raw.makespan_s / mine.raw.makespan_s

    assert ratio(2) > 1.05
    assert ratio(128) < 0.9


def test_reflective_rounds_and_times_are_sds_at_wider_rows() -> None:
    k, alpha = 4, 0.75
    accepted = rounds_of(
        bound(ReflectiveDecoding, prompt=24), k, IidAcceptance(alpha=alpha + 0.05), n=128,
        n_rounds=400, max_num_batched_tokens=10**5,
    )  # fmt: skip
    close(accepted, float(length_of(0.8, k)) - 1, float(length_of(0.78, k)) - 1)
    assert acceptance_of("reflective", 4).alpha == pytest.approx(0.8, rel=1e-12)
    assert ReflectiveDecoding(4, 8).rows == 33


# --- all ----------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    model=st.sampled_from(
        [
            relax(BetaAcceptance(a=2.0, b=1.0), 0.6),
            relax(IidAcceptance(alpha=0.4), 0.6, concentration=2.0),
            relax(IidAcceptance(alpha=0.4), 0.6, concentration=2.0, drawn_per="position"),
        ]
    ),
    schedule=st.sampled_from(["sd", "minedraft", "pearl", "reflective"]),
    k=st.integers(1, 5),
    m=st.integers(1, 4),
    output=st.lists(st.integers(1, 30), min_size=1, max_size=16),
    kv_blocks=st.sampled_from([None, 15, 24]),
)
def test_conservation(model, schedule, k, m, output, kv_blocks) -> None:
    cls = {"schedule_class": ReflectiveDecoding} if schedule == "reflective" else {}
    name = "sd" if cls else schedule
    raw = run(name, k, work(output, prompt=4), m=m, acceptance=model, kv_blocks=kv_blocks,
              block_size=4, **cls)  # fmt: skip
    conserved(raw)


@pytest.mark.parametrize(
    "spec, words",
    [
        ("distillspec:gain=-0.1", "a number from 0 to 1"),
        ("diversed:weight=1.2", "a number from 0 to 1"),
        ("diversed:per_position=1", "per_position has no effect"),
        ("diversed:weight=1:concentration=3", "draws weights around 1"),
        ("reflective:prompt=2.5", "a whole number from 0 to 4096"),
    ],
)
def test_bad_knobs_are_refused(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        method(spec)


def test_drawn_weights_need_a_model_they_can_be_put_on() -> None:
    with pytest.raises(InputError, match="kind markov"):
        simulate(scenario(acceptance=MARKOV), "diversed:concentration=2", 3)
    with pytest.raises(InputError, match="at least 0"):
        ReflectiveDecoding(3, 4, prompt=-1)
