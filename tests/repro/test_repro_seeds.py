"""Figures of the other systems: accounts by hand, what is asked for, what is broken on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from repro import card, report, seeds, seeds_blocks
from repro.claims import Claim
from repro.seeds_inputs import published


@pytest.fixture(scope="module")
def claims() -> dict[str, Claim]:
    found = [*seeds.claims(quick=True), *card.claims(quick=True)]
    assert len({c.id for c in found}) == len(found)
    return {c.id: c for c in found}


def test_what_is_asked_for_holds(claims: dict[str, Claim]) -> None:
    asked = [c for c in claims.values() if c.asked]
    assert len(asked) == 17
    assert [c.id for c in asked if not c.holds] == []


def test_every_system_is_in_the_report(claims: dict[str, Claim]) -> None:
    assert {c.method for c in claims.values()} == {*seeds.SYSTEMS, "card"}
    assert set(seeds.SYSTEMS) <= set(report.METHODS)
    assert set(report.TITLES) == set(report.METHODS)


def test_weak_sources_are_shown(claims: dict[str, Claim]) -> None:
    for name in ("peft-bd-tok-s-accepted", "poe-bridge-step", "diversed-linear-3"):
        assert claims[name].weak
    assert not claims["diffuspec-ratio"].weak


def test_accounts_by_hand(claims: dict[str, Claim]) -> None:
    assert claims["peft-bd-tok-s-accepted"].ours == pytest.approx(2881 / 100.9)
    assert claims["specdiff-2-tok-s"].ours == pytest.approx(3064 / 448 / 0.0963)
    ratio = 6.99 / 6.18 * (4.1 + 2.02) / (1.6 + 2.13 + 0.03)
    assert claims["diffuspec-ratio"].ours == pytest.approx(ratio)
    assert claims["diffuspec-ablation-search"].ours == pytest.approx(2.69 * 6.95 / 6.05)
    assert claims["diversed-linear-3"].ours == pytest.approx(1 - 0.5 * 0.244)
    assert claims["poe-bridge-step"].ours == pytest.approx(15.61 * 56.55 / 4.91)


def test_more_accepted_tokens_lose(claims: dict[str, Claim]) -> None:
    loses = claims["peft-bd-loses"]
    assert loses.verdict == "consistent"
    assert "FastMTP's drafting costs nothing" in loses.assumed
    row = published()["peft-bd"]
    # With a drafter twice as cheap as a pass it wouldn't lose: the claim can fail.
    assert (row["accepted"] + 1) / 1.5 > row["fast_mtp"]["accepted"] + 1


@pytest.mark.parametrize(
    "name, claim, path, value",
    [
        ("diffuspec", "diffuspec-ratio", ("parts", "own", "draft"), 4.1),
        ("peft-bd", "peft-bd-loses", ("draft_ms",), 10.0),
        ("specdiff-2", "specdiff-2-tok-s", ("step_ms", "update"), 0.0),
    ],
)
def test_a_wrong_published_figure_is_noticed(
    monkeypatch: Any, name: str, claim: str, path: tuple[str, ...], value: float
) -> None:
    def changed(row: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
        inner = value if len(keys) == 1 else changed(row[keys[0]], keys[1:])
        return {**row, keys[0]: inner}

    data = published()
    wrong = {**data, name: changed(data[name], path)}
    monkeypatch.setattr(seeds_blocks, "published", lambda: wrong)
    found = {c.id: c for c in seeds.SYSTEMS[name](True)}
    assert not found[claim].holds


def test_a_law_that_is_not_linear_is_noticed(monkeypatch: Any) -> None:
    monkeypatch.setattr(seeds, "relaxed_alpha", lambda a, w: 1.0 - w**2 * (1.0 - a))
    assert not any(c.holds for c in seeds.diversed(True) if "linear" in c.id)


def test_tabed_between_best_variant_and_more(claims: dict[str, Claim]) -> None:
    assert claims["tabed-best-first"].deviation == pytest.approx(2.24 / 2.31 - 1)
    assert "alpha 0.584" in claims["tabed-best-first"].reason


# --- CARD -------------------------------------------------------------------------------------


def test_card_chain_is_that_of_a_simulation_by_hand() -> None:
    found = card.Fit(0.85, 0.5, 1.0)
    width, levels, deepest = 25, 7, 50
    hit = 1.0 - width**-0.5
    rng = np.random.default_rng(3)
    depth, accepted, misses, n = 0, 0, 0, 60_000
    for _ in range(n):
        run = min(int(rng.geometric(0.15)) - 1, depth)
        grown = min(levels, deepest - depth)
        first = run == depth and rng.random() < 0.85
        kept = first or rng.random() < hit
        accepted += run
        misses += not kept
        depth = depth + grown - run - 1 if kept else 0
    steady = found.at(width)
    assert accepted / n == pytest.approx(steady.tokens_per_period - 1.0, rel=0.02)
    assert misses / n == pytest.approx(steady.miss_rate, rel=0.06)


def test_card_ends_are_fitted_and_the_middle_is_not_seen(monkeypatch: Any) -> None:
    data = published()
    own = card.fitted("mt-bench")
    spoiled = {
        **data["card"]["sets"]["mt-bench"],
        "accepted": [1.40, *[9.0] * 9, 1.91],
        "miss": [0.326, *[0.9] * 9, 0.166],
    }
    sets = {**data["card"]["sets"], "mt-bench": spoiled}
    monkeypatch.setattr(card, "published", lambda: {**data, "card": {**data["card"], "sets": sets}})
    assert card.fitted.__wrapped__("mt-bench") == own
    for width, accepted, miss in ((5, 1.40, 0.326), (205, 1.91, 0.166)):
        assert own.at(width).tokens_per_period - 1 == pytest.approx(accepted, rel=0.07)
        assert own.at(width).miss_rate == pytest.approx(miss, rel=0.2)


def test_card_modes_differ(claims: dict[str, Claim]) -> None:
    assert (claims["card-gsm8k-mode"].ours, claims["card-mt-bench-mode"].ours) == (6, 0)
    assert all("alpha" in c.solved for i, c in claims.items() if i.startswith("card-gsm8k-m"))


def test_card_as_played_is_the_chain(claims: dict[str, Claim]) -> None:
    for name in ("gsm8k", "mt-bench"):
        played = claims[f"card-{name}-simulated-105"]
        assert played.interval is not None
        half = (played.interval[1] - played.interval[0]) / 2
        expected = card.fitted(name).at(105).tokens_per_period - 1.0
        # A request starts with an empty tree, which costs its first pass.
        assert abs((played.ours or 0.0) - expected) < 2.3 * half + 0.02 * expected
