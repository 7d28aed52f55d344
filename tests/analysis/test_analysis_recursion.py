"""Max-plus sample paths: barrier = no barrier at two groups, more groups never hurt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.recursion import makespan_with_barrier, makespan_without_barrier
from psdsim import InputError

# Multiples of 1/64 add up exactly, so equality is exact.
dyadic = st.integers(0, 640).map(lambda x: x / 64)
rounds = st.lists(st.tuples(dyadic, dyadic), min_size=1, max_size=40)


@settings(max_examples=200)
@given(rounds)
def test_barrier_costs_nothing_with_two_groups(times):
    draft, verify = zip(*times, strict=True)
    assert makespan_with_barrier(draft, verify) == makespan_without_barrier(draft, verify, 2)


@given(rounds, st.integers(1, 6))
def test_more_groups_never_hurt_and_bounds_hold(times, m):
    draft, verify = zip(*times, strict=True)
    fewer = makespan_without_barrier(draft, verify, m)
    more = makespan_without_barrier(draft, verify, m + 1)
    assert more <= fewer
    assert more >= max(sum(verify) + draft[0], sum(draft) + verify[-1])
    assert makespan_without_barrier(draft, verify, 1) == sum(draft) + sum(verify)


def test_shapes():
    with pytest.raises(InputError, match="one time of each"):
        makespan_with_barrier([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="at least 0"):
        makespan_with_barrier([-1.0], [1.0])
    assert np.isfinite(makespan_with_barrier([0.0], [0.0]))
