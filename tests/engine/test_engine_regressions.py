"""Things that once went wrong, or would have."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.kit import conserved, run, work


@pytest.mark.parametrize("schedule", ["ar", "sd", "minedraft", "pearl"])
def test_a_preempted_request_may_have_more_to_recompute_than_the_budget(schedule):
    # Prompts of 30 fit the budget of 32; with what they have emitted they no longer do.
    raw = run(
        schedule, 3, work([40, 40, 40], prompt=30), m=3, kv_blocks=30, block_size=4,
        max_num_batched_tokens=32,
    )  # fmt: skip
    assert raw.requests["n_preemptions"].sum() > 0
    conserved(raw)


def test_tape_storage_grows_with_the_requests_in_flight():
    requests = work(np.full(400, 20))
    wide = run("sd", 3, requests, m=400, seed=2)
    narrow = run("sd", 3, requests, m=5, seed=2)
    np.testing.assert_array_equal(wide.requests["n_rounds"], narrow.requests["n_rounds"])
    conserved(wide)
