"""Drafters that fill a block at once: diffusion models, adapters, windows over reused logits."""

from __future__ import annotations

from typing import Any, ClassVar

from psdsim.acceptance import AcceptanceModel, MeanLengthAcceptance, relax
from psdsim.methods.base import Knob, Method, Parts
from psdsim.methods.drafters import (
    DOMAINS,
    FIG2,
    assumed_knobs,
    profile,
    profile_knob,
    share_of_target,
    with_drafter,
)
from psdsim.scenario import Scenario
from psdsim.schedules import Schedule
from psdsim.schedules.block import BlockDecoding, ControlledBlock
from psdsim.schedules.poe import SlidingWindow
from psdsim.verdict import Proposals


class _AtOnce(Method):
    """A drafter whose forward costs a stated share of a target pass, whatever k is."""

    own_drafter = True
    schedule: ClassVar[type[Schedule]] = BlockDecoding
    assumed: ClassVar[tuple[str, ...]] = ("share", "profile")
    """Knobs that need an ASSUMED line while nobody states them."""

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Put the drafter's share of a target pass and its acceptance in."""
        time = share_of_target(scenario, self._share())
        acceptance = self._published() if self["profile"] else scenario.acceptance
        if acceptance is not None:
            acceptance = self._verified(acceptance)
        return with_drafter(scenario, time, acceptance, self.name)

    def _share(self) -> float:
        return self["share"]

    def _published(self) -> AcceptanceModel:
        raise NotImplementedError

    def _verified(self, acceptance: AcceptanceModel) -> AcceptanceModel:
        return acceptance

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Say what the drafter costs and how it fares."""
        return assumed_knobs(self, self.assumed)


class PeftBd(_AtOnce):
    """PEFT-BD: an adapter turns the target itself into a block-diffusion drafter."""

    name = "peft-bd"
    paper = "PEFT-BD (arXiv 2607.12422)"
    summary = "the target with an adapter drafts a block in one full pass, then verifies it"
    parts = Parts(
        schedule="serial", drafter="the target with an adapter, one full pass a block", length="k"
    )
    unknown = (
        "GPU, speed of plain decoding, acceptance by position; whether the 2.881 accepted tokens "
        "a round count the corrected one (taken: they do not)"
    )
    knobs = (
        Knob(
            "share", 0.994, 0, 10, "drafting pass / target pass over the same rows",
            "50.3 ms / 50.6 ms, third-party note on PEFT-BD: weak evidence",
        ),
        profile_knob(
            ("published",), 1,
            "2.881 accepted drafts a round of 16, third-party note on PEFT-BD: weak evidence",
        ),
    )  # fmt: skip

    def _published(self) -> AcceptanceModel:
        return MeanLengthAcceptance(length=2.881, k=16, includes_bonus=False)


class SpecDiff2(_AtOnce):
    """SpecDiff-2: a diffusion drafter, several joint drafts from one pass, the best one kept."""

    name = "specdiff2"
    paper = "SpecDiff-2 (arXiv 2511.00606)"
    summary = "a diffusion model drafts a block at once; the best of several drafts of it is kept"
    parts = Parts(
        schedule="serial",
        drafter="diffusion model on the target's GPUs, one pass a denoise step",
        length="k",
        selector="the longest accepted of the candidates",
    )
    unknown = (
        "acceptance by position and how alike the candidates are; the longest accepted candidate "
        "is the most that selection by expected length can reach"
    )
    knobs = (
        Knob(
            "share", 0.898, 0, 10, "denoise step / target pass over the same rows",
            "27.3 ms / 30.4 ms, the repository's code_stats.json (DiffuCoder-7B, Qwen2.5-7B)",
        ),
        Knob(
            "other", 1.27, 0, 10, "accepting and updating caches / a target pass, once a round",
            "(8.6 ms + 30.0 ms) / 30.4 ms, as share",
        ),
        Knob("steps", 1, 1, 64, "denoise steps", "SpecDiff-2's setting", whole=True),
        Knob(
            "candidates", 8, 1, 64, "joint drafts from one pass",
            "8 in the paper's study by a third-party note, 16 in code_stats.json", whole=True,
        ),
        Knob(
            "correlation", 0.96, 0, 1,
            "P(a further draft fares at a position as the first does), beyond chance",
            "not found: assumed so that 8 candidates give some 15 % more than one, as self-"
            "selection does in a third-party note",
        ),
        profile_knob(DOMAINS, 2, f"stand-in, not SpecDiff-2's own: {FIG2}, DFlash"),
    )  # fmt: skip
    assumed = ("share", "other", "candidates", "correlation", "profile")

    def _share(self) -> float:
        # What comes once a round is spread over its forwards.
        return self["share"] + self["other"] / self["steps"]

    def _published(self) -> AcceptanceModel:
        return profile("dflash", self.count("profile"))

    def proposals(self, scenario: Scenario, k: int) -> Proposals:
        """Make the candidates as alike as stated."""
        return Proposals(correlation=self["correlation"])

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Hand over denoise steps and candidates."""
        return {"passes": self.count("steps"), "candidates": self.count("candidates")}


class DiffuSpec(_AtOnce):
    """DiffuSpec: a pretrained diffusion model in one pass, with a controller for the length."""

    name = "diffuspec"
    paper = "DiffuSpec (arXiv 2510.02358)"
    summary = "a diffusion model drafts in one pass; moving averages set each request's next length"
    parts = Parts(
        schedule="serial",
        drafter="diffusion model on the target's GPUs, one pass and a path search",
        length="clip(mean generated + step if as much was accepted, k_min, k_max)",
    )
    unknown = (
        "how many tokens are generated before the end-of-sequence token: taken as the k asked for, "
        "so that the length only moves by what is accepted; the units of the published times"
    )
    schedule = ControlledBlock
    knobs = (
        Knob(
            "share", 0.765, 0, 10, "pass and path search / target pass over the same rows",
            "(1.6 + 0.03) / 2.13, labels of DiffuSpec's Fig. 6",
        ),
        Knob("k_min", 20, 1, 64, "shortest draft, tokens", "DiffuSpec's setting", whole=True),
        Knob("k_max", 30, 1, 64, "longest draft, tokens", "DiffuSpec's setting", whole=True),
        Knob(
            "step", 10, 0, 64, "tokens added where all was accepted", "DiffuSpec's setting",
            whole=True,
        ),
        Knob("memory", 0.5, 0.001, 1, "weight of the newest round", "DiffuSpec's setting"),
        profile_knob(
            ("published",), 1,
            "6.99 tokens a pass on Spec-Bench at k of 20 to 30, solved at 30 with one rate",
        ),
    )  # fmt: skip

    def _published(self) -> AcceptanceModel:
        return MeanLengthAcceptance(length=6.99, k=30, includes_bonus=True)

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Hand the controller's settings over."""
        names = ("k_min", "k_max", "step")
        return {name: self.count(name) for name in names} | {"memory": self["memory"]}


class PoeBridge(_AtOnce):
    """PoE-Bridge: a diffusion model's logits, verified window by window against both models."""

    name = "poe-bridge"
    paper = "PoE-Bridge (arXiv 2606.08048)"
    summary = "one diffusion pass, then windows of its logits are verified while all is accepted"
    parts = Parts(
        schedule="serial; the drafter is skipped while windows are accepted whole",
        drafter="diffusion model on the target's GPUs, one pass over all masks",
        length="k, the window",
        selector="one of the candidates, chosen whatever its accepted length",
        verifier="product of both models: between them",
    )
    lossless = False
    unknown = (
        "acceptance as a function of the weight: that of a mixture, 1 - (1 - w)(1 - alpha), is "
        "taken for the product of experts; it overstates large weights (w = 0.9: 24 accepted "
        "drafts a window of 32, against 15.6 in a third-party note). The published quality falls "
        "with w (81 % of GSM8K right at w = 0, 30 % at 0.9, same note)"
    )
    schedule = SlidingWindow
    knobs = (
        Knob(
            "share", 3.75, 0, 100, "diffusion pass / plain target pass",
            "2 tokens a pass at 26.25 tok/s against 49.26 tok/s, third-party note: weak evidence",
        ),
        Knob("w", 0.3, 0, 1, "weight of the drafter in the verifier", "the repository's setting"),
        Knob(
            "candidates", 4, 1, 64, "windows sampled from the same logits",
            "the repository's setting", whole=True,
        ),
        profile_knob(
            ("published",), 1,
            "4.91 accepted drafts a window of 32 at w = 0, third-party note: weak evidence; "
            "solved as one rate",
        ),
    )  # fmt: skip

    def _published(self) -> AcceptanceModel:
        return MeanLengthAcceptance(length=4.91, k=32, includes_bonus=False)

    def _verified(self, acceptance: AcceptanceModel) -> AcceptanceModel:
        return relax(acceptance, 1.0 - self["w"])

    def proposals(self, scenario: Scenario, k: int) -> Proposals:
        """Choose a candidate by its weight, which says nothing of its accepted length."""
        return Proposals(select="first")

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Hand the candidates over."""
        return {"candidates": self.count("candidates")}

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Say that the output is neither model's."""
        return [
            *super().notes(scenario, k),
            "ASSUMED poe-bridge: a rejection probability falls as (1 - w), as for a mixture",
            f"poe-bridge is lossy: its output lies between the two models (weight {self['w']:g} on "
            "the drafter)",
        ]


FAMILY: tuple[type[Method], ...] = (PeftBd, SpecDiff2, DiffuSpec, PoeBridge)
"""Methods of this file, for the table."""
