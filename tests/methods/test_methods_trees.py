"""EAGLE, Medusa and prompt lookup: trees by value, sized by load, at a share of the target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import trees as theory
from psdsim import simulate
from psdsim.acceptance import IidAcceptance, PositionAcceptance
from psdsim.commands import Tree
from psdsim.errors import InputError
from psdsim.methods import method
from psdsim.methods.drafters import PROFILES, profile
from psdsim.methods.tree_shapes import grow, rank_rates, sibling_shares, tree_gain
from psdsim.schedules.tree import TreeDecoding
from psdsim.verdict import Proposals
from tests.engine.kit import Scripted, Timer, conserved
from tests.methods.method_kit import bound, close, log, rounds_of, run, scenario, work


def parents_of(tree: Tree) -> tuple[list[int], list[int]]:
    """Return parents and ranks with the root in front, as theory has them."""
    index = {(): 0} | {path: i + 1 for i, path in enumerate(tree.paths)}
    return [-1] + [index[path[:-1]] for path in tree.paths], [0] + [p[-1] for p in tree.paths]


# --- the trees themselves -----------------------------------------------------------------------


@given(
    n_nodes=st.integers(1, 40),
    alpha=st.floats(0.3, 0.95),
    second=st.floats(0.1, 0.6),
    branch=st.integers(2, 5),
    depth=st.integers(1, 7),
)
def test_the_grown_tree_is_worth_what_the_best_tree_is(n_nodes, alpha, second, branch, depth):
    shares = sibling_shares(second, branch)
    table = rank_rates(np.full(depth, alpha), shares)
    if (np.diff(table[0]) > 0).any():
        return  # a later choice that is likelier: no order of growth is promised
    tree = grow(table, n_nodes)
    assert tree is not None
    best = theory.sequoia_values(table[0], n_nodes + 1, depth)[-1]
    assert 1.0 + tree_gain(tree, table) == pytest.approx(best, rel=1e-12)
    parents, ranks = parents_of(tree)
    rates = [1.0] + [table[0, rank - 1] for rank in ranks[1:]]
    assert 1.0 + tree_gain(tree, table) == pytest.approx(
        theory.tree_acceptance_length(parents, rates), rel=1e-12
    )


def test_a_tree_stops_where_there_is_no_room() -> None:
    table = rank_rates(np.full(2, 0.5), (0.5,))
    full = grow(table, 100)
    assert full is not None
    assert full.n_nodes == 2 + 4
    assert grow(table, 0) is None
    assert grow(table[:0], 5) is None


@pytest.mark.parametrize(
    "acceptance",
    [
        IidAcceptance(alpha=0.6),
        PositionAcceptance(rates=PROFILES["eagle3"]["chat"], convention="conditional"),
    ],
    ids=lambda m: m.kind,
)
def test_the_accepted_path_is_as_long_as_node_values_say(acceptance) -> None:
    k, shares = 4, sibling_shares(0.4, 4)
    table = rank_rates(acceptance.conditional_rates(k), shares)
    tree = grow(table, 12)
    assert tree is not None
    accepted = rounds_of(
        bound(TreeDecoding, trees=(tree,)), k, acceptance, n=128, n_rounds=500,
        proposals=Proposals(sibling_shares=shares),
    )  # fmt: skip
    worse = rank_rates(acceptance.conditional_rates(k), sibling_shares(0.36, 4))
    close(accepted, tree_gain(tree, table), tree_gain(tree, worse))
    better = rank_rates(acceptance.conditional_rates(k) + 0.02, shares)
    close(accepted, tree_gain(tree, table), tree_gain(tree, better))


# --- the schedule -------------------------------------------------------------------------------


def test_hand_trace_of_trees_chosen_by_load() -> None:
    # Target: 1/4 + 1/8 a row; draft: 1/16 a forward. Trees: none, or first and second choice.
    fork = Tree([(1,), (2,)])
    cls = bound(TreeDecoding, trees=(None, fork), gains=(0.0, 1.5))
    args: dict[str, Any] = {
        "schedule_class": cls, "target": Timer(0.25, per_token=0.125), "draft": Timer(0.0625),
        "acceptance": Scripted(bits=((1, 1, 1, 1, 1), (1, 1, 1, 1, 1))),
        "proposals": Proposals(sibling_shares=(1.0,)),
    }  # fmt: skip
    # One request: 1 / (3/8) = 2.67 against 2.5 / (5/8 + 1/16) = 3.64: the tree.
    alone = run("sd", 1, work([4]), **args)
    assert log(alone) == [
        (0.0625, 0.625, 2, 2, 1, 2),
        (0.0625, 0.625, 2, 2, 1, 1),  # the bonus is clipped
    ]
    # Eight: 8 / (1/4 + 1) = 6.4 against 20 / (1/4 + 3 + 1/16) = 6.04: nothing.
    many = run("sd", 1, work([3] * 8), m=8, **args)
    assert log(many) == [(0.0, 1.25, 0, 0, 0, 8)] * 2
    conserved(alone)
    conserved(many)


def test_the_load_decides_the_size() -> None:
    table = rank_rates(np.full(4, 0.7), sibling_shares(0.4, 4))
    trees = [grow(table, n) for n in (0, 4, 8, 16)]
    cls = bound(TreeDecoding, trees=trees, gains=[tree_gain(tree, table) for tree in trees])
    nodes = []
    for m in (1, 8, 64, 512):
        raw = run(
            "sd", 4, work([30] * m), m=m, schedule_class=cls, max_num_batched_tokens=10**5,
            target=Timer(0.02, per_token=0.0001), draft=Timer(0.001),
            proposals=Proposals(sibling_shares=sibling_shares(0.4, 4)),
        )  # fmt: skip
        first = np.flatnonzero(raw.steps["kind"] == 2)[0]
        nodes.append(int(raw.steps["n_drafted_tokens"][first]) // m)
        conserved(raw)
    assert nodes == sorted(nodes, reverse=True)
    assert nodes[0] == 16
    assert nodes[-1] == 0


@pytest.mark.parametrize("m", [1, 24, 200])
def test_a_size_chosen_by_load_is_as_fast_as_the_best_fixed_one(m: int) -> None:
    shares = sibling_shares(0.4, 4)
    table = rank_rates(np.full(4, 0.7), shares)
    trees = [grow(table, n) for n in (0, 4, 8, 16)]

    def makespan(sizes: list[Any]) -> float:
        cls = bound(TreeDecoding, trees=sizes, gains=[tree_gain(tree, table) for tree in sizes])
        return run(
            "sd", 4, work([60] * m), m=m, schedule_class=cls, max_num_batched_tokens=10**5,
            target=Timer(0.02, per_token=0.0001), draft=Timer(0.001),
            proposals=Proposals(sibling_shares=shares),
        ).makespan_s  # fmt: skip

    fixed = [makespan([tree]) for tree in trees]
    # All see the same text; as the batch runs empty a larger tree pays again, so it may be faster.
    assert makespan(trees) <= 1.02 * min(fixed)
    assert max(fixed) > 1.3 * min(fixed)


@settings(max_examples=25)
@given(
    n_nodes=st.integers(0, 12),
    adaptive=st.booleans(),
    k=st.integers(1, 5),
    m=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.5, 1.0]),
    output=st.lists(st.integers(1, 30), min_size=1, max_size=16),
    gap=st.sampled_from([0.0, 0.4]),
    kv_blocks=st.sampled_from([None, 14, 24]),
    chunked=st.booleans(),
)
def test_conservation(n_nodes, adaptive, k, m, alpha, output, gap, kv_blocks, chunked) -> None:
    table = rank_rates(np.full(k, alpha), (0.4, 0.2))
    trees = [grow(table, n) for n in ({0, n_nodes} if adaptive else {n_nodes})]
    cls = bound(TreeDecoding, trees=trees, gains=[tree_gain(tree, table) for tree in trees])
    raw = run(
        "sd", k, work(output, prompt=4, arrival=gap * np.arange(len(output))), m=m,
        schedule_class=cls, acceptance=IidAcceptance(alpha=alpha), kv_blocks=kv_blocks,
        block_size=4, chunked=chunked, proposals=Proposals(sibling_shares=(0.4, 0.2)),
    )  # fmt: skip
    conserved(raw)


def test_every_node_takes_its_place_in_the_cache() -> None:
    # Two requests of 4 + 6 tokens in 8 blocks of 4: chains of 1 fit beside each other, but not the
    # 13 places of a tree of 12 and the token behind it.
    wide = Tree([(rank,) for rank in range(1, 13)])
    args: dict[str, Any] = {
        "kv_blocks": 8, "block_size": 4, "m": 2, "acceptance": IidAcceptance(alpha=0.0),
    }  # fmt: skip
    chain = run("sd", 1, work([6, 6], prompt=4), schedule_class=TreeDecoding, **args)
    tree = run("sd", 1, work([6, 6], prompt=4), schedule_class=bound(TreeDecoding, trees=(wide,)),
               proposals=Proposals(sibling_shares=(0.0,)), **args)  # fmt: skip
    assert chain.requests["n_preemptions"].sum() == 0
    assert tree.requests["n_preemptions"].sum() > 0
    conserved(tree)
    with pytest.raises(InputError, match=r"request 0 .* needs 6 KV blocks"):
        run("sd", 1, work([6], prompt=4), schedule_class=bound(TreeDecoding, trees=(wide,)),
            kv_blocks=5, block_size=4)  # fmt: skip


def test_bad_trees_are_refused() -> None:
    with pytest.raises(InputError, match="2 levels deep and k is 1"):
        TreeDecoding(1, 4, trees=(Tree([(1,), (1, 1)]),))
    with pytest.raises(InputError, match="a gain of at least 0 for each"):
        TreeDecoding(2, 4, trees=(None, Tree([(1,)])))
    assert TreeDecoding(3, 4).rows == 4
    assert TreeDecoding(3, 4, trees=(None, Tree([(1,), (2,)])), gains=(0, 1)).rows == 3


# --- the methods --------------------------------------------------------------------------------


def test_published_profiles_give_the_lengths_printed_beside_them() -> None:
    # DSpark Fig. 2, last column: 1 + sum of products.
    printed = {"dflash": (4.79, 4.48, 2.97), "eagle3": (4.56, 3.91, 2.41)}
    for drafter, lengths in printed.items():
        for place, length in enumerate(lengths, start=1):
            assert profile(drafter, place).acceptance_length(7) == pytest.approx(length, abs=0.012)


def test_a_chain_is_serial_sd_at_the_drafters_share() -> None:
    base = scenario()
    eagle = method("eagle:profile=0")
    adapted = eagle.adapt(base, 3)
    drafter = adapted.timers()["draft"]
    assert drafter is not None
    # Qwen3-32B: one of 64 layers and the output projection.
    assert drafter(1, 1, 0) == pytest.approx(0.25 * 0.0396, rel=2e-3)
    assert eagle.closed_form == "sd"
    one, other = simulate(base, "eagle:profile=0", 3), simulate(adapted, "sd", 3)
    for name, column in other.raw.steps.items():
        assert np.array_equal(one.raw.steps[name], column), name


def test_a_tree_of_one_choice_a_level_is_the_chain() -> None:
    base = scenario(acceptance={"kind": "iid", "alpha": 0.6})
    chain = simulate(base, "eagle:profile=0", 3)
    tree = simulate(base, "eagle:profile=0:nodes=3:sibling=0", 3)
    for name, column in chain.raw.steps.items():
        assert np.array_equal(tree.raw.steps[name], column), name


def test_medusa_heads_cost_their_weights_and_decay() -> None:
    medusa = method("medusa-like:alpha=0.6:decay=0.5")
    adapted = medusa.adapt(scenario(), 3)
    assert adapted.acceptance is not None
    assert adapted.acceptance.conditional_rates(3).tolist() == [0.6, 0.3, 0.15]
    drafter = adapted.timers()["draft"]
    assert drafter is not None
    assert drafter(1, 1, 0) == pytest.approx(0.25 * 0.0252, rel=5e-3)


def test_lookups_cost_once_a_round() -> None:
    result = simulate(scenario(), "ngram:lookup_ms=125", 4)
    steps = result.raw.steps
    assert steps["draft_time_s"][steps["kind"] == 2].tolist()[0] == 0.125
    free = simulate(scenario(), "ngram", 4).raw.steps
    assert not free["draft_time_s"].any()


def test_who_has_no_draft_model_can_still_use_heads() -> None:
    without = scenario()
    data = without.to_dict()
    data |= {"draft": None, "acceptance": None}
    data["step_time"].pop("draft")
    bare = type(without).parse(data)
    assert simulate(bare, "eagle", 3).raw.tally.n_accepted > 0
    assert simulate(bare, "ngram", 3).raw.tally.n_accepted > 0
    with pytest.raises(InputError, match="is to take the scenario's acceptance"):
        simulate(bare, "eagle:profile=0", 3)


def test_what_only_a_draft_model_elsewhere_has_is_left_behind() -> None:
    times = scenario().to_dict()["step_time"]
    times |= {
        "prefill": {"kind": "constant", "time_s": 0.5},
        "draft_prefill": {"kind": "constant", "time_s": 0.125},
        "target_resume_s": 0.25,
        "draft_jitter_cv": 0.5,
    }
    base = scenario(step_time=times, **{"draft.serial_on": "own"})
    heads = method("eagle").adapt(base, 3)
    assert heads.draft is not None
    assert (heads.draft.config, heads.draft.shared) == (base.target.config, True)
    assert heads.step_time.target_resume_s == 0.0
    prefill = heads.timers()["draft_prefill"]
    assert prefill is not None
    assert prefill(1, 1, 0) == pytest.approx(0.5 * 0.0396, rel=2e-3)
    assert method("ngram").adapt(base, 3).step_time.draft_prefill is None
    conserved(simulate(base, "eagle:nodes=6", 3).raw)


def test_what_is_assumed_is_said_until_it_is_stated() -> None:
    base = scenario()
    said = method("eagle:nodes=8").notes(base, 4)
    assert all(line.startswith("ASSUMED eagle: ") for line in said)
    assert any("0.0396 of a target pass" in line for line in said)
    assert any("sibling 0.4" in line for line in said)
    assert len(method("eagle:nodes=8:sibling=0.3:profile=1").notes(base, 4)) == 2
    assert len(method("eagle:profile=1").notes(base, 4)) == 1


@pytest.mark.parametrize(
    "spec, words",
    [
        ("eagle:sibling=0.3", "drafts a chain and sibling has no effect"),
        ("eagle:adaptive=1", "drafts a chain and adaptive has no effect"),
        ("eagle:profile=4", "a whole number from 0 to 3"),
        ("eagle:nodes=2.5", "a whole number from 0 to 256"),
        ("medusa-like:profile=0:alpha=0.5", "alpha has no effect"),
        ("ngram:profile=0:alpha=0.5", "alpha has no effect"),
        ("ngram:alpha=1.5", "a number from 0 to 1"),
    ],
)
def test_bad_knobs_are_refused(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        method(spec)
