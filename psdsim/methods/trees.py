"""Heads and layers on the target that draft trees or chains, and drafts looked up in the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psdsim.acceptance import AcceptanceModel, IidAcceptance, PositionAcceptance
from psdsim.commands import MAX_K
from psdsim.errors import InputError
from psdsim.methods.base import Knob, Method, Parts
from psdsim.methods.drafters import (
    DOMAINS,
    FIG2,
    assumed_knobs,
    head_share,
    layer_share,
    profile,
    profile_knob,
    share_of_target,
    with_drafter,
)
from psdsim.methods.tree_shapes import grow, rank_rates, sibling_shares, tree_gain
from psdsim.scenario import Scenario
from psdsim.schedules.tree import TreeDecoding
from psdsim.verdict import Proposals

_SPEC_BENCH = "as measured by DiffuSpec (arXiv 2510.02358) on Spec-Bench"


class _OnHeads(Method):
    """A drafter on the target's own states: trees of a stated size, sized by load if wanted."""

    own_drafter = True
    schedule = TreeDecoding

    def __init__(self, values: Mapping[str, str | float] | None = None) -> None:
        super().__init__(values)
        if not self.values["nodes"]:
            idle = sorted({"adaptive", "branch", "sibling"} & self.stated)
            if idle:
                raise InputError(
                    f"method '{self.name}' drafts a chain and {idle[0]} has no effect",
                    expected="nodes above 0",
                    where="--methods",
                )
            # A chain that costs a forward a token is serial SD.
            self.closed_form = "sd"  # type: ignore[misc]

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Put the drafter's share of a target pass and its acceptance in."""
        time = share_of_target(scenario, self._share(scenario))
        return with_drafter(scenario, time, self._published(), self.name)

    def _share(self, scenario: Scenario) -> float:
        raise NotImplementedError

    def _published(self) -> AcceptanceModel | None:
        raise NotImplementedError

    def proposals(self, scenario: Scenario, k: int) -> Proposals:
        """Give a tree its siblings."""
        return Proposals(sibling_shares=self._siblings())

    def _siblings(self) -> tuple[float, ...]:
        return sibling_shares(self["sibling"], self.count("branch")) if self["nodes"] else ()

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Grow the trees: of the stated size, and by load of none, a quarter and half of it."""
        n_nodes = self.count("nodes")
        if not n_nodes or not k:
            return {}
        assert scenario.acceptance is not None
        table = rank_rates(scenario.acceptance.conditional_rates(k), self._siblings())
        if not self["adaptive"]:
            return {"trees": (grow(table, n_nodes),)}
        trees = [grow(table, n) for n in sorted({0, n_nodes // 4, n_nodes // 2, n_nodes})]
        return {"trees": trees, "gains": [tree_gain(tree, table) for tree in trees]}

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Say what the drafter costs, how it fares and, of a tree, what siblings are worth."""
        share = self._share(scenario)
        shape = ["sibling"] if self["nodes"] else []
        knobs = [knob.name for knob in self.knobs if knob.name in ("profile", "alpha", "decay")]
        return [
            f"ASSUMED {self.name}: a forward of the drafter takes {share:.4f} of a target pass "
            f"over the same rows ({self._cost_reason})",
            *assumed_knobs(self, knobs + shape),
            *([f"ASSUMED {self.name}: trees are shaped for these mean rates"] if shape else []),
        ]

    _cost_reason = ""


_NODES = Knob("nodes", 0, 0, 256, "nodes of the tree; 0: a chain of k", "assumed", whole=True)
_TREE_KNOBS = (
    _NODES,
    Knob(
        "branch", 4, 2, 16, "choices at a node, the first included", "assumed", whole=True
    ),
    Knob(
        "sibling", 0.4, 0, 1,
        "share of the second choice among tokens that are not the first, and so on for later ones",
        "assumed: no source gives ranks",
    ),
    Knob(
        "adaptive", 0, 0, 1,
        "1: every round takes nodes, half, a quarter or none of them, by the load", "assumed",
        whole=True,
    ),
)  # fmt: skip


class Eagle(_OnHeads):
    """EAGLE: one decoder layer on the target's features drafts a chain or a tree."""

    name = "eagle"
    paper = "EAGLE, EAGLE-2, EAGLE-3 (arXiv 2401.15077, 2406.16858, 2503.01840)"
    summary = "one layer on the target's features drafts a chain or a tree, level by level"
    parts = Parts(
        schedule="serial",
        drafter="a decoder layer and the output projection of the target, one forward a level",
        length="k levels; nodes; by load if adaptive",
    )
    unknown = (
        "what siblings are worth (ranks of the target's token) and the drafter's time on a GPU "
        "are not in what was read; the share of a target pass counts weights"
    )
    knobs = (profile_knob(DOMAINS, 3, FIG2 + ", Eagle3"), *_TREE_KNOBS)
    _cost_reason = "one layer and the output projection, by weights"

    def _share(self, scenario: Scenario) -> float:
        shape = scenario.target_placement.shape
        assert shape is not None
        return layer_share(shape)

    def _published(self) -> AcceptanceModel | None:
        place = self.count("profile")
        return profile("eagle3", place) if place else None


class MedusaLike(_OnHeads):
    """Medusa and its like: k heads on the last state of the target, each for one place ahead."""

    name = "medusa-like"
    paper = "Medusa (arXiv 2401.10774); Hydra"
    summary = "k heads on the target's last state draft k places; the target verifies their tree"
    parts = Parts(
        schedule="serial",
        drafter="k heads on the target, each a residual block and an output projection",
        length="k heads; nodes; by load if adaptive",
    )
    unknown = (
        "acceptance by place, ranks and the heads' time are not in what was read; the rate is "
        "solved from the mean of a tree as if it were a chain, so a tree's gain is in it already"
    )
    knobs = (
        profile_knob(("published",), 1, f"Medusa's mean accepted tokens, {_SPEC_BENCH}"),
        Knob(
            "alpha", 0.585, 0, 1, "acceptance of the first head",
            f"2.31 tokens a pass on Vicuna-33B {_SPEC_BENCH}, solved as a chain of 5",
        ),
        Knob("decay", 1.0, 0, 1, "factor from head to head", "not found: no decay assumed"),
        *_TREE_KNOBS,
    )  # fmt: skip
    _cost_reason = "a residual block and an output projection, by weights"

    def __init__(self, values: Mapping[str, str | float] | None = None) -> None:
        super().__init__(values)
        _no_idle_rates(self, ("alpha", "decay"))

    def _share(self, scenario: Scenario) -> float:
        shape = scenario.target_placement.shape
        assert shape is not None
        return head_share(shape)

    def _published(self) -> AcceptanceModel | None:
        if not self["profile"]:
            return None
        return decaying(self["alpha"], self["decay"])


class NGram(Method):
    """Prompt lookup: the continuation of an earlier match in the text is the draft."""

    name = "ngram"
    paper = "prompt lookup decoding (PLD); vLLM's ngram speculator"
    summary = "drafts are copied from an earlier match of the last tokens in the text"
    parts = Parts(schedule="serial", drafter="text lookup, no model", length="k")
    unknown = (
        "how often a match is found: a round without one counts as a first token rejected, with "
        "its k rows fed all the same; the draft length behind the published mean"
    )
    own_drafter = True
    schedule = TreeDecoding
    closed_form = "sd"
    knobs = (
        profile_knob(("published",), 1, f"PLD's mean accepted tokens, {_SPEC_BENCH}"),
        Knob(
            "alpha", 0.526, 0, 1, "acceptance of a drafted token",
            f"2.11 tokens a pass {_SPEC_BENCH}, solved for unlimited k: the least it can be",
        ),
        Knob("lookup_ms", 0.0, 0, 1000, "time of a round's look-ups, ms", "assumed"),
    )  # fmt: skip

    def __init__(self, values: Mapping[str, str | float] | None = None) -> None:
        super().__init__(values)
        _no_idle_rates(self, ("alpha",))

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Put the look-up's time and acceptance in."""
        # The schedule asks for k forwards; together they are one look-up.
        time = {"kind": "constant", "time_s": self["lookup_ms"] * 1e-3 / max(k, 1)}
        published = decaying(self["alpha"], 1.0) if self["profile"] else None
        return with_drafter(scenario, time, published, self.name)

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Say what is assumed of matches and their time."""
        return assumed_knobs(self, ("profile", "alpha", "lookup_ms"))


def decaying(alpha: float, decay: float) -> AcceptanceModel:
    """Return rates alpha, alpha decay, alpha decay^2, ... up to the longest draft there can be."""
    if decay == 1.0:
        return IidAcceptance(alpha=alpha)
    rates = tuple(alpha * decay**i for i in range(MAX_K))
    return PositionAcceptance(rates=rates, convention="conditional", extend="last")


def _no_idle_rates(method: Method, names: tuple[str, ...]) -> None:
    """Refuse a stated rate where the scenario's acceptance is taken."""
    idle = [name for name in names if name in method.stated]
    if idle and not method["profile"]:
        raise InputError(
            f"method '{method.name}' takes the scenario's acceptance and {idle[0]} has no effect",
            expected="profile=1",
            where="--methods",
        )


FAMILY: tuple[type[Method], ...] = (Eagle, MedusaLike, NGram)
"""Methods of this file, for the table."""
