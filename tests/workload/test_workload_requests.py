"""Columns of requests and their summary."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psdsim.errors import InputError
from psdsim.workload import Requests, describe


def test_describe():
    r = Requests(
        np.array([1.0, 1.0, 2.0, 5.0]), np.array([4, 8, 6, 10]), np.array([1, 1, 2, 8]),
        open_loop=True,
    )  # fmt: skip
    d = describe(r)
    assert d["n_requests"] == 4
    assert (d["min_prompt_tokens"], d["median_prompt_tokens"]) == (4, 7.0)
    assert (d["mean_output_tokens"], d["max_output_tokens"]) == (3.0, 8)
    assert d["duration_s"] == 4.0
    assert d["request_rate"] == 0.75
    # Gaps 0, 1, 3: mean 4/3, sample variance (16 + 1 + 25)/9/2 = 7/3.
    assert d["gap_cv"] == pytest.approx(math.sqrt(7 / 3) / (4 / 3))
    assert d["simultaneous_share"] == 0.5
    one = describe(Requests(np.zeros(1), np.array([1]), np.array([1])))
    assert (one["request_rate"], one["gap_cv"], one["simultaneous_share"]) == (None, None, 0.0)


def test_columns_are_copies_that_cannot_be_changed():
    arrival, tokens = np.array([0.0, 1.0]), np.array([1, 2])
    r = Requests(arrival, tokens, tokens)
    arrival[0], tokens[0] = 1.0, 9
    assert (r.arrival_s[0], r.prompt_tokens[0], r.output_tokens[0]) == (0.0, 1, 1)
    with pytest.raises(ValueError, match="read-only"):
        r.prompt_tokens[0] = 3
    with pytest.raises(InputError, match="prompt_tokens has dtype float64; expected whole"):
        Requests(np.zeros(1), np.array([1.0]), np.array([1]))
    with pytest.raises(InputError, match="concurrency is 0"):
        Requests(np.zeros(1), np.array([1]), np.array([1]), concurrency=0)
