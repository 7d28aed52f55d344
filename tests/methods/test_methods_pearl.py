"""PEARL's variants: k from the speed ratio of the batch's size, and no GPU for the draft."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis import pearl as theory
from psdsim.acceptance import IidAcceptance
from psdsim.api.theory import theory_for
from psdsim.engine import simulate_run
from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.run.basis import n_gpus
from psdsim.run.prepare import prepare
from psdsim.schedules.pearl_adaptive import PearlAdaptive
from psdsim.stats import batch_means_rate
from tests.engine.kit import Scripted, Timer, conserved, run, work
from tests.methods.method_kit import scenario


def adaptive(k: int, requests: Any, **more: Any) -> Any:
    return run("pearl-adaptive", k, requests, schedule_class=PearlAdaptive, **more)


# --- a draft length for each batch size -----------------------------------------------------------


def test_two_requests_and_then_one() -> None:
    # Passes of 1/4 s + 1/4 a token, forwards of 1/8: one request has a ratio of 4, two of 6.
    raw = adaptive(
        9, work([3, 6]), m=2, acceptance=Scripted(bits=((1,) * 9, (1,) * 9)),
        target=Timer(0.25, per_token=0.25), draft=Timer(0.125),
    )  # fmt: skip
    decode = raw.steps["kind"] == 2
    each = raw.steps["n_drafted_tokens"][decode] / raw.steps["n_draft_seqs"][decode]
    # Step 1: both pre-verify (1 token). Step 2: 6 rows each, request 0 has its 3 and stops,
    # request 1 has 8 of 6.
    assert each.tolist() == [6.0, 6.0]
    assert raw.steps["n_verified_tokens"][decode].tolist() == [2, 12]
    assert raw.steps["n_emitted_tokens"][decode].tolist() == [2, 1 + 4]
    longer = adaptive(
        9, work([3, 12]), m=2, acceptance=Scripted(bits=((1,) * 9, (1,) * 16)),
        target=Timer(0.25, per_token=0.25), draft=Timer(0.125),
    )  # fmt: skip
    decode = longer.steps["kind"] == 2
    each = longer.steps["n_drafted_tokens"][decode] / longer.steps["n_draft_seqs"][decode]
    # Request 1 is alone behind the second step, with five tentative drafts and blocks of 4.
    assert each.tolist() == [6.0, 6.0, 4.0]
    assert longer.steps["n_verified_tokens"][decode].tolist() == [2, 12, 6]
    conserved(raw)
    conserved(longer)


@pytest.mark.parametrize("size, k", [(1, 2), (2, 2), (3, 3), (4, 3), (9, 7), (33, 8), (40, 8)])
def test_the_profile_of_the_next_size_up_is_used_and_k_is_the_most(size: int, k: int) -> None:
    # Ratio 1.5 + size/3 at a profiled size: 1.8, 2.2, 2.8, 4.2, 6.8 and 12.2, at most 8.
    class View:
        def target_s(self, n_seqs: int, n_tokens: int) -> float:
            assert n_seqs == n_tokens
            return 1.5 + n_seqs / 3

        def draft_s(self, n_seqs: int, n: int) -> float:
            assert n == 1
            return 1.0

    assert PearlAdaptive(8, 64)._length(size, View()) == k


def test_a_drafter_without_cost_drafts_all_that_is_allowed() -> None:
    raw = adaptive(5, work([9]), m=1, draft=Timer(0.0))
    decode = raw.steps["kind"] == 2
    assert set(raw.steps["n_drafted_tokens"][decode]) == {5}


@pytest.mark.parametrize("ratio", [1, 3, 5])
def test_at_one_size_it_is_pearl_at_the_ratio_step_by_step(ratio: int) -> None:
    args = {"m": 1, "target": Timer(0.5), "draft": Timer(0.5 / ratio), "seed": 3}
    a, b = adaptive(8, work([400] * 3), **args), run("pearl", ratio, work([400] * 3), **args)
    for name in a.steps:
        assert np.array_equal(a.steps[name], b.steps[name])


@pytest.mark.parametrize("alpha", [0.6, 0.9])
def test_tokens_per_step_are_pearls_at_the_ratio(alpha: float) -> None:
    raw = adaptive(
        16, work([3000] * 8), m=8, acceptance=IidAcceptance(alpha=alpha),
        target=Timer(0.5, per_seq=0.0625), draft=Timer(0.25),
    )  # fmt: skip
    steps = np.flatnonzero(raw.steps["kind"] == 2)[:900]
    assert set(raw.steps["n_drafted_tokens"][steps]) == {8 * 4}  # (1/2 + 8/16) / (1/4)
    found = batch_means_rate(
        raw.steps["n_emitted_tokens"][steps], raw.steps["n_verify_seqs"][steps], n_batches=30
    )
    wanted = float(theory.tokens_per_step(alpha, 4))
    assert abs(found.mean - wanted) < 4.5 * found.standard_error
    for mutant in (theory.tokens_per_step(alpha + 0.05, 4), theory.tokens_per_step(alpha, 2)):
        assert abs(float(mutant) - wanted) > 9 * found.standard_error
        assert abs(found.mean - float(mutant)) > 4.5 * found.standard_error


@pytest.mark.parametrize("kv_blocks", [None, 24])
def test_conservation(kv_blocks: int | None) -> None:
    for alpha in (0.0, 0.7, 1.0):
        raw = adaptive(
            6, work([7, 40, 13, 30, 22, 40], prompt=8, arrival=0.01 * np.arange(6)), m=4,
            acceptance=IidAcceptance(alpha=alpha), kv_blocks=kv_blocks, block_size=4,
            target=Timer(0.25, per_seq=0.1), overhead=0.01, sync=0.001,
        )  # fmt: skip
        conserved(raw)
        assert bool(raw.requests["n_preemptions"].any()) == (kv_blocks is not None)


def test_adaptive_says_what_it_assumes_and_refuses() -> None:
    assert method("pearl-adaptive").notes(scenario(), 4) == [
        "ASSUMED pearl-adaptive: a batch takes the k of the next profiled size up"
    ]
    raw = simulate_run(prepare(scenario(), "pearl-adaptive", 12))
    conserved(raw)
    decode = raw.steps["kind"] == 2
    assert set(raw.steps["n_drafted_tokens"][decode] / raw.steps["n_draft_seqs"][decode]) == {4.0}
    with pytest.raises(InputError, match="k=0"):
        prepare(scenario(), "pearl-adaptive", 0)
    with pytest.raises(InputError, match="it has none"):
        method("pearl-adaptive:k=3")
    rounds = scenario(acceptance={"kind": "position", "convention": "conditional", "rates": [0.5]})
    with pytest.raises(InputError, match="place in a round"):
        prepare(rounds, "pearl-adaptive", 1)


# --- no GPU for the draft -------------------------------------------------------------------------


def test_rc_is_pearl_on_the_targets_gpus_with_a_move_in_every_barrier() -> None:
    base = scenario(**{"step_time.sync_s": 0.03125})
    rc = simulate_run(prepare(base, "pearl-rc:move_s=0.0625", 4, seed=2))
    plain = simulate_run(prepare(base.set({"step_time.sync_s": 0.09375}), "pearl", 4, seed=2))
    for name in rc.steps:
        assert np.array_equal(rc.steps[name], plain.steps[name])
    conserved(rc)
    assert n_gpus("pearl-rc", base, 4) == base.target.n_gpus
    assert n_gpus("pearl", base, 4) == base.target.n_gpus + 1


def test_rc_against_its_closed_form_and_a_lost_move() -> None:
    base = scenario(
        workload={"kind": "batch", "n_requests": 40, "prompt_tokens": 1, "output_tokens": 400},
        engine={"max_num_seqs": 40, "kv_blocks": "unlimited"},
    )
    raw = simulate_run(prepare(base, "pearl-rc:move_s=0.05", 4, seed=2))
    steps = np.flatnonzero(raw.steps["kind"] == 2)[:150]
    found = batch_means_rate(
        raw.steps["n_emitted_tokens"][steps],
        (raw.steps["end_s"] - raw.steps["start_s"])[steps],
        warm_up=0.0,
    )
    wanted = theory_for(base, "pearl-rc:move_s=0.05", 4)
    assert wanted.tokens_per_step is not None
    assert wanted.step_time_s == pytest.approx(0.25 + base.step_time.step_overhead_s
                                               + base.step_time.sync_s + 0.05)  # fmt: skip
    rate = 40 * float(theory.tokens_per_step(0.75, 4)) / wanted.step_time_s
    assert abs(found.mean - rate) < 4.5 * found.standard_error
    lost = 40 * float(theory.tokens_per_step(0.75, 4)) / (wanted.step_time_s - 0.05)
    assert abs(lost - rate) > 9 * found.standard_error
    assert abs(found.mean - lost) > 4.5 * found.standard_error


def test_the_move_explains_one_or_two_percent_and_four_to_six_are_reported() -> None:
    # Llama-2 7B&70B: a pass of 108 ms, k=5 forwards of 21 ms, 1.9 ms around them.
    base = scenario(
        acceptance={"kind": "iid", "alpha": 0.9},
        step_time={
            "target": {"kind": "constant", "time_s": 0.108},
            "draft": {"kind": "constant", "time_s": 0.02102},
            "sync_s": 0.0019,
        },
    )
    rc, plain = (simulate_run(prepare(base, name, 5)).makespan_s for name in ("pearl-rc", "pearl"))
    assert 0.98 < plain / rc < 0.99


@pytest.mark.parametrize(
    "spec, change, words",
    [
        ("pearl-rc:move_s=-1", {}, "a number from 0 to 1"),
        ("pearl-rc:move=1", {}, "did you mean 'move_s'"),
        ("pearl-rc", {"target.n_gpus": 1}, "target.n_gpus of at least 2"),
    ],
)
def test_rc_refuses(spec: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        prepare(scenario().set(change), spec, 4)
    assert words in str(caught.value)


def test_rc_says_what_it_assumes() -> None:
    notes = method("pearl-rc").notes(scenario(), 4)
    assert len(notes) == 2
    assert all(note.startswith("ASSUMED pearl-rc") for note in notes)
    assert "1.45 ms" in notes[1]
    assert len(method("pearl-rc:move_s=0.002").notes(scenario(), 4)) == 1
