"""A profile's file: models, times, hardware and versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from psdsim.records.files import commit
from realrun.build import drafter_source
from realrun.models.config import ModelConfig
from realrun.models.load import config_of
from realrun.session import RunOptions
from realrun.stamp import hardware, versions


def configs_of(options: RunOptions) -> dict[str, ModelConfig | None]:
    """Return the shapes of ``target`` and ``draft``; None for a drafter without a model."""
    draft = None
    if options.draft != "ngram":
        source, n_layers = drafter_source(options.draft, options.target)
        draft = config_of(source)
        if n_layers is not None:
            draft = replace(draft, n_layers=n_layers)
    return {"target": config_of(options.target), "draft": draft}


def describe(options: RunOptions, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what `psdsim calibrate` reads.

    Parameters
    ----------
    options
        Models, devices, precision.
    rows
        `Timings.rows`.
    """
    from psdsim import __version__

    kind = "ngram" if options.draft == "ngram" else "model"
    if options.draft.startswith("early-exit"):
        kind = "early-exit"
    models: dict[str, dict[str, Any]] = {}
    names = {"target": options.target, "draft": options.draft}
    where = {"target": options.target_device, "draft": options.draft_device}
    for model, config in configs_of(options).items():
        models[model] = {
            "name": names[model],
            "config": None if config is None else config.to_hf(),
            "dtype": options.dtype,
            "device": str(where[model]),
            "n_parameters": None if config is None else config.n_parameters,
        }
    models["draft"]["kind"] = kind
    return {
        "tool": "realrun profile",
        "version": __version__,
        "commit": commit(),
        "hardware": hardware(),
        "versions": versions(),
        "models": models,
        "rows": rows,
    }
