"""Keys of a scenario that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel

from psdsim.errors import did_you_mean

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
    if draft is not None and draft.slow_down != 1.0 and not draft.shared:
        yield "draft.slow_down has no effect: it needs draft.shared: true"
    if engine.n_replicas == 1 and "routing" in engine.model_fields_set:
        yield "engine.routing has no effect: it needs n_replicas above 1"
    if not times.step_overhead_s and _takes_no_time(times.target):
        yield "a target pass takes no time; expected step_time.target or step_overhead_s above 0 s"
    for path in scenario.assumed:
        if problem := _not_a_key(scenario, path):
            yield problem


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
