"""How a scenario looks to a method that brings a drafter of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psdsim.acceptance import AcceptanceModel, PositionAcceptance
from psdsim.errors import InputError
from psdsim.hardware import ModelShape
from psdsim.methods.base import Knob, Method
from psdsim.scenario import Scenario

FIG2 = "DSpark (arXiv 2607.05147) Fig. 2, read off the plot within 0.003, Qwen3-4B"
"""Source of `PROFILES`."""

PROFILES: dict[str, dict[str, tuple[float, ...]]] = {
    "eagle3": {
        "math": (0.811, 0.824, 0.839, 0.845, 0.851, 0.856, 0.851),
        "code": (0.772, 0.775, 0.782, 0.792, 0.788, 0.795, 0.785),
        "chat": (0.535, 0.591, 0.643, 0.679, 0.709, 0.730, 0.734),
    },
    "dflash": {
        "math": (0.886, 0.828, 0.821, 0.834, 0.842, 0.840, 0.828),
        "code": (0.866, 0.815, 0.798, 0.802, 0.811, 0.802, 0.778),
        "chat": (0.719, 0.649, 0.639, 0.662, 0.683, 0.693, 0.689),
    },
    "dspark": {
        "math": (0.906, 0.891, 0.888, 0.886, 0.888, 0.891, 0.883),
        "code": (0.886, 0.873, 0.861, 0.862, 0.859, 0.860, 0.852),
        "chat": (0.736, 0.739, 0.741, 0.745, 0.759, 0.767, 0.762),
    },
}
"""P(draft i accepted | all before it were), i = 1..7, by drafter and domain."""

DOMAINS = ("math", "code", "chat")


def profile_knob(domains: Sequence[str], default: int, source: str) -> Knob:
    """Return the knob that says whose acceptance is taken: 0 the scenario's, else a published one.

    Parameters
    ----------
    domains
        What 1, 2, ... stand for.
    default
        Which of them.
    source
        Where the figures are from.
    """
    names = ", ".join(f"{i} {name}" for i, name in enumerate(domains, start=1))
    meaning = f"whose acceptance: 0 the scenario's, {names}"
    return Knob("profile", default, 0, len(domains), meaning, source, whole=True)


def profile(drafter: str, place: int) -> AcceptanceModel:
    """Return a published profile; beyond position 7 its last rate is repeated.

    Examples
    --------
    >>> round(profile("eagle3", 3).acceptance_length(7), 2)     # printed beside the plot: 2.41
    2.41
    """
    rates = PROFILES[drafter][DOMAINS[place - 1]]
    return PositionAcceptance(rates=rates, convention="conditional", extend="last")


def with_drafter(
    scenario: Scenario, step_time: dict[str, Any], acceptance: AcceptanceModel | None, name: str
) -> Scenario:
    """Return the scenario with a drafter on the target's GPUs in place of its draft model.

    What starting a drafting phase costs (`draft_start_s`) stays; a pause between devices goes.

    Parameters
    ----------
    scenario
        As the user has it.
    step_time
        Of one forward of the drafter, as in a scenario file.
    acceptance
        How its drafts fare; None: as the scenario says.
    name
        Of the method, for the message.

    Raises
    ------
    psdsim.errors.InputError
        If the scenario is to say how drafts fare, and doesn't.
    """
    changed: dict[str, Any] = {
        "draft": scenario.target.model_dump() | {"shared": True},
        "step_time.draft": step_time,
    }
    if step_time["kind"] == "share" and scenario.step_time.prefill is not None:
        whole = scenario.to_dict()["step_time"]["prefill"]
        changed["step_time.draft_prefill"] = step_time | {"of": whole}
    elif scenario.step_time.draft_prefill is not None:
        changed["step_time.draft_prefill"] = None
    if scenario.step_time.target_resume_s:
        changed["step_time.target_resume_s"] = 0.0
    if acceptance is not None:
        changed["acceptance"] = acceptance.model_dump(mode="json", exclude_none=True)
    elif scenario.acceptance is None:
        raise InputError(
            f"method '{name}' is to take the scenario's acceptance, and there is none",
            expected="another profile, or acceptance with draft and step_time.draft",
            where=scenario.file,
        )
    return scenario.set(changed)


def share_of_target(scenario: Scenario, share: float) -> dict[str, Any]:
    """Return the step time that is a share of a target pass over the same rows."""
    return {"kind": "share", "share": share, "of": scenario.to_dict()["step_time"]["target"]}


def layer_share(shape: ModelShape, n_layers: float = 1.0) -> float:
    """Return what part of a pass's weights some decoder layers and the output projection are.

    By active parameters, which weigh the same whether bytes or operations decide; launches and
    all-reduces are taken to shrink alike.

    Parameters
    ----------
    shape
        Of the target.
    n_layers
        Layers of the drafter, each like one of the target's (a mean layer, where they differ).

    Examples
    --------
    >>> from psdsim.hardware import model_shape
    >>> round(layer_share(model_shape("Qwen/Qwen3-32B")), 4)
    0.0396
    """
    head, body = _head_and_body(shape)
    return (n_layers * body / shape.n_layers + head) / (body + head)


def head_share(shape: ModelShape) -> float:
    """Return what part of a pass's weights a residual block and an output projection are (Medusa).

    Examples
    --------
    >>> from psdsim.hardware import model_shape
    >>> round(head_share(model_shape("Qwen/Qwen3-32B")), 4)
    0.0251
    """
    head, body = _head_and_body(shape)
    return (shape.hidden**2 + head) / (body + head)


def _head_and_body(shape: ModelShape) -> tuple[float, float]:
    counts = shape.counts
    head = float(counts.embedding if shape.tied else counts.lm_head)
    return head, float(shape.n_active_params - counts.embedding - counts.lm_head)


def assumed_knobs(method: Method, names: Sequence[str]) -> list[str]:
    """Return an ASSUMED line for each of these knobs that nobody has stated."""
    knobs = {knob.name: knob for knob in method.knobs}
    return [
        f"ASSUMED {method.name}: {name} {method[name]:g}, {knobs[name].meaning} "
        f"({knobs[name].source})"
        for name in names
        if name not in method.stated
    ]
