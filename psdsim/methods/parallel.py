"""CARD and DSI: a drafter that never waits for a verdict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psdsim.errors import InputError
from psdsim.methods.base import Knob, Method, Parts
from psdsim.scenario import Scenario
from psdsim.schedules.card import Card
from psdsim.schedules.dsi import Dsi
from psdsim.verdict import Proposals
from psdsim.workload.lengths import EmpiricalLengths, LognormalLengths

_MOST_TARGETS = 64


def refuse_rounds(scenario: Scenario, name: str) -> None:
    """Refuse acceptance that speaks of places in a round: this method's drafts run on.

    Raises
    ------
    psdsim.errors.InputError
        If verdicts don't depend on the output position alone.
    """
    model = scenario.acceptance
    if model is not None and model.judged_by != "tape":
        raise InputError(
            f"{name} has no rounds of k drafts, and acceptance is by place in a round",
            expected="acceptance by output position: iid, mean_length, markov or beta",
            where="acceptance.kind",
        )


class CardMethod(Method):
    """A tree of drafts that grows beside every target pass; hits re-root it, misses clear it.

    Second choices are the target's token by a power law: of W candidates at a place none is,
    given that the first is not, with probability W^-decay. Fitted by us to the miss rates and
    accepted lengths that CARD's repository stores for 5 to 205 nodes a level (1B drafting for
    70B, 7 levels per exchange): GSM8K alpha 0.94, decay 0.41, branch 0.53; MT-bench 0.74, 0.29,
    0.57. The defaults lie between.
    """

    name = "card"
    paper = "CARD (arXiv 2508.04462)"
    summary = Card.summary
    parts = Parts(
        schedule="cache-parallel: k tree levels beside each target pass",
        drafter="draft model, one forward a level of a tree",
        length="whatever depth is known at the exchange",
        selector="the best path of the tree",
        verifier="exact match (greedy)",
    )
    unknown = (
        "no law of hits and no depth of a second choice's branch is published, nor batches: a "
        "power law and a share of the remaining depth are assumed, a batch exchanges all at once"
    )
    knobs = (
        Knob(
            "nodes", 20, 1, 512, "nodes of a tree level",
            "--nodes_per_layer of CARD's code: 20 default, 50 and 100 for 70B targets", True,
        ),
        Knob(
            "decay", 0.35, 0.0, 10.0, "d of P(not among W candidates | not the first) = W^-d",
            "fitted by us to the code's cache-size sweep: 0.41 GSM8K, 0.29 MT-bench",
        ),
        Knob(
            "branch", 0.55, 0.0, 1.0, "share of the remaining depth that a second choice has",
            "fitted by us to the code's cache-size sweep: 0.53 GSM8K, 0.57 MT-bench",
        ),
        Knob("depth", 50, 1, 64, "deepest tree, levels", "--max_depth of CARD's code: 50", True),
    )  # fmt: skip
    schedule = Card

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Leave the scenario as it is."""
        refuse_rounds(scenario, self.name)
        return scenario

    def proposals(self, scenario: Scenario, k: int) -> Proposals:
        """Return the shares of the second, third, ... choice under the power law."""
        d = self["decay"]
        shares = ((r - 1) ** -d - r**-d for r in range(2, self.count("nodes") + 1))
        return Proposals(sibling_shares=tuple(shares))

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Return the shape of the tree."""
        return {
            "width": self.count("nodes"),
            "branch": self["branch"],
            "max_depth": self.count("depth"),
        }

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Return what was not published."""
        out = [
            f"ASSUMED card: {knob.meaning}: {self[knob.name]:g} ({knob.source})"
            for knob in self.knobs
            if knob.name in {"decay", "branch"} and knob.name not in self.stated
        ]
        if scenario.engine.max_num_seqs > 1:
            out.append("ASSUMED card: a batch exchanges all at once; published for one request")
        return out


class DsiMethod(Method):
    """Speculation parallelism: verification tasks of k drafts on several copies of the target.

    The copies are as many as keep any task from waiting, ceil(target pass / (k draft
    forwards)), DSI's Eq. 1, at a full batch; the knob fixes another number.
    """

    name = "dsi"
    paper = "DSI (arXiv 2405.14105)"
    summary = Dsi.summary
    parts = Parts(
        schedule="speculation parallelism: a drafter, several target servers",
        length="k per verification task (lookahead)",
    )
    unknown = (
        "published for one request: a batch that advances in blocks of k drafts is assumed, in "
        "which a broken chain restarts at the next block"
    )
    knobs = (
        Knob(
            "targets", 0, 0, _MOST_TARGETS, "copies of the target; 0: as many as needed",
            "DSI, Eq. 1", True,
        ),
    )  # fmt: skip
    schedule = Dsi

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Leave the scenario as it is, if every copy of the target has GPUs of its own."""
        refuse_rounds(scenario, self.name)
        draft = scenario.draft
        if draft is not None and (draft.shared or draft.slow_downs != (1.0, 1.0)):
            raise InputError(
                "dsi runs copies of the target and the draft at once, each on devices of its own",
                expected="shared: false and slow_down: 1",
                where="draft",
            )
        return scenario

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Return the copies of the target."""
        return {"n_targets": self._targets(scenario, k)}

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Return what was not stated."""
        out = []
        if not self.count("targets") and scenario.draft is not None:
            n = self._targets(scenario, k)
            out.append(f"ASSUMED dsi: {n} copies of the target, ceil(t2 / (k t1)) (DSI, Eq. 1)")
        if scenario.engine.max_num_seqs > 1:
            out.append("ASSUMED dsi: a batch advances by blocks of k; published for one request")
        return out

    def _targets(self, scenario: Scenario, k: int) -> int:
        if self.count("targets") or k < 1:
            return self.count("targets") or 1
        timers = scenario.timers()
        target, draft = timers["target"], timers["draft"]
        if target is None or draft is None:
            return 1
        m = scenario.engine.max_num_seqs
        n_kv = round(m * _mean_context(scenario))
        block_s = k * draft(m, m, n_kv)
        if not block_s > 0.0:
            raise InputError(
                "drafts take no time, so that no number of targets keeps up with them",
                expected="step_time.draft above 0 s, or dsi:targets=N",
                where="step_time.draft",
            )
        # The slack keeps a quotient that is whole but for rounding from being one more.
        n = max(1, math.ceil(target(m, m * k, n_kv) / block_s * (1.0 - 1e-12)))
        if n > _MOST_TARGETS:
            raise InputError(
                f"dsi needs {n} copies of the target at k={k}",
                expected=f"a larger k, or dsi:targets=N up to {_MOST_TARGETS}",
                where="k",
            )
        return n


def _mean_context(scenario: Scenario) -> float:
    """Return the tokens that a request has in the cache half-way; 0 where only a trace knows."""
    work = scenario.workload
    if work.kind == "trace":
        return 0.0
    return _mean(work.prompt_tokens) + _mean(work.output_tokens) / 2


def _mean(length: int | LognormalLengths | EmpiricalLengths) -> float:
    if isinstance(length, int):
        return float(length)
    if isinstance(length, LognormalLengths):
        return float(length.mean)
    return float(np.average(length.values, weights=length.weights))


FAMILY: tuple[type[Method], ...] = (CardMethod, DsiMethod)
