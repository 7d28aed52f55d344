"""DSI: blocks verified on several targets, worked out on paper and against its expected times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import dsi as theory
from psdsim import simulate
from psdsim.acceptance import IidAcceptance
from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.run.basis import n_gpus
from psdsim.run.prepare import prepare
from psdsim.schedules.dsi import Dsi
from tests.engine.kit import Scripted, Timer, conserved, run, work
from tests.methods.method_kit import bound, scenario

FIELDS = ("start_s", "end_s", "n_drafted_tokens", "n_verify_seqs", "n_verified_tokens",
          "n_accepted_tokens", "n_emitted_tokens")  # fmt: skip


def dsi(k: int, requests: Any, n: int, alpha: float = 0.7, **more: Any) -> Any:
    more.setdefault("acceptance", IidAcceptance(alpha=alpha))
    return run("dsi", k, requests, schedule_class=bound(Dsi, n_targets=n), n_targets=n, **more)


def rows(raw: Any) -> list[tuple[Any, ...]]:
    return [tuple(raw.steps[f][i] for f in FIELDS) for i in range(raw.tally.n_steps)]


def test_one_request_on_two_targets() -> None:
    # Blocks of two forwards, 1/4 s; passes of 1/2 s: two targets are just enough.
    raw = dsi(
        2, work([7]), 2, m=1, acceptance=Scripted(bits=((1, 1, 1, 0, 0, 1, 1),)),
        target=Timer(0.5), draft=Timer(0.125), record_spans=True,
    )  # fmt: skip
    assert rows(raw) == [
        (0.0, 0.5, 0, 0, 0, 0, 1),
        # Pass on the prefix, to test 1 ...
        (0.5, 0.75, 2, 1, 0, 0, 0),
        # ... on the other target: 2, and 3 of the block begun now. 1 is accepted at 1.0.
        (0.75, 1.0, 2, 1, 1, 1, 1),
        # 2 accepted, 3 not: at 1.25 all behind it is void (a pass over 4 and 5 runs to 1.5).
        (1.0, 1.25, 2, 1, 2, 1, 2),
        # Restart, on the target that found the rejection.
        (1.25, 1.5, 2, 1, 0, 0, 0),
        # 4 is rejected at 1.75.
        (1.5, 1.75, 2, 1, 1, 0, 1),
        (1.75, 2.0, 2, 1, 0, 0, 0),
        (2.0, 2.25, 2, 1, 1, 1, 1),
        # 6, the last token, is accepted, and 7 beyond it.
        (2.25, 2.5, 2, 1, 2, 2, 1),
    ]
    assert raw.tally.n_discarded == 16 - 7
    passes = [s for s in raw.spans if s.kind == "verify"]
    assert [(s.device, s.start_s) for s in passes if s.n_tokens == 1][:3] == [
        ("target", 0.5), ("target-1", 1.25), ("target-1", 1.75),
    ]  # fmt: skip
    conserved(raw)


def test_a_running_forward_comes_to_its_end() -> None:
    # Passes of 1/2, forwards of 3/16: at the rejection, 1.0, one runs until 0.5 + 3 * 3/16.
    raw = dsi(
        1, work([4]), 4, m=1, acceptance=Scripted(bits=((1, 0, 1, 1),)),
        target=Timer(0.5), draft=Timer(0.1875), record_spans=True,
    )  # fmt: skip
    starts = [s.start_s for s in raw.spans if s.kind == "draft"]
    assert starts[:5] == [0.5, 0.6875, 0.875, 1.0625, 1.25]
    passes = [s.start_s for s in raw.spans if s.kind == "verify"]
    assert passes[:2] == [0.5, 0.6875]
    assert 1.0 in passes  # the target does not wait for the drafter
    conserved(raw)


def test_in_a_batch_a_broken_chain_waits_for_the_next_block() -> None:
    # Request 0 rejects its first draft at 1.0, request 1 accepts all.
    raw = dsi(
        2, work([9, 9]), 2, m=2, acceptance=Scripted(bits=((1, 0), (1,))),
        target=Timer(0.5), draft=Timer(0.125),
    )  # fmt: skip
    assert rows(raw)[1:5] == [
        (0.5, 0.75, 4, 2, 0, 0, 0),
        (0.75, 1.0, 4, 2, 2, 1, 2),
        # Of the pass begun at 0.75 only request 1's rows count; request 0's two are discarded.
        (1.0, 1.25, 4, 2, 2, 2, 2),
        # Request 0's new chain begins at 1.0: its first draft and two of request 1.
        (1.25, 1.5, 4, 2, 3, 3, 3),
    ]
    conserved(raw)


def test_nothing_is_accepted_in_a_batch_that_moves_together() -> None:
    raw = dsi(3, work([20] * 4), 2, 0.0, m=4, target=Timer(0.5), draft=Timer(0.125))
    ar = run("ar", 0, work([20] * 4), m=4, target=Timer(0.5))
    assert raw.makespan_s == ar.makespan_s
    conserved(raw)


def test_everything_is_accepted_a_block_a_block_time() -> None:
    k, n = 4, 100
    raw = dsi(k, work([n * k + 2]), 3, 1.0, m=1, target=Timer(0.5), draft=Timer(0.0625))
    # One token by the pass on the prefix, then k a block; prefill takes as long as a pass.
    assert raw.makespan_s == 2 * 0.5 + n * k * 0.0625
    conserved(raw)


@settings(max_examples=40, deadline=None)
@given(
    k=st.integers(1, 4),
    n=st.integers(1, 5),
    m=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.4, 0.9, 1.0]),
    output=st.lists(st.integers(1, 30), min_size=1, max_size=10),
    gap=st.sampled_from([0.0, 0.7]),
    kv_blocks=st.sampled_from([None, 18, 40]),
    cv=st.sampled_from([0.0, 0.5]),
    draft_s=st.sampled_from([0.03, 0.125, 0.4]),
)
def test_conservation(k, n, m, alpha, output, gap, kv_blocks, cv, draft_s) -> None:
    raw = dsi(
        k, work(output, prompt=4, arrival=gap * np.arange(len(output))), n, alpha, m=m,
        kv_blocks=kv_blocks, block_size=4, overhead=0.01, sync=0.001, draft=Timer(draft_s),
        cost={"target_jitter_cv": cv, "draft_jitter_cv": cv, "step_overhead_per_seq_s": 0.001},
    )  # fmt: skip
    conserved(raw)


def test_conservation_where_requests_are_preempted() -> None:
    for k, n in ((1, 3), (3, 2)):
        raw = dsi(k, work([40] * 6, prompt=8), n, 0.8, m=4, kv_blocks=40, block_size=4)
        assert raw.requests["n_preemptions"].sum() > 0
        conserved(raw)


# --- never slower than plain decoding -------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 16])
@pytest.mark.parametrize("k, draft_s", [(1, 0.5), (1, 0.25), (1, 0.13), (3, 0.25), (6, 0.11)])
def test_never_slower_than_plain_decoding(k: int, draft_s: float, n: int) -> None:
    # k + 1 forwards fit into a pass: every request is through at least as early.
    requests = work([1, 2, 17, 40])
    ar = run("ar", 0, requests, m=1, target=Timer(1.0))
    plain = ar.requests["finish_s"] - ar.requests["first_token_s"]
    for alpha in (0.0, 0.2, 0.5, 0.8, 0.97, 1.0):
        raw = dsi(k, requests, n, alpha, m=1, target=Timer(1.0), draft=Timer(draft_s))
        decode_s = raw.requests["finish_s"] - raw.requests["first_token_s"]
        assert (decode_s <= plain + 1e-9).all()
        conserved(raw)


def test_it_can_be_slower_where_a_block_outlasts_a_pass() -> None:
    # Rejected behind one match: found by the pass that a block of two passes' time has begun.
    requests = work([2001])
    raw = dsi(4, requests, 8, 0.5, m=1, target=Timer(1.0), draft=Timer(0.5))
    assert raw.makespan_s > 2001.0


# --- expected times -------------------------------------------------------------------------------


def time_of(k: int, n: int, alpha: float, n_tokens: int, n_requests: int) -> tuple[float, float]:
    """Return the mean time of so many tokens, passes of 1 s, forwards of 1/16, and its error."""
    raw = dsi(
        k, work([n_tokens + 1] * n_requests), n, alpha, m=1, target=Timer(1.0),
        draft=Timer(0.0625), seed=3,
    )  # fmt: skip
    conserved(raw)
    time_s = raw.requests["finish_s"] - raw.requests["first_token_s"]
    return float(time_s.mean()), float(time_s.std(ddof=1) / math.sqrt(time_s.size))


@pytest.mark.parametrize("k, alpha", [(1, 0.8), (2, 0.5), (2, 0.95), (4, 0.8)])
def test_the_time_of_n_tokens(k: int, alpha: float) -> None:
    t1, t2, n = 0.0625, 1.0, 60
    servers = int(theory.servers_needed(t1, t2, k))
    mean, error = time_of(k, servers, alpha, n, 64)
    wanted = theory.expected_time_lookahead(n, alpha, t1, t2, k)
    assert abs(mean - wanted) < 4.5 * error
    mutants = {
        "alpha - 0.1": theory.expected_time_lookahead(n, alpha - 0.1, t1, t2, k),
        "no lookahead": theory.expected_time_lookahead(n, alpha, t1, t2, 1),
        "k + 8": theory.expected_time_lookahead(n, alpha, t1, t2, k + 8),
        "n + 20": theory.expected_time_lookahead(n + 20, alpha, t1, t2, k),
    }
    sensitive = {name for name, value in mutants.items() if abs(value - wanted) > 9 * error}
    assert {"alpha - 0.1", "n + 20"} <= sensitive
    assert all(abs(mean - mutants[name]) > 4.5 * error for name in sensitive)


@pytest.mark.parametrize("alpha, n", [(0.6, 120), (0.9, 160)])
def test_a_forward_that_must_end_delays_the_drafter(alpha: float, n: int) -> None:
    # 1.0 is no multiple of 0.45: behind most passes a restart's first forward waits 0.35.
    t1, t2, k = 0.45, 1.0, 1
    raw = dsi(
        k, work([n + 1] * 40), 6, alpha, m=1, target=Timer(t2), draft=Timer(t1), seed=3,
    )  # fmt: skip
    time_s = (raw.requests["finish_s"] - raw.requests["first_token_s"]) / n
    mean, error = time_s.mean(), time_s.std(ddof=1) / math.sqrt(time_s.size)
    wanted = (1 - alpha) * theory.cycle_time(alpha, t1, t2, k, ends_at_once=False)
    published = (1 - alpha) * theory.cycle_time(alpha, t1, t2, k)
    # The last token costs a pass of its own: no more than a pass over all tokens.
    assert -4.5 * error < mean - wanted < 4.5 * error + t2 / n
    assert abs(mean - published) > 4.5 * error + t2 / n


def test_few_targets_are_slower() -> None:
    found = [time_of(2, n, 0.9, 60, 20)[0] for n in (1, 2, 4, 8, 12)]
    assert found[0] > found[1] > found[2] > found[3]
    assert found[3] == found[4]  # 8 are enough


# --- the method -----------------------------------------------------------------------------------


def test_targets_come_from_the_formula_and_are_counted() -> None:
    one = scenario(engine={"max_num_seqs": 1, "kv_blocks": "unlimited"})
    assert prepare(one, "dsi", 1).n_targets == 4
    assert prepare(one, "dsi", 2).n_targets == 2
    assert prepare(one, "dsi:targets=7", 2).n_targets == 7
    assert n_gpus("dsi", one, 2) == 2 * one.target.n_gpus + 1
    assert method("dsi").notes(one, 2) == [
        "ASSUMED dsi: 2 copies of the target, ceil(t2 / (k t1)) (DSI, Eq. 1)"
    ]
    assert method("dsi:targets=2").notes(one, 2) == []
    raw = simulate(one, "dsi", 2).raw
    conserved(raw)
    assert raw.makespan_s < simulate(one, "ar", 0).raw.makespan_s


@pytest.mark.parametrize(
    "spec, k, change, words",
    [
        ("dsi:targets=65", 2, {}, "a whole number from 0 to 64"),
        ("dsi", 0, {}, "k=0"),
        ("dsi", 2, {"draft.shared": True}, "devices of its own"),
        ("dsi", 2, {"draft.slow_down": 1.5}, "devices of its own"),
        ("dsi", 2, {"step_time.draft.time_s": 0.0}, "drafts take no time"),
        ("dsi", 1, {"step_time.draft.time_s": 0.001}, "needs 250 copies"),
        ("dsi", 2, {"acceptance": {"kind": "markov_rounds", "after_full": [0.5],
                                   "otherwise": [0.5], "extend": "last"}}, "no rounds"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(spec: str, k: int, change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        prepare(scenario().set(change), spec, k)
    assert words in str(caught.value)


@pytest.mark.parametrize("n", [0, 65])
def test_the_schedule_checks_its_targets(n: int) -> None:
    with pytest.raises(InputError, match="1 to 64"):
        Dsi(1, 1, n_targets=n)
