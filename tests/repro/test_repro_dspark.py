"""DSpark's figures: chain rule by hand, appendix A worked through apart, budgets that fall."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from repro import dspark, dspark_budget
from repro.claims import Claim


@pytest.fixture(scope="module")
def claims() -> dict[str, Claim]:
    found = dspark.claims(quick=True)
    assert len({c.id for c in found}) == len(found)
    return {c.id.removeprefix("dspark-"): c for c in found}


def test_what_is_asked_for_holds(claims: dict[str, Claim]) -> None:
    asked = [c for c in claims.values() if c.asked]
    assert len(asked) == 9 + 7 + 6 + 2
    missed = []
    for c in asked:
        # Small runs: within the tolerance, but for twice the half-width of the interval.
        slack = (c.interval[1] - c.interval[0]) / (c.theirs or 1.0) if c.interval else 0.0
        if abs(c.deviation or 0.0) > (c.tolerance or 0.0) + slack:
            missed.append(c.id)
    assert missed == []


def test_chain_rule_by_hand(claims: dict[str, Claim]) -> None:
    rates = (0.736, 0.739, 0.741, 0.745, 0.759, 0.767, 0.762)
    total, reach = 1.0, 1.0
    for rate in rates:
        reach *= rate
        total += reach
    chat = claims["length-chat-dspark"]
    assert f"{total:.4g}" in chat.reason
    assert chat.theirs == pytest.approx((3.64 + 3.54 + 3.29) / 3)
    assert chat.interval is not None
    assert chat.interval[0] - 0.05 < total < chat.interval[1] + 0.05
    assert abs(total / (chat.theirs or 0.0) - 1.0) < dspark.LENGTH


def test_simulated_length_is_the_chain_rule() -> None:
    value, (low, high) = dspark.simulated_length([0.5, 0.25], 64)
    error = (high - low) / 2 / 2.0
    assert abs(value - (1 + 0.5 + 0.125)) < 4.5 * error
    # One point more at the first position moves the mean by more than nine errors.
    more, _ = dspark.simulated_length([0.52, 0.25], 64)
    assert more - value > 4.5 * error


def test_wrong_rates_break_the_lengths(monkeypatch: Any) -> None:
    data = dspark.published()
    other = {
        **data,
        "figure2": {
            **data["figure2"],
            "math": {k: [r - 0.03 for r in v] for k, v in data["figure2"]["math"].items()},
        },
    }
    found = {c.id: c for c in dspark.lengths(other, 200)}
    assert not any(c.holds for i, c in found.items() if "math" in i)
    assert any(c.holds for i, c in found.items() if "chat" in i)


def test_appendix_a_worked_through_apart(claims: dict[str, Claim]) -> None:
    # Tokens a step for 0, 1, 2 drafts verified, the second sure: 1, 1.8, 2.6.
    assert claims["appendix-theta1"].ours == pytest.approx(1.8 * 0.5)
    assert 2.6 * 0.45 > 1.0 > 1.8 * 0.5
    assert claims["appendix-second"].ours == pytest.approx((1 / 0.45 - 1.8) / 0.8)
    # Draft token 1 (half of the time): verified, always kept. Token 2: the target's own sample.
    assert claims["appendix-without-stop"].ours == pytest.approx(0.5 + 0.5 * 0.7)
    assert claims["appendix-with-stop"].ours == pytest.approx(0.7)


def test_budget_falls_with_load_and_rises_with_the_knee() -> None:
    model = dspark_budget.Model(dspark.published(), 1)
    at = [model.at(n, 200.0, 2.0) for n in (5, 40, 200)]
    assert at[0] > at[1] > at[2]
    assert at[2] >= 1.0
    assert at[0] <= 6.0
    assert model.at(40, 400.0, 2.0) > at[1]


def test_confidences_are_calibrated() -> None:
    profiles = np.array([[0.9, 0.5], [0.6, 0.8]])
    u = np.concatenate([dspark_budget.uniforms(2000, 2, i) for i in range(10)])
    reach = dspark_budget.survivals(profiles, u, 3.0)
    for i in (0, 1):
        means = reach[i::2].mean(axis=0)
        assert means == pytest.approx(np.cumprod(profiles[i]), abs=0.01)


def test_the_solved_points_come_back_and_the_others_are_predicted(claims: dict[str, Claim]) -> None:
    for name, ends in (("flash", (20, 204)), ("pro", (5, 192))):
        for load in ends:
            assert abs(claims[f"budget-{name}-{load}"].deviation or 0.0) < 0.02
        inner = [
            c for i, c in claims.items()
            if i.startswith(f"budget-{name}-") and i.split("-")[-1].isdigit()
        ]  # fmt: skip
        assert np.median([abs(c.deviation or 0.0) for c in inner]) < dspark_budget.BUDGET
        assert all("knee" in c.solved for c in inner)


def test_the_method_has_about_the_same_budget(claims: dict[str, Claim]) -> None:
    for name in ("flash", "pro"):
        assert (claims[f"budget-{name}-played"].ours or 0.0) < 2 * dspark_budget.BUDGET


def test_what_the_figures_do_not_say_is_said(claims: dict[str, Claim]) -> None:
    assert claims["production"].ours is None
    assert claims["threshold-math"].verdict == "not"
    assert "lowest threshold" in claims["threshold-math"].reason
