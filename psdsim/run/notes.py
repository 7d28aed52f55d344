"""What a reader must know about a prediction: assumed, extended, extrapolated, left out."""

from __future__ import annotations

from psdsim.engine import RawRun
from psdsim.methods import method
from psdsim.scenario import Scenario


def assumed_notes(scenario: Scenario) -> list[str]:
    """Return one line for each figure that the scenario marks as assumed."""
    data = scenario.to_dict()
    lines = []
    for path, reason in scenario.assumed.items():
        value: object = data
        for key in path.split("."):
            value = value.get(key, {}) if isinstance(value, dict) else {}
        lines.append(f"ASSUMED {path} = {_short(value)}: {reason}")
    return lines + _roofline_defaults(scenario)


def _roofline_defaults(scenario: Scenario) -> list[str]:
    """Name the efficiencies of a roofline that nobody stated: they decide the answer."""
    names = ("bandwidth_efficiency", "compute_efficiency", "launch_s")
    lines = []
    for part in ("target", "draft", "prefill", "draft_prefill"):
        model = getattr(scenario.step_time, part)
        if model is None or model.kind != "roofline":
            continue
        unset = [name for name in names if name not in model.model_fields_set]
        if unset:
            values = ", ".join(f"{name} {getattr(model, name):g}" for name in unset)
            lines.append(f"ASSUMED step_time.{part}: {values} (defaults of the roofline)")
    return lines


def _short(value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{k} {v}" for k, v in value.items() if k != "kind")
        return f"{value.get('kind', '')} ({inner})"
    return str(value)


def run_notes(scenario: Scenario, name: str, k: int, raw: RawRun) -> tuple[str, ...]:
    """Return the notes of one run, without the ASSUMED lines of the scenario itself."""
    chosen = method(name)
    notes = list(raw.notes) + chosen.notes(scenario, k)
    adapted = chosen.adapt(scenario, k)
    if adapted.acceptance is not None and chosen.schedule.drafts and k:
        notes += adapted.acceptance.notes(k)
    if not raw.gaps.exact:
        notes.append("ITL quantiles are within 0.1 % (kept in a histogram)")
    return tuple(dict.fromkeys(notes))
