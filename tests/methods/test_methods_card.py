"""CARD: query and correct, worked out on paper, conserved, and against the chain of its depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.card import depth_chain, hit_probability
from psdsim import simulate
from psdsim.acceptance import IidAcceptance
from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.methods.parallel import CardMethod
from psdsim.run.prepare import prepare
from psdsim.schedules.card import Card
from psdsim.stats import batch_means_rate
from psdsim.verdict import Proposals
from tests.engine.kit import Scripted, Timer, conserved, run, work
from tests.methods.method_kit import bound, scenario

FIELDS = ("start_s", "end_s", "n_drafted_tokens", "n_verify_seqs", "n_verified_tokens",
          "n_accepted_tokens", "n_emitted_tokens")  # fmt: skip
GSM8K = {"alpha": 0.943, "decay": 0.414, "branch": 0.53}
"""Fitted by us to the sweep over tree widths in CARD's repository, as MT_BENCH."""
MT_BENCH = {"alpha": 0.744, "decay": 0.292, "branch": 0.567}


def shares(width: int, decay: float) -> Proposals:
    return CardMethod({"nodes": width, "decay": decay}).proposals(scenario(), 1)


def test_query_correct_and_re_root() -> None:
    # Two levels of two nodes a period. Every second choice is rank 2, so never a miss.
    # Levels read 2 nodes: 1/16 + 2/64 each. Passes: 1/4 + (1 + path)/64. Barrier 1/32.
    raw = run(
        "card", 2, work([8]), m=1, schedule_class=bound(Card, width=2, branch=0.5),
        acceptance=Scripted(bits=((1, 1, 0, 1, 1, 1, 0, 1),)), proposals=Proposals((1.0,)),
        target=Timer(0.25, per_token=1 / 64), draft=Timer(0.0625, per_token=1 / 64), sync=1 / 32,
    )  # fmt: skip
    prefill = 0.25 + 1 / 64
    empty, one = 0.25 + 1 / 64 + 1 / 32, 0.25 + 2 / 64 + 1 / 32
    t = np.cumsum([0.0, prefill, empty, one, one, one, empty]).tolist()
    rows = [tuple(raw.steps[f][i] for f in FIELDS) for i in range(raw.tally.n_steps)]
    assert rows == [
        (t[0], t[1], 0, 0, 0, 0, 1),
        # No path yet. Its own token (1) is the first choice: 0 + 2 - 1 = 1 level left.
        (t[1], t[2], 4, 1, 0, 0, 1),
        # Position 2 fails: own token, rank 2. Of 1 + 2 - 0 - 1 = 2 levels its branch has one.
        (t[2], t[3], 4, 1, 1, 0, 1),
        # 3 is accepted, 4 is the greedy continuation: 1 + 2 - 1 - 1 = 1 level left.
        (t[3], t[4], 4, 1, 1, 1, 2),
        # 5 is accepted, 6 is rank 2 on the new level: half of one level left is none.
        (t[4], t[5], 4, 1, 1, 1, 2),
        # No path: own token 7, the last.
        (t[5], t[6], 4, 1, 0, 0, 1),
    ]
    assert raw.tally.n_discarded == 5 * 4 - 3
    conserved(raw)


def test_a_miss_clears_the_tree() -> None:
    # No second choice is ever in the tree. Position 3 fails behind a path of one.
    raw = run(
        "card", 3, work([6]), m=1, schedule_class=bound(Card, width=4),
        acceptance=Scripted(bits=((1, 1, 1, 0, 1, 1),)), target=Timer(0.5), draft=Timer(0.125),
    )  # fmt: skip
    # Paths: 0 (own token 1 is the first choice: 2 left), then 2 tested (2 ok, 3 fails), then 0.
    decode = raw.steps["kind"] == 2
    assert raw.steps["n_verified_tokens"][decode].tolist() == [0, 2, 0, 2]
    assert raw.steps["n_emitted_tokens"][decode].tolist() == [1, 2, 1, 1]
    conserved(raw)


def test_a_tree_stops_at_its_deepest() -> None:
    # Four levels are all: behind a path of 3 only one grows, which the own token uses up.
    raw = run(
        "card", 4, work([30]), m=1, schedule_class=bound(Card, width=2, max_depth=4),
        acceptance=IidAcceptance(alpha=1.0), target=Timer(0.5), draft=Timer(0.125),
    )  # fmt: skip
    decode = raw.steps["kind"] == 2
    assert raw.steps["n_verified_tokens"][decode][:4].tolist() == [0, 3, 0, 3]
    assert raw.steps["n_drafted_tokens"][decode][:4].tolist() == [8, 2, 8, 2]
    conserved(raw)


@settings(max_examples=40, deadline=None)
@given(
    k=st.integers(1, 6),
    width=st.integers(1, 6),
    m=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.4, 0.9, 1.0]),
    decay=st.sampled_from([0.0, 0.3, 3.0]),
    branch=st.sampled_from([0.0, 0.5, 1.0]),
    output=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    gap=st.sampled_from([0.0, 0.7]),
    kv_blocks=st.sampled_from([None, 20, 40]),
    cv=st.sampled_from([0.0, 0.5]),
)
def test_conservation(k, width, m, alpha, decay, branch, output, gap, kv_blocks, cv) -> None:
    raw = run(
        "card", k, work(output, prompt=4, arrival=gap * np.arange(len(output))), m=m,
        schedule_class=bound(Card, width=width, branch=branch, max_depth=12),
        proposals=shares(width, decay), acceptance=IidAcceptance(alpha=alpha),
        kv_blocks=kv_blocks, block_size=4, overhead=0.01, sync=0.001,
        cost={"target_jitter_cv": cv, "draft_jitter_cv": cv},
    )  # fmt: skip
    conserved(raw)


def test_conservation_where_requests_are_preempted() -> None:
    raw = run(
        "card", 3, work([40] * 6, prompt=8), m=4, schedule_class=bound(Card, width=4),
        proposals=shares(4, 0.3), acceptance=IidAcceptance(alpha=0.9), kv_blocks=40, block_size=4,
    )  # fmt: skip
    assert raw.requests["n_preemptions"].sum() > 0
    conserved(raw)


def steps_of(alpha: float, k: int, width: int, decay: float, branch: float, seed: int = 1) -> Any:
    raw = run(
        "card", k, work([16_000]), m=1, seed=seed, schedule_class=bound(
            Card, width=width, branch=branch),
        proposals=shares(width, decay), acceptance=IidAcceptance(alpha=alpha),
        target=Timer(0.5), draft=Timer(0.0625),
    )  # fmt: skip
    conserved(raw)
    decode = np.flatnonzero(raw.steps["kind"] == 2)[:-1]
    return {name: raw.steps[name][decode] for name in FIELDS}


def share(values: np.ndarray) -> tuple[float, float]:
    """Return the mean over steps and its standard error from batch means."""
    found = batch_means_rate(values, np.ones(values.size), n_batches=30, warm_up=0.01)
    return found.mean, found.standard_error


@pytest.mark.parametrize(
    "alpha, k, width, decay, branch",
    [
        (0.943, 7, 20, 0.414, 0.53),
        (0.744, 7, 50, 0.292, 0.567),
        (0.6, 4, 20, 0.5, 1.0),
        (0.9, 5, 1, 0.35, 1.0),
    ],
)
def test_tokens_and_depths_are_those_of_the_chain(alpha, k, width, decay, branch) -> None:
    steps = steps_of(alpha, k, width, decay, branch)
    hit = float(hit_probability(width, decay))
    steady = depth_chain(alpha, k, hit, branch)
    mean, error = share(steps["n_emitted_tokens"])
    assert abs(mean - steady.tokens_per_period) < 4.5 * error
    mutants = {
        "alpha + 0.06": depth_chain(min(alpha + 0.06, 1.0), k, hit, branch),
        "k + 1": depth_chain(alpha, k + 1, hit, branch),
        "fewer hits": depth_chain(alpha, k, max(0.0, hit - 0.2), branch),
        "deeper branches": depth_chain(alpha, k, hit, branch + 0.25 if branch < 0.7 else 0.75),
    }
    sensitive = {
        name
        for name, chain in mutants.items()
        if abs(chain.tokens_per_period - steady.tokens_per_period) > 9 * error
    }
    # Insensitive: the others where a level has one node, or where low acceptance hides them.
    assert "alpha + 0.06" in sensitive
    for name in sensitive:
        assert abs(mean - mutants[name].tokens_per_period) > 4.5 * error, name
    for n in range(k + 1):
        for name, pmf in (
            ("n_accepted_tokens", steady.accepted_pmf),
            ("n_verified_tokens", steady.depth_pmf),
        ):
            found, error = share(steps[name] == n)
            # A value that is never seen has no error: it must not be expected either.
            assert abs(found - pmf[n]) < 4.5 * max(error, 1e-4), (name, n)


def test_a_period_gives_at_most_its_levels() -> None:
    for alpha in (0.5, 0.9, 0.99, 1.0):
        for hit in (0.0, 0.6, 1.0):
            assert depth_chain(alpha, 5, hit).tokens_per_period <= 5.0 + 1e-12
    assert depth_chain(1.0, 5, 0.0).tokens_per_period == pytest.approx(5.0)
    # Nothing is accepted and no second choice is found: plain decoding.
    assert depth_chain(0.0, 5, 0.0).tokens_per_period == 1.0


@pytest.mark.parametrize("profile", [GSM8K, MT_BENCH], ids=["gsm8k", "mt-bench"])
def test_misses_fall_and_acceptance_rises_with_the_nodes_of_a_level(profile) -> None:
    chains = [
        depth_chain(
            profile["alpha"], 7, float(hit_probability(w, profile["decay"])), profile["branch"]
        )
        for w in (5, 25, 105, 205)
    ]
    misses = [chain.miss_rate for chain in chains]
    assert all(np.diff(misses) < 0)
    assert all(np.diff([chain.tokens_per_period for chain in chains]) > 0)
    # CARD's repository: 15.5, 9.1, 5.7, 2.6 % and 32.6, 23.5, 19.1, 16.6 %.
    reported = {0.943: (0.155, 0.091, 0.057, 0.026), 0.744: (0.326, 0.235, 0.191, 0.166)}
    assert misses == pytest.approx(reported[profile["alpha"]], rel=0.35)


def test_the_mode_is_the_levels_less_one_where_acceptance_is_high() -> None:
    high = steps_of(GSM8K["alpha"], 7, 105, GSM8K["decay"], GSM8K["branch"])
    low = steps_of(MT_BENCH["alpha"], 7, 105, MT_BENCH["decay"], MT_BENCH["branch"])
    # Reported over all widths: 37 % of GSM8K's periods accept 6, 46 % of MT-bench's none.
    assert np.bincount(high["n_accepted_tokens"]).argmax() == 6
    assert np.bincount(low["n_accepted_tokens"]).argmax() == 0
    # Reported: 4.54 and 1.84 accepted at 105 nodes a level.
    assert high["n_accepted_tokens"].mean() == pytest.approx(4.54, rel=0.15)
    assert low["n_accepted_tokens"].mean() == pytest.approx(1.84, rel=0.15)


def test_the_method_runs_on_a_scenario_and_says_what_it_assumes() -> None:
    small = scenario()
    notes = method("card").notes(small, 4)
    assert len(notes) == 3
    assert all(note.startswith("ASSUMED ") for note in notes)
    stated = method("card:decay=0.3:branch=1").notes(small.set({"engine.max_num_seqs": 1}), 4)
    assert stated == []
    wide, narrow = (simulate(small, f"card:nodes={w}", 4).raw for w in (50, 2))
    conserved(wide)
    assert wide.makespan_s < narrow.makespan_s


@pytest.mark.parametrize(
    "spec, k, words",
    [
        ("card:nodes=0", 4, "a whole number from 1 to 512"),
        ("card:decay=-1", 4, "a number from 0 to 10"),
        ("card:branch=1.5", 4, "a number from 0 to 1"),
        ("card:depth=3", 4, "k (4) to 64 levels"),
        ("card", 0, "k=0"),
    ],
)
def test_what_is_wrong_is_refused(spec: str, k: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        prepare(scenario(), spec, k)
    assert words in str(caught.value)


def test_acceptance_by_place_in_a_round_is_refused() -> None:
    rounds = scenario(acceptance={"kind": "position", "convention": "conditional", "rates": [0.5]})
    with pytest.raises(InputError, match="has no rounds"):
        prepare(rounds, "card", 1)


@pytest.mark.parametrize("bad", [{"width": 0}, {"branch": -0.1}, {"max_depth": 2}])
def test_the_schedule_checks_its_arguments(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Card(3, 1, **bad)
