"""A profile: measured times of single passes of both models over a grid of shapes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from psdsim.calibrate.figures import IQR_OF_NORMAL
from psdsim.calibrate.smooth import Row, monotone
from psdsim.errors import InputError
from psdsim.latency import Placement, StepTimer, TableStepTime

"""(n_seqs, query_length, context, time_s), as a step-time table has it."""


@dataclass(frozen=True)
class ProfiledModel:
    """One of the two models.

    Parameters
    ----------
    name
        What it is called.
    kind
        ``model``, ``ngram`` or ``early-exit``.
    config
        Its config.json; None where it has no weights of its own.
    device
        Where it ran.
    dtype
        Of its weights.
    """

    name: str
    kind: str
    config: dict[str, Any] | None
    device: str
    dtype: str


@dataclass(frozen=True, eq=False)
class Profile:
    """Median pass times.

    Parameters
    ----------
    file
        Name of the file, without folders.
    version
        Of the tool that measured.
    hardware, versions
        What it ran on.
    target, draft
        The models; no draft if nothing drafts.
    alone, busy
        Rows by (model, phase), measured with the other worker idle, and busy meanwhile.
    noise
        Relative standard deviation of single passes (from the quartiles) by (model, phase).
    """

    file: str
    version: str
    hardware: Mapping[str, Any]
    versions: Mapping[str, Any]
    target: ProfiledModel
    draft: ProfiledModel | None
    alone: Mapping[tuple[str, str], tuple[Row, ...]]
    busy: Mapping[tuple[str, str], tuple[Row, ...]]
    noise: Mapping[tuple[str, str], float]

    def timer(self, model: str, phase: str) -> StepTimer | None:
        """Return the timer of a model in a phase; None where that was not profiled."""
        rows = self.smooth(model, phase)
        return None if rows is None else TableStepTime(rows=rows).bind(Placement())

    def smooth(self, model: str, phase: str) -> tuple[Row, ...] | None:
        """Return the rows of a model alone, their noise taken off (`monotone`)."""
        rows = self.alone.get((model, phase))
        return None if rows is None else monotone(rows)

    def slow_downs(self, model: str) -> list[float]:
        """Return busy time / time alone for every shape profiled both ways (decode)."""
        alone = {row[:3]: row[3] for row in self.alone.get((model, "decode"), ())}
        busy = self.busy.get((model, "decode"), ())
        return [row[3] / alone[row[:3]] for row in busy if row[:3] in alone]


def read_profile(path: Path) -> Profile:
    """Read a profile (JSON).

    Raises
    ------
    psdsim.errors.InputError
        If it can't be read, lacks a key, or its rows form no full grids; the place is named.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"can't be read: {reason}", where=str(path)) from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON", expected="a profile", where=str(path)) from None
    where = str(path)
    if not isinstance(data, dict):
        raise InputError("is no JSON object", expected="a profile", where=where)
    models = _mapping(data, "models", where)
    if "target" not in models:
        raise InputError("the key 'target' is missing", where=f"{where}: models")
    alone, busy = _rows(data, where)
    if ("target", "decode") not in alone:
        raise InputError(
            "there is no row of the target's decode passes", expected="model target, phase decode",
            where=f"{where}: rows",
        )  # fmt: skip
    has_draft = models.get("draft") is not None
    if has_draft and ("draft", "decode") not in alone:
        raise InputError(
            "there is no row of the draft's decode passes", expected="model draft, phase decode",
            where=f"{where}: rows",
        )  # fmt: skip
    return Profile(
        file=path.name,
        version=str(data.get("version", "unknown")),
        hardware=_mapping(data, "hardware", where),
        versions=_mapping(data, "versions", where),
        target=_model(models, "target", where),
        draft=_model(models, "draft", where) if has_draft else None,
        alone=alone,
        busy=busy,
        noise=_noise(data["rows"]),
    )


def _noise(rows: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """Return the median over shapes of (p75 - p25) / median, as of a normal; 0 if not stated."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        low, high = row.get("p25_s"), row.get("p75_s")
        if isinstance(low, int | float) and isinstance(high, int | float) and low <= high:
            ratio = (high - low) / row["median_s"] / IQR_OF_NORMAL
            found.setdefault((row["model"], row["phase"]), []).append(ratio)
    return {key: float(np.median(ratios)) for key, ratios in found.items()}


def _mapping(data: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    value = data.get(key)
    if not isinstance(value, dict):
        found = "is missing" if key not in data else f"holds {str(value)[:60]}"
        raise InputError(f"the key '{key}' {found}", expected="an object", where=where)
    return value


def _model(models: Mapping[str, Any], key: str, where: str) -> ProfiledModel:
    place = f"{where}: models"
    data = _mapping(models, key, place)
    config = data.get("config")
    if config is None and key == "target":
        raise InputError("the target has no config", expected="its config.json", where=place)
    if config is not None and not isinstance(config, dict):
        raise InputError(f"{key}.config is no object", expected="a config.json", where=place)
    return ProfiledModel(
        name=str(data.get("name", key)),
        kind=str(data.get("kind", "model")),
        config=config,
        device=str(data.get("device", "unknown")),
        dtype=str(data.get("dtype", "unknown")),
    )


def _rows(
    data: Mapping[str, Any], where: str
) -> tuple[dict[tuple[str, str], tuple[Row, ...]], dict[tuple[str, str], tuple[Row, ...]]]:
    rows = data.get("rows")
    if not isinstance(rows, list) or not rows:
        raise InputError("the key 'rows' holds no rows", expected="a list", where=where)
    found: dict[tuple[str, str, bool], list[Row]] = {}
    for index, row in enumerate(rows):
        place = f"{where}: rows[{index}]"
        if not isinstance(row, dict):
            raise InputError("is no object", where=place)
        for key, choices in (("model", ("target", "draft")), ("phase", ("decode", "prefill"))):
            if row.get(key) not in choices:
                raise InputError(
                    f"{key} is {str(row.get(key))[:40]!r}", expected=" or ".join(choices),
                    where=place,
                )  # fmt: skip
        if not isinstance(row.get("busy", False), bool):
            raise InputError("busy is neither true nor false", where=place)
        shape = (
            _number(row, "n_seqs", 1.0, place),
            _number(row, "query_length", 1.0, place),
            _number(row, "context", 0.0, place),
            _number(row, "median_s", 0.0, place),
        )
        if shape[3] <= 0.0:
            raise InputError("median_s is 0", expected="above 0 s", where=place)
        found.setdefault((row["model"], row["phase"], row.get("busy", False)), []).append(shape)
    alone = {key[:2]: tuple(value) for key, value in found.items() if not key[2]}
    busy = {key[:2]: tuple(value) for key, value in found.items() if key[2]}
    for (model, phase), value in alone.items():
        try:
            TableStepTime.model_construct(rows=value).grid()
        except InputError as error:
            raise InputError(
                f"the {model}'s {phase} passes: {error.what}",
                expected=error.expected,
                where=f"{where}: rows",
            ) from None
    return alone, busy


def _number(row: Mapping[str, Any], name: str, least: float, where: str) -> float:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name} is {str(value)[:40]}", expected="a number", where=where)
    if value < least:
        raise InputError(f"{name} is {value}", expected=f"at least {least:g}", where=where)
    return float(np.float64(value))
