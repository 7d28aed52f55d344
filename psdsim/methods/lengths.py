"""Methods that adapt the draft length: SpecDec++, SmartSpec, PACER."""

from __future__ import annotations

from typing import Any, ClassVar

from psdsim.methods.base import Knob, Method, Parts
from psdsim.methods.confidence import CONFIDENCE_KNOBS, SeesConfidences
from psdsim.methods.drafters import assumed_knobs
from psdsim.scenario import Scenario
from psdsim.schedules import Schedule
from psdsim.schedules.smartspec import SmartSpec
from psdsim.schedules.stopping import StopByBlock, StopByThreshold
from psdsim.verdict import Classifier, Proposals


class SpecDecPlusPlus(SeesConfidences):
    """Serial SD whose requests stop drafting when a rejection has become likely."""

    name = "specdec++"
    paper = StopByThreshold.source
    summary = StopByThreshold.summary
    parts = Parts(schedule="sd", length="until a rejection is likely, k at most")
    unknown = (
        "the threshold in terms of the costs is not found: a knob. The prediction head is taken to "
        "cost nothing"
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("threshold", 0.5, 0, 1, "stop when P(a rejection among the drafts) exceeds it; 1 "
             "never stops", "assumed"),
        *CONFIDENCE_KNOBS,
    )  # fmt: skip
    schedule: ClassVar[type[Schedule]] = StopByThreshold

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Return the threshold."""
        return {"threshold": self["threshold"]}


class SmartSpecMethod(Method):
    """Serial SD with the k of most goodput for the present batch."""

    name = "smartspec"
    paper = SmartSpec.source
    summary = SmartSpec.summary
    parts = Parts(schedule="sd", length="0 to k, the most goodput at the present batch")
    unknown = (
        "how the running estimate of alpha forgets is not found: it fades exponentially towards "
        "its prior"
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("prior", 0.7, 0, 1, "alpha before any verdict", "public code (dsd.py)"),
        Knob("interval", 20, 1, 10000, "steps from one choice of k to the next",
             "public code (dsd.py)", whole=True),
        Knob("memory", 100, 1, 1e9, "steps after which a verdict's weight is 1/e", "assumed"),
    )  # fmt: skip
    schedule: ClassVar[type[Schedule]] = SmartSpec

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Return the knobs, and the CPU time of a step."""
        return {
            "prior": self["prior"],
            "interval": self.count("interval"),
            "memory": self["memory"],
            "overhead_s": scenario.step_time.step_overhead_s,
            "overhead_per_seq_s": scenario.step_time.step_overhead_per_seq_s,
        }

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Name the assumed knobs, and what it is told."""
        return [
            *assumed_knobs(self, ["memory"]),
            f"smartspec: k={k} is its largest draft length; its estimates of step times are exact "
            "(of a measured system they are a regression)",
        ]


class Pacer(Method):
    """Serial SD that drafts block by block while a pre-verifier says yes."""

    name = "pacer"
    paper = StopByBlock.source
    summary = StopByBlock.summary
    parts = Parts(schedule="sd", length="blocks until the pre-verifier says no, k tokens at most")
    unknown = (
        "block size, threshold, the layer's inputs, cost and error rates, and whether the failing "
        "block is sent to the target are not found: knobs"
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("block", 2, 1, 64, "tokens of a block", "assumed", whole=True),
        Knob("tpr", 0.9, 0, 1, "P(the pre-verifier says yes | the target would accept all so far)",
             "assumed", simulated=True),
        Knob("fpr", 0.2, 0, 1, "P(it says yes | the target would reject some)", "assumed",
             simulated=True),
        Knob("send", 1, 0, 1, "1: the failing block is verified, too; 0: it is dropped", "assumed",
             whole=True),
        Knob("check", 0.0, 0, 10, "cost of the pre-verifier's pass, in draft forwards a block",
             "assumed: free", simulated=True),
    )  # fmt: skip
    schedule: ClassVar[type[Schedule]] = StopByBlock

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Return the scenario whose draft forwards carry their share of the pre-verifier's cost."""
        if not self["check"] or scenario.step_time.draft is None:
            return scenario
        draft = scenario.to_dict()["step_time"]["draft"]
        # One check for each block of forwards; a last, shorter block pays less.
        factor = 1.0 + self["check"] / self.count("block")
        if draft["kind"] == "share":
            time = draft | {"share": draft["share"] * factor}
        else:
            time = {"kind": "share", "share": factor, "of": draft}
        changed = {"step_time.draft": time}
        if scenario.step_time.draft_prefill is None:
            changed["step_time.draft_prefill"] = draft  # prompts are read without it
        return scenario.set(changed)

    def proposals(self, scenario: Scenario, k: int) -> Proposals:
        """Return the pre-verifier in place of confidences."""
        return Proposals(classifier=Classifier(self.count("block"), self["tpr"], self["fpr"]))

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Return the block, and what becomes of one that fails."""
        return {"block": self.count("block"), "send_failed": bool(self["send"])}

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Name the assumed knobs, which are nearly all, and its limits."""
        return [
            *assumed_knobs(self, [knob.name for knob in self.knobs]),
            f"pacer: k={k} is its longest draft; between a perfect pre-verifier (tpr=1:fpr=0) and "
            "one that knows nothing (equal rates) lies every other",
        ]


FAMILY: tuple[type[Method], ...] = (SpecDecPlusPlus, SmartSpecMethod, Pacer)
