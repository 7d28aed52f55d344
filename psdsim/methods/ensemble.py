"""TABED: one small drafter reads several inputs at once, and its mixtures adapt to the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psdsim.acceptance import EnsembleAcceptance, alpha_from_acceptance_length
from psdsim.errors import InputError
from psdsim.methods.base import Knob, Method, Parts
from psdsim.methods.drafters import assumed_knobs, profile_knob
from psdsim.scenario import Scenario
from psdsim.schedules.tabed import EnsembleDrafting

FIRST_TURN = ((2.24, 1.175), (2.23, 2.05), (2.31, 2.03))
"""Tokens a round at k=5 of multimodal input, text input and their mixture: TABED, first turn.

In front, the average over its sets; behind, the mean of its two out-of-domain sets (PSV, VIST).
"""


class Tabed(Method):
    """TABED: n variants of the input in one batched forward, weights chosen from past verdicts."""

    name = "tabed"
    paper = "TABED (arXiv 2601.20357)"
    summary = (
        "a drafter reads several inputs in one batched forward; the best mixture so far drafts"
    )
    parts = Parts(
        schedule="serial",
        drafter="draft model, one forward a token over all variants of the input",
        length="k",
        selector="the variant or mixture with the most accepted drafts in the request's past",
    )
    unknown = (
        "GPU; how long stretches of text are that suit one input; the grid of weights is one "
        "mixture here; and only the verdict of the arm that drafted is heard of, where TABED "
        "knows how every weight would have fared"
    )
    schedule = EnsembleDrafting
    knobs = (
        Knob(
            "inputs", 2, 1, 16, "rows of every drafter forward", "multimodal and text input",
            whole=True,
        ),
        Knob(
            "arm", -1, -1, 63, "drafter that is always taken; -1: the leader so far", "assumed",
            whole=True,
        ),
        Knob("tries", 2, 1, 1000, "rounds of each arm before one leads", "assumed", whole=True),
        profile_knob(
            ("published",), 1,
            "tokens a round of TABED's table 1 and its out-of-domain sets at k=5, as rates",
        ),
        Knob("odd", 0.0, 0, 1, "share of text that is out of domain (profile 1)", "assumed"),
        Knob("run", 64, 1, 1e6, "tokens that a stretch of the rarer kind lasts", "assumed"),
    )  # fmt: skip

    def __init__(self, values: Mapping[str, str | float] | None = None) -> None:
        super().__init__(values)
        idle = sorted({"odd", "run"} & self.stated)
        if idle and not self["profile"]:
            raise InputError(
                f"method 'tabed' takes the scenario's acceptance and {idle[0]} has no effect",
                expected="profile=1",
                where="--methods",
            )

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Put the drafters' rates in."""
        if scenario.acceptance is None:
            return scenario
        if self["profile"]:
            rates = [[alpha_from_acceptance_length(x, 5) for x in row] for row in FIRST_TURN]
            model = {
                "kind": "ensemble",
                "rates": rates,
                "second_share": self["odd"],
                "mean_run": self["run"],
            }
            return scenario.set({"acceptance": model})
        self._drafters(scenario)
        return scenario

    def _drafters(self, scenario: Scenario) -> int:
        model = scenario.acceptance
        if not isinstance(model, EnsembleAcceptance):
            kind = getattr(model, "kind", "none")
            raise InputError(
                f"method 'tabed' needs a rate for each drafter, and acceptance is of kind {kind}",
                expected="acceptance of kind ensemble, or profile=1",
                where=f"{scenario.file}: acceptance.kind",
            )
        return model.n_variants

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Hand over inputs and arms."""
        arms, arm = self._drafters(scenario), self.count("arm")
        if arm >= arms:
            raise InputError(
                f"method 'tabed' has arm={arm}", expected=f"-1 to {arms - 1}", where="--methods"
            )
        return {
            "inputs": self.count("inputs"),
            "arms": arms,
            "arm": None if arm < 0 else arm,
            "tries": self.count("tries"),
        }

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Say whose rates they are and what is assumed of the text."""
        names = ("profile", "odd", "run") if self["profile"] else ()
        return assumed_knobs(self, names)


FAMILY: tuple[type[Method], ...] = (Tabed,)
"""Methods of this file, for the table."""
