"""Token trees: the dynamic program against best-first growth and against all trees."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import trees
from analysis._kinds import AssumptionError
from analysis.rounds import acceptance_length_iid, acceptance_length_position
from psdsim.errors import InputError

SEQUOIA = (0.6342, 0.1079, 0.057, 0.0225, 0.0195, 0.015, 0.0045)


def test_sequoia_vector_t34() -> None:
    found = trees.sequoia_values(SEQUOIA, 64)
    np.testing.assert_allclose(
        found[[1, 2, 4, 8, 16, 32, 64]],
        [1, 1.6342, 2.291491, 2.732190, 3.130296, 3.500764, 3.855574],
        atol=5e-7,
    )
    chain = trees.sequoia_values(SEQUOIA[:1], 200)
    assert chain[-1] == pytest.approx(2.733734, abs=5e-7)


def all_parents(n: int) -> list[tuple[int, ...]]:
    return [(-1, *p) for p in itertools.product(*(range(i) for i in range(1, n)))]


@pytest.mark.parametrize("max_depth", [None, 0, 1, 2])
def test_best_trees_against_every_tree_of_five_nodes(max_depth: int | None) -> None:
    p = [0.5, 0.3, 0.1]
    best = 1.0
    for n in range(1, 6):
        for parents in all_parents(n):
            rates, depth, born = [1.0], [0], [0] * n
            for node in range(1, n):
                rank = born[parents[node]]
                born[parents[node]] += 1
                rates.append(p[rank] if rank < 3 else 0.0)
                depth.append(depth[parents[node]] + 1)
            if max_depth is None or max(depth) <= max_depth:
                best = max(best, trees.tree_acceptance_length(parents, rates))
    assert trees.sequoia_values(p, 5, max_depth)[5] == pytest.approx(best)


@given(
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5),
    st.integers(1, 30),
    st.one_of(st.none(), st.integers(0, 5)),
)
@settings(max_examples=100, deadline=None)
def test_program_and_growth_agree(shares: list[float], n: int, depth: int | None) -> None:
    p = np.sort(shares)[::-1] / (sum(shares) + 0.1)
    parents, ranks = trees.best_tree(p, n, depth)
    value = trees.tree_acceptance_length(parents, np.where(ranks < 0, 1.0, p[ranks]))
    table = trees.sequoia_values(p, n, depth)
    assert value == pytest.approx(table[n], rel=1e-9)
    # More nodes never hurt, and each is worth at most the one before.
    gains = np.diff(table[1:])
    assert np.all(gains >= -1e-12)
    assert np.all(np.diff(gains) <= 1e-9)


def test_a_single_child_is_a_chain() -> None:
    values = trees.sequoia_values([0.8], 6)
    np.testing.assert_allclose(values[1:], acceptance_length_iid(0.8, np.arange(6)))
    rates = [1.0, 0.9, 0.8, 0.7, 0.6]
    chain = trees.tree_acceptance_length([-1, 0, 1, 2, 3], rates)
    assert chain == pytest.approx(float(acceptance_length_position(rates[1:])))


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_rerank_keeps_the_best_subtree(seed: int, keep: int) -> None:
    rng = np.random.default_rng(seed)
    n = 7
    parents = np.array([-1] + [int(rng.integers(0, i)) for i in range(1, n)])
    rates = rng.uniform(0.0, 1.0, n)
    values = trees.node_values(parents, rates)
    found = trees.rerank(parents, rates, keep)
    assert found.size == keep
    assert all(node == 0 or parents[node] in found for node in found)
    best = max(
        values[[0, *rest]].sum()
        for rest in itertools.combinations(range(1, n), keep - 1)
        if all(parents[node] in (0, *rest) for node in rest)
    )
    assert values[found].sum() == pytest.approx(best)


def test_tree_speedup_and_sibling_approximation() -> None:
    assert trees.tree_speedup(3.0, 4, 0.125) == 2.0
    # A chain drafted node by node is Leviathan's speedup.
    assert trees.tree_speedup(3.3616, 4, 0.1) == pytest.approx(2.40114286, abs=5e-9)
    both = trees.sibling_alpha(0.7, [1, 2])
    assert both.value.tolist() == pytest.approx([0.7, 0.91])
    assert "independent" in both.how


def test_wrong_trees_are_named() -> None:
    with pytest.raises(AssumptionError, match="increases"):
        trees.sequoia_values([0.2, 0.3], 4)
    with pytest.raises(InputError, match="law of ranks"):
        trees.best_tree([0.8, 0.7], 4)
    with pytest.raises(InputError, match="out of order"):
        trees.node_values([-1, 2, 0], [1.0, 0.5, 0.5])
    with pytest.raises(InputError, match="no tree"):
        trees.node_values([0, 0], [1.0, 0.5])
