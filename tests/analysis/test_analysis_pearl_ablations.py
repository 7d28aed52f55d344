"""PEARL's ablations: chains with memory, finite outputs by walking every path, the step's time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_analysis_pearl import stationary_tokens

from analysis import clustering, pearl, pearl_ablations
from analysis.schedules import Jitter, NoClosedForm, steady_state
from psdsim.acceptance import BetaAcceptance, IidAcceptance, MarkovAcceptance
from psdsim.errors import InputError

RATE = st.floats(0.02, 0.98)


def block(a: float, k: int, first: float | None = None) -> tuple[float, float]:
    """Return mean tokens of a pass that tests k drafts (the corrected one included), P(all)."""
    p = [a if first is None else first] + [a] * (k - 1)
    tokens = sum(float(np.prod(p[:j])) for j in range(k))
    return tokens, float(np.prod(p))


@given(RATE, RATE, st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_rates_with_memory_solve_the_balance_equations(a: float, a0: float, k: int) -> None:
    tokens, full = block(a, k)
    # States: pre after a rejection, pre after an acceptance, the pass over the rest.
    chain = np.array([[1 - a0, 0.0, a0], [1 - a, 0.0, a], [1 - full, full, 0.0]])
    assert pearl.tokens_per_step_no_post_verify(a, k, a0) == pytest.approx(
        stationary_tokens(chain, np.array([1.0, 1.0, tokens])), rel=1e-9
    )
    # States: draft only, first test of k + 1, later tests of k.
    first, all_first = block(a, k + 1, a0)
    chain = np.array([[0.0, 1.0, 0.0], [1 - all_first, 0.0, all_first], [1 - full, 0.0, full]])
    assert pearl.tokens_per_step_no_pre_verify(a, k, a0) == pytest.approx(
        stationary_tokens(chain, np.array([0.0, first, tokens])), rel=1e-9
    )
    share = stationary_tokens(chain, np.array([1.0, 0.0, 0.0]))
    assert pearl_ablations.draft_only_share(a, k, None, a0) == pytest.approx(share, rel=1e-9)
    if k >= 2:
        gain = pearl.tokens_per_step(a, k, a0) / pearl.tokens_per_step_no_pre_verify(a, k, a0)
        assert gain == pytest.approx(float(clustering.pre_verify_gain(a, a0, k)), rel=1e-9)


def test_ends_of_the_range() -> None:
    assert pearl.tokens_per_step_no_pre_verify(1.0, 4, 0.0) == 0.5
    assert pearl.tokens_per_step_no_post_verify(1.0, 4, 0.0) == 1.0
    assert pearl.tokens_per_step_no_pre_verify(1.0, 4, 0.3) == 4.0
    assert pearl_ablations.draft_only_share(1.0, 4, None, 0.0) == 0.5
    for steps in (
        pearl_ablations.expected_steps_no_post_verify(0, 0.5, 3),
        sum(pearl_ablations.expected_steps_no_pre_verify(0, 0.5, 3)),
        pearl_ablations.draft_only_share(0.5, 3, 0),
    ):
        assert steps == 0.0
    with pytest.raises(InputError, match="alpha_at_start"):
        pearl_ablations.expected_steps_no_pre_verify(3, 0.5, 2, 0.5, 1.5)


PATHS = [(5, 0.6, 0.2, 0.4, 2), (6, 0.3, 0.9, 0.5, 3), (4, 0.8, 0.1, 1.0, 3), (7, 0.7, 0.3, 0.6, 1)]


@pytest.mark.parametrize("n, a, a0, first, k", PATHS)
def test_finite_outputs_by_walking_every_path(
    n: int, a: float, a0: float, first: float, k: int
) -> None:
    def no_post(left: int, rest: bool, p: float) -> float:
        if left <= 0:
            return 0.0
        if not rest:
            return 1 + p * no_post(left - 1, True, a) + (1 - p) * no_post(left - 1, False, a0)
        total = 1 + a**k * no_post(left - k, False, a)
        return total + sum((1 - a) * a**j * no_post(left - j - 1, False, a0) for j in range(k))

    def no_pre(left: int, state: str, p: float) -> np.ndarray:
        if left <= 0:
            return np.zeros(2)
        if state == "fresh":
            return np.array([1.0, 0.0]) + no_pre(left, "first", p)
        rates = [p] + [a] * k if state == "first" else [a] * k
        total = np.array([0.0, 1.0])
        for j, rate in enumerate(rates):
            reached = float(np.prod(rates[:j]))
            total = total + reached * (1 - rate) * no_pre(left - j - 1, "fresh", a0)
        return total + float(np.prod(rates)) * no_pre(left - len(rates), "later", a)

    found = pearl_ablations.expected_steps_no_post_verify(n, a, k, a0, first)
    assert found == pytest.approx(no_post(n, False, first), rel=1e-12)
    both = pearl_ablations.expected_steps_no_pre_verify(n, a, k, a0, first)
    assert both == pytest.approx(no_pre(n, "fresh", first).tolist(), rel=1e-12)


def at(schedule: str, n_tokens: int | None = None, *, n_seqs: float = 1.0, draft_s: float = 0.25,
       jitter: Jitter | None = None, memory: bool = False):  # fmt: skip
    model = MarkovAcceptance(after_accept=0.9, after_reject=0.3)
    return steady_state(
        schedule, n_seqs_per_step=n_seqs, acceptance=model if memory else IidAcceptance(alpha=0.8),
        k=4, draft_time_s=draft_s, verify_time_s=0.5, overhead_s=0.125, sync_s=0.0625,
        n_tokens=n_tokens, jitter=jitter,
    )  # fmt: skip


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("schedule", ["pearl-no-post-verify", "pearl-no-pre-verify"])
def test_finite_outputs_tend_to_endless_ones(schedule: str, memory: bool) -> None:
    endless, long = at(schedule, memory=memory), at(schedule, 4000, memory=memory)
    for name in ("tokens_per_step_per_request", "step_time_s"):
        assert getattr(long, name) == pytest.approx(getattr(endless, name), rel=1e-3)


def test_the_step_is_shorter_where_nobody_is_verified() -> None:
    share = pearl_ablations.draft_only_share(0.8, 4)
    assert at("pearl-no-pre-verify").step_time_s == pytest.approx(
        share * 0.4375 + (1 - share) * 0.6875
    )
    assert at("pearl-no-post-verify").step_time_s == 0.6875
    # Where drafting sets the pace a batch has a closed form too.
    assert at("pearl-no-pre-verify", n_seqs=8, draft_s=0.5).step_time_s == 0.6875
    for wrong in ({"draft_s": 0.25}, {"draft_s": 0.75, "jitter": Jitter(0.1, 0.1)}):
        with pytest.raises(NoClosedForm, match="depends on the batch"):
            at("pearl-no-pre-verify", n_seqs=8, **wrong)
    with pytest.raises(NoClosedForm, match="not for beta"):
        steady_state(
            "pearl-no-pre-verify", n_seqs_per_step=1, acceptance=BetaAcceptance(a=2.0, b=1.0),
            k=4, draft_time_s=0.5, verify_time_s=0.25,
        )  # fmt: skip
