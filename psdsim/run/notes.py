"""What a reader must know about a prediction: assumed, extended, extrapolated, left out."""

from __future__ import annotations

from psdsim.engine import RawRun
from psdsim.scenario import Scenario
from psdsim.schedules import Schedule


def assumed_notes(scenario: Scenario) -> list[str]:
    """Return one line for each figure that the scenario marks as assumed."""
    data = scenario.to_dict()
    lines = []
    for path, reason in scenario.assumed.items():
        value: object = data
        for key in path.split("."):
            value = value.get(key, {}) if isinstance(value, dict) else {}
        lines.append(f"ASSUMED {path} = {_short(value)}: {reason}")
    return lines


def _short(value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{k} {v}" for k, v in value.items() if k != "kind")
        return f"{value.get('kind', '')} ({inner})"
    return str(value)


def run_notes(scenario: Scenario, schedule: type[Schedule], k: int, raw: RawRun) -> tuple[str, ...]:
    """Return the notes of one run, without the ASSUMED lines."""
    notes = list(raw.notes)
    if scenario.acceptance is not None and schedule.drafts and k:
        notes += scenario.acceptance.notes(k)
    if not raw.gaps.exact:
        notes.append("ITL quantiles are within 0.1 % (kept in a histogram)")
    return tuple(dict.fromkeys(notes))
