"""Other verifiers and better-trained drafters: what-ifs on acceptance at (nearly) the same cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from scipy.optimize import brentq

from psdsim.acceptance import (
    AcceptanceModel,
    IidAcceptance,
    MeanLengthAcceptance,
    alpha_from_acceptance_length,
    relax,
)
from psdsim.acceptance.relaxed import DrawnPer
from psdsim.errors import InputError
from psdsim.methods.base import Knob, Method, Parts
from psdsim.methods.drafters import assumed_knobs
from psdsim.scenario import Scenario
from psdsim.schedules.reflective import ReflectiveDecoding
from psdsim.schedules.serial import SpeculativeDecoding


def equivalent_alpha(model: AcceptanceModel, k: int) -> float:
    """Return the rate of the i.i.d. model with the same acceptance length at k.

    Examples
    --------
    >>> from psdsim.acceptance import IidAcceptance
    >>> round(equivalent_alpha(IidAcceptance(alpha=0.7), 4), 12)
    0.7
    """
    return alpha_from_acceptance_length(model.acceptance_length(k), k)


def gained(model: AcceptanceModel, gain: float, k: int) -> AcceptanceModel:
    """Return the model with its equivalent alpha raised by `gain`, at most to 1.

    Every rate loses the same share of its rejections (`relax`), the share that gives this gain;
    of an i.i.d. model that is alpha + gain.

    Parameters
    ----------
    model
        How drafts fare now.
    gain
        Of alpha, in [0, 1].
    k
        Drafted tokens per round, >= 1: where the equivalent alpha is taken.

    Examples
    --------
    >>> from psdsim.acceptance import IidAcceptance
    >>> round(gained(IidAcceptance(alpha=0.7), 0.06, 4).alpha, 12)
    0.76
    """
    if isinstance(model, IidAcceptance | MeanLengthAcceptance):
        return IidAcceptance(alpha=min(model.alpha + gain, 1.0))
    wanted = equivalent_alpha(model, k) + gain
    if not gain:
        return model
    if wanted >= 1.0:
        return relax(model, 0.0)
    return relax(model, brentq(lambda w: equivalent_alpha(relax(model, w), k) - wanted, 0.0, 1.0))


def _with_acceptance(scenario: Scenario, acceptance: AcceptanceModel) -> Scenario:
    return scenario.set({"acceptance": acceptance.model_dump(mode="json", exclude_none=True)})


class _OnAlpha(Method):
    """Plain serial SD under another acceptance."""

    schedule = SpeculativeDecoding
    closed_form: ClassVar[str | None] = "sd"

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Change how drafts fare, where anything is drafted."""
        if scenario.acceptance is None or not k:
            return scenario
        return _with_acceptance(scenario, self._changed(scenario.acceptance, k))

    def _changed(self, acceptance: AcceptanceModel, k: int) -> AcceptanceModel:
        raise NotImplementedError


class DistillSpec(_OnAlpha):
    """DistillSpec: a draft model distilled from the target's own answers, at the same cost."""

    name = "distillspec"
    paper = "DistillSpec (arXiv 2310.08461)"
    summary = "what if the draft model were distilled: more accepted at the same cost"
    parts = Parts(schedule="serial", drafter="distilled draft model, one forward a token")
    unknown = "draft cost and hardware of the paper; what a gain costs to train"
    stacks = True
    knobs = (
        Knob(
            "gain", 0.0441, 0, 1, "added to alpha (where rates differ, to their equivalent)",
            "49.52 % to 53.93 % of tokens accepted, Qwen3-0.6B for 4B on GSM8K, unofficial "
            "student project",
        ),
    )  # fmt: skip

    def _changed(self, acceptance: AcceptanceModel, k: int) -> AcceptanceModel:
        return gained(acceptance, self["gain"], k)

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Say whose gain it is, and where it hits the ceiling."""
        return assumed_knobs(self, ("gain",))


class Diversed(_OnAlpha):
    """DIVERSED: the verifier follows a mixture of target and draft, static or drawn."""

    name = "diversed"
    paper = "DIVERSED (arXiv 2604.07622)"
    summary = "the verifier follows a mixture of target and draft, so that more is accepted"
    parts = Parts(schedule="serial", verifier="mixture w target + (1 - w) draft: relaxed")
    lossless = False
    unknown = (
        "speed and GPU of the paper; how learned weights hang together with acceptance (drawn "
        "independently here); quality for a task can't be told from the weight"
    )
    stacks = True
    knobs = (
        Knob(
            "weight", 0.6, 0, 1, "w, weight of the target; 1 is lossless",
            "assumed: target_w_draft .6 in the repository's training settings",
        ),
        Knob(
            "concentration", 0, 0, 1e6,
            "0: one weight for all; above: weights ~ Beta of this a + b around it", "assumed",
        ),
        Knob(
            "per_position", 0, 0, 1, "a drawn weight is of 0 a request, 1 a position", "assumed",
            whole=True,
        ),
    )  # fmt: skip

    def __init__(self, values: Mapping[str, str | float] | None = None) -> None:
        super().__init__(values)
        if not self["concentration"] and self["per_position"]:
            raise InputError(
                "method 'diversed' draws no weights and per_position has no effect",
                expected="concentration above 0",
                where="--methods",
            )
        if self["concentration"] and not 0.0 < self["weight"] < 1.0:
            raise InputError(
                f"method 'diversed' draws weights around {self['weight']:g}",
                expected="a weight strictly between 0 and 1, or concentration=0",
                where="--methods",
            )

    def _changed(self, acceptance: AcceptanceModel, k: int) -> AcceptanceModel:
        if not self["concentration"]:
            return relax(acceptance, self["weight"])
        per: DrawnPer = "position" if self["per_position"] else "request"
        return relax(acceptance, self["weight"], concentration=self["concentration"], drawn_per=per)

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Say how far the output is from the target's law."""
        lines = assumed_knobs(self, ("weight",))
        if scenario.acceptance is not None and k:
            alpha = equivalent_alpha(scenario.acceptance, k)
            bias = (1.0 - self["weight"]) * (1.0 - alpha)
            lines.append(
                "diversed is lossy: a token's law is (1 - w)(1 - alpha) = "
                f"{bias:.3g} away from the target's (total variation, alpha {alpha:.3g})"
            )
        return lines


class Reflective(_OnAlpha):
    """Reflective verification: the target reads the draft twice in one pass and fuses its views."""

    name = "reflective"
    paper = "Reflective Verification (arXiv 2505.18629)"
    summary = "one wider target pass reads draft, prompt and draft again; fused logits accept more"
    parts = Parts(schedule="serial", verifier="fused logits of two readings: relaxed")
    lossless = False
    unknown = "what is accepted, draft lengths, GPU and tables of the paper: the gain is assumed"
    schedule = ReflectiveDecoding
    closed_form = None
    knobs = (
        Knob("gain", 0.05, 0, 1, "added to alpha by the fused logits", "assumed: not found"),
        Knob(
            "prompt", 24, 0, 4096, "tokens of the reflective prompt",
            "one port of the method, third-party note", whole=True,
        ),
    )  # fmt: skip

    def _changed(self, acceptance: AcceptanceModel, k: int) -> AcceptanceModel:
        return gained(acceptance, self["gain"], k)

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Hand the prompt's length over."""
        return {"prompt": self.count("prompt")}

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Say what is assumed, and that the output is not the plain target's."""
        return [
            *assumed_knobs(self, ("gain", "prompt")),
            "reflective is lossy: its output follows the fused logits, not the plain target's",
        ]


FAMILY: tuple[type[Method], ...] = (DistillSpec, Diversed, Reflective)
"""Methods of this file, for the table."""
