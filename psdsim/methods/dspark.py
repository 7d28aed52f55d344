"""DSpark: a block drafter with a light sequential head, confidences, and a load-aware verifier."""

from __future__ import annotations

from typing import Any, ClassVar

from psdsim.methods.base import Knob, Method, Parts
from psdsim.methods.confidence import CONFIDENCE_KNOBS, SeesConfidences
from psdsim.methods.drafters import (
    DOMAINS,
    FIG2,
    profile,
    profile_knob,
    share_of_target,
    with_drafter,
)
from psdsim.scenario import Scenario
from psdsim.schedules import Schedule
from psdsim.schedules.dspark import DSpark


class DSparkMethod(SeesConfidences):
    """k drafts in one pass; the prefixes with the most tokens per second are verified."""

    name = "dspark"
    paper = DSpark.source
    summary = DSpark.summary
    parts = Parts(
        schedule="sd",
        drafter="5 layers on the target's features, one pass for k tokens, then a sequential head",
        selector="prefixes with the most expected tokens x steps/s of the engine",
    )
    unknown = (
        "the steps/s table, the GPU and the drafter's time are not found; the table is the "
        "scenario's step time of the target, the drafter a share of it. Whether the engine's speed "
        "includes drafting is not clear: knob whole_step"
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        profile_knob(DOMAINS, 2, FIG2),
        Knob("drafter", 0.14, 0, 10, "the drafting pass / a target pass over the same k rows",
             "assumed: 5 draft layers beside the 36 of Qwen3-4B and 8B"),
        Knob("head", 0.001, 0, 1, "a step of the sequential head / a target pass over the batch",
             "DSpark Fig. 4, read off the plot: .2 to 1.3 % of a round over 3 to 15 tokens"),
        Knob("lag", 0, 0, 16, "age in steps of the confidences that the budget comes from; "
             "production: 2", "arXiv 2607.05147", whole=True),
        Knob("whole_step", 1, 0, 1, "1: the engine's steps/s count overhead and drafting; 0: the "
             "target pass only", "assumed: arXiv 2607.05147 says engine steps/s", whole=True),
        *CONFIDENCE_KNOBS,
    )  # fmt: skip
    schedule: ClassVar[type[Schedule]] = DSpark
    own_drafter = True

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Return the scenario with DSpark's drafter on the target's GPUs."""
        place = self.count("profile")
        found = profile("dspark", place) if place else None
        time = share_of_target(scenario, self["drafter"])
        adapted = with_drafter(scenario, time, found, self.name)
        return adapted.set({"step_time.draft_start_s": k * self.head_s(scenario, k)})

    def head_s(self, scenario: Scenario, k: int) -> float:
        """Return seconds of a step of the sequential head, whatever the batch."""
        return self["head"] * _pass_s(scenario, k + 1)

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Return the lag, and what counts in the engine's speed."""
        fixed_s = 0.0
        if self["whole_step"]:
            times = scenario.step_time
            fixed_s = times.step_overhead_s + times.draft_start_s
            fixed_s += times.step_overhead_per_seq_s * scenario.engine.max_num_seqs
            fixed_s += self["drafter"] * _pass_s(scenario, k)
        return {"lag": self.count("lag"), "fixed_s": fixed_s}

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Name what is assumed of its drafter and its confidences."""
        head_ms = 1e3 * self.head_s(scenario, k)
        return [
            *super().notes(scenario, k),
            f"dspark: its head takes {head_ms:.3g} ms a drafted token, as at a full batch of "
            f"{scenario.engine.max_num_seqs}",
        ]


def _pass_s(scenario: Scenario, n_rows: int) -> float:
    """Return seconds of a target pass over a full batch with so many tokens each, empty cache."""
    target = scenario.timers()["target"]
    assert target is not None
    n_seqs = scenario.engine.max_num_seqs
    return target(n_seqs, n_seqs * max(n_rows, 1), 0)


FAMILY: tuple[type[Method], ...] = (DSparkMethod,)
