"""Keys of a scenario that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel

from psdsim.errors import did_you_mean
from psdsim.scenario.parts import MEASURED

if TYPE_CHECKING:
    from psdsim.latency import StepTimeModel
    from psdsim.scenario.model import Scenario


def contradictions(scenario: Scenario) -> Iterator[str]:
    """Yield what doesn't fit together: parts that are missing, keys without effect."""
    times, draft, engine = scenario.step_time, scenario.draft, scenario.engine
    parts = {"draft": draft, "acceptance": scenario.acceptance, "step_time.draft": times.draft}
    given = [name for name, part in parts.items() if part is not None]
    if given and len(given) < len(parts):
        yield (
            "draft, acceptance and step_time.draft go together: found "
            f"{' and '.join(given)} only; expected all three or none"
        )
    if draft is None and times.draft_prefill is not None:
        yield "step_time.draft_prefill has no effect: it needs a draft"
    if draft is None and times.draft_start_s:
        yield "step_time.draft_start_s has no effect: it needs a draft"
    if times.target_resume_s and (draft is None or draft.serial_on != "own"):
        yield "step_time.target_resume_s has no effect: it needs draft.serial_on: own"
    if draft is None and times.draft_jitter_cv is not None:
        yield "step_time.draft_jitter_cv has no effect: it needs a draft"
    if draft is not None and draft.shared and draft.serial_on == "own":
        yield "draft.serial_on: own has no effect: with draft.shared there are no GPUs of its own"
    if engine.n_replicas == 1 and "routing" in engine.model_fields_set:
        yield "engine.routing has no effect: it needs n_replicas above 1"
    overhead = times.step_overhead_s or times.step_overhead_per_seq_s
    if not overhead and _takes_no_time(times.target):
        yield "a target pass takes no time; expected step_time.target or step_overhead_s above 0 s"
    yield from _without_data_sheet(scenario)
    for path in scenario.assumed:
        if problem := _not_a_key(scenario, path):
            yield problem


def _without_data_sheet(scenario: Scenario) -> Iterator[str]:
    """Say what needs the data sheet of a model for which `gpu: measured` says there is none."""
    models = {"target": scenario.target, "draft": scenario.draft}
    for part, passes in (("target", ("target", "prefill")), ("draft", ("draft", "draft_prefill"))):
        model = models[part]
        if model is None or model.gpu != MEASURED:
            continue
        for name in passes:
            if getattr(getattr(scenario.step_time, name), "kind", None) == "roofline":
                yield (
                    f"step_time.{name} is a roofline and {part}.gpu is measured: there is no data "
                    "sheet; expected a table, or another kind that needs none"
                )
        if scenario.engine.kv_blocks is None:
            yield (
                f"engine.kv_blocks is null and {part}.gpu is measured: nothing says how much "
                "memory there is; expected a number of blocks, or unlimited"
            )


def _takes_no_time(model: StepTimeModel) -> bool:
    figures = [value for _, value in model if isinstance(value, float)]
    return bool(figures) and not any(figures)


def _not_a_key(scenario: Scenario, path: str) -> str | None:
    """Say why a key path of `assumed` names nothing, if so: its mark would never be seen."""
    here: object = scenario
    for name in path.split("."):
        names = type(here).model_fields if isinstance(here, BaseModel) else {}
        if name not in names:
            return (
                f"assumed names '{path}' and there is no key '{name}'{did_you_mean(name, names)}; "
                "expected key paths of this scenario"
            )
        here = getattr(here, name)
    return None
