"""Closed forms of CARD's depth and of DSI with a lookahead, by hand and by their limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from analysis import card, dsi
from analysis._kinds import AssumptionError
from psdsim.errors import InputError

# --- CARD -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9, 1.0])
def test_two_levels_without_second_choices_by_hand(alpha: float) -> None:
    # Depth is 0 or 1: 0 -> 1 if the own token is the first choice, 1 -> 1 if two are right.
    one = alpha / (1.0 + alpha - alpha**2)
    steady = card.depth_chain(alpha, 2, 0.0)
    assert steady.depth_pmf[:2].tolist() == pytest.approx([1.0 - one, one])
    assert steady.tokens_per_period == pytest.approx(1.0 + one * alpha)
    # Missed: at depth 0 the first choice; at depth 1 the draft, or behind it the first choice.
    assert steady.miss_rate == pytest.approx((1.0 - one) * (1 - alpha) + one * (1 - alpha**2))


def test_one_level_is_plain_decoding() -> None:
    # The own token takes the only level that grew meanwhile.
    steady = card.depth_chain(0.9, 1, 1.0)
    assert steady.tokens_per_period == 1.0
    assert steady.depth_pmf[0] == 1.0


def test_the_laws_add_up_and_no_period_beats_its_levels() -> None:
    for alpha, hit, branch, deepest in itertools.product(
        (0.2, 0.8, 1.0), (0.0, 0.5, 1.0), (0.0, 0.6, 1.0), (6, 50)
    ):
        steady = card.depth_chain(alpha, 4, hit, branch, deepest)
        assert steady.depth_pmf.sum() == pytest.approx(1.0)
        assert steady.accepted_pmf.sum() == pytest.approx(1.0)
        bound = float(card.tokens_per_period(4).value)
        assert 1.0 <= steady.tokens_per_period <= bound + 1e-9
        assert 0.0 <= steady.miss_rate <= 1.0


def test_a_deep_enough_tree_has_no_depth_to_speak_of() -> None:
    at_50, at_64 = (card.depth_chain(0.9, 4, 0.7, 0.6, d).tokens_per_period for d in (50, 64))
    assert at_50 == pytest.approx(at_64, rel=1e-9)


def test_more_hits_give_more() -> None:
    hits = card.hit_probability([1, 5, 50], 0.4)
    assert hits[0] == 0.0
    assert np.all(np.diff(hits) > 0)
    gains = [card.depth_chain(0.8, 5, float(h)).tokens_per_period for h in hits]
    assert np.all(np.diff(gains) > 0)


@pytest.mark.parametrize(
    "bad",
    [
        {"alpha": 1.1}, {"levels_per_exchange": 0}, {"hit": -0.1}, {"branch": 2.0},
        {"max_depth": 3},
    ],
)  # fmt: skip
def test_card_refuses_nonsense(bad: dict[str, float]) -> None:
    good = {"alpha": 0.5, "levels_per_exchange": 4, "hit": 0.5, "branch": 0.5, "max_depth": 9}
    with pytest.raises(InputError):
        card.depth_chain(**(good | bad))  # type: ignore[arg-type]
    with pytest.raises(InputError):
        card.hit_probability(0, 0.5)


# --- DSI ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.0, 0.4, 0.95])
def test_a_lookahead_of_one_is_the_published_limit_and_bound(p: float) -> None:
    limit = float(dsi.speedup_limit(p, 0.2, 1.0))
    assert 1.0 / ((1.0 - p) * dsi.cycle_time(p, 0.2, 1.0)) == pytest.approx(limit)
    bound = float(dsi.expected_time(37, p, 0.2, 1.0).value)
    assert dsi.expected_time_lookahead(37, p, 0.2, 1.0, 1) == pytest.approx(bound)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("p", [0.3, 0.8])
def test_the_time_of_n_tokens_is_the_mean_over_all_outcomes(p: float, k: int) -> None:
    n, t1, t2 = 7, 0.15, 1.0
    mean = 0.0
    for matches in itertools.product((0, 1), repeat=n):
        weight = np.prod([p if m else 1.0 - p for m in matches])
        time_s, since = 0.0, 0
        for place, match in enumerate(matches):
            last = place == n - 1
            if not match or last:
                # Found by the pass that began with block ceil(since / k).
                time_s += t2 + k * t1 * -(-since // k)
            since = since + 1 if match else 0
        mean += weight * time_s
    assert dsi.expected_time_lookahead(n, p, t1, t2, k) == pytest.approx(mean)


@pytest.mark.parametrize("k", [1, 3])
def test_long_outputs_cost_a_cycle_a_rejection(k: int) -> None:
    p, t1, t2 = 0.7, 0.1, 1.0
    slope = dsi.expected_time_lookahead(400, p, t1, t2, k)
    slope -= dsi.expected_time_lookahead(300, p, t1, t2, k)
    assert slope / 100 == pytest.approx((1.0 - p) * dsi.cycle_time(p, t1, t2, k), rel=1e-9)


def test_a_longer_lookahead_is_slower_and_needs_fewer_servers() -> None:
    times = [dsi.cycle_time(0.8, 0.1, 1.0, k) for k in (1, 2, 5, 10)]
    assert np.all(np.diff(times) > 0)
    assert dsi.servers_needed(0.1, 1.0, [1, 2, 5, 10]).tolist() == [10, 5, 2, 1]


def test_the_delay_of_a_restart_by_direct_count() -> None:
    p, t1, t2 = 0.6, 0.3, 1.0
    # Behind a pass that began with a forward .2; one first draft rejected more .1; two none.
    shares = np.array([p * (1 - p) ** m for m in range(200)])
    waits = np.array([(0.2, 0.1, 0.0)[m % 3] for m in range(200)])
    assert dsi.restart_delay(p, t1, t2) == pytest.approx(float(shares @ waits))
    assert dsi.restart_delay(p, 0.1, t2) == 0.0
    more = dsi.cycle_time(p, t1, t2, 2, ends_at_once=False) - dsi.cycle_time(p, t1, t2, 2)
    assert more == pytest.approx(p * dsi.restart_delay(p, t1, t2))


def test_dsi_refuses_what_has_no_answer() -> None:
    with pytest.raises(AssumptionError):
        dsi.cycle_time(1.0, 0.1, 1.0)
    with pytest.raises(AssumptionError):
        dsi.restart_delay(0.0, 0.1, 1.0)
    with pytest.raises(dsi.DrafterTooSlowError):
        dsi.cycle_time(0.5, 2.0, 1.0)
    assert dsi.expected_time_lookahead(0, 0.5, 0.1, 1.0, 2) == 0.0
