"""The lines of a calibrated scenario file: numbers, one-line mappings, provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from psdsim.calibrate.profile import Profile
from psdsim.calibrate.runs import MeasuredRun

_WORDS = ("batch", "beta", "conditional", "iid", "last", "position", "trace", "unconditional")


def number(value: float) -> str:
    """Return a number with six significant digits, as YAML reads it.

    Examples
    --------
    >>> number(1.0), number(0.00012345678)
    ('1.0', '0.000123457')
    """
    text = f"{value:.6g}"
    return text if any(c in text for c in ".en") else text + ".0"


def line(text: object) -> str:
    """Return a text that stays within one comment line."""
    return " ".join(str(text).split())[:100]


def inline(data: Mapping[str, Any]) -> str:
    """Return a mapping in one line of YAML."""
    return "{" + ", ".join(f"{key}: {_value(value)}" for key, value in data.items()) + "}"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return inline(value)
    # Our own words need no quotation marks; what was read may be anything.
    return str(value) if value in _WORDS else json.dumps(value)


def header(runs: Sequence[MeasuredRun], profile: Profile) -> list[str]:
    """Return the comment lines that say what the scenario was fitted on."""
    from psdsim import __version__

    hardware = ", ".join(f"{key} {line(value)}" for key, value in profile.hardware.items())
    versions = ", ".join(f"{key} {line(value)}" for key, value in profile.versions.items())
    out = [
        f"# Written by: psdsim calibrate (psdsim {__version__}). Every figure was measured on:",
        f"#   hardware: {hardware or 'not stated'}",
        f"#   versions: {versions or 'not stated'}",
        f"#   profile: {line(profile.file)} (realrun {line(profile.version)})",
    ]
    for run in runs:
        data = run.metadata
        n = int(run.recording.steps["kind"].size)
        what = f"{run.schedule.name} k={run.k}, {n} steps"
        how = "forced acceptance" if run.drafts and run.forced is not None else ""
        partial = "cut short" if run.recording.partial else ""
        commit = f"commit {line(data['commit'])[:12]}" if data.get("commit") else ""
        more = [part for part in (how, partial, commit) if part]
        out.append(f"#   run: {line(run.file)}: " + ", ".join([what, *more]))
    return out
