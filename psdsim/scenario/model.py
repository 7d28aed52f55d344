"""A deployment and its traffic: everything a prediction depends on, in one object."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, model_validator

from psdsim.acceptance import Acceptance
from psdsim.hardware import ModelShape, gpu, model_shape
from psdsim.latency import Placement, StepTimer
from psdsim.scenario.checks import contradictions
from psdsim.scenario.explain import explain
from psdsim.scenario.overrides import apply_overrides
from psdsim.scenario.parts import (
    MEASURED,
    DraftOnGpus,
    Engine,
    ModelOnGpus,
    Section,
    StepTimes,
)
from psdsim.workload import Workload


class Scenario(Section):
    """Target, draft, GPUs, acceptance, step times, traffic and engine limits.

    Make one with `Scenario.load(path)`, `Scenario.builtin()` or `Scenario.parse(mapping)`;
    change it with `scenario.set(**{"acceptance.alpha": 0.8})`.

    Examples
    --------
    >>> s = Scenario.builtin()
    >>> s.name, s.engine.max_num_seqs
    ('qwen3-32b', 16)
    >>> s.set({"acceptance.alpha": 0.8}).acceptance.alpha
    0.8
    """

    name: str = Field(min_length=1, description="Name, for tables and files.")
    target: ModelOnGpus = Field(description="The model that is served.")
    draft: DraftOnGpus | None = Field(None, description="The model that drafts; null: none.")
    acceptance: Acceptance | None = Field(None, description="How drafts fare with the target.")
    step_time: StepTimes = Field(description="Seconds.")
    workload: Workload = Field(description="Who asks for what, when.")
    engine: Engine = Field(description="Continuous batching.")
    assumed: dict[str, str] = Field(
        default_factory=dict,
        description="Key paths whose figures are assumptions, with the reason or source; they "
        "are marked ASSUMED in every output.",
    )

    _base_dir: Path = PrivateAttr(default=Path())
    _file: str = PrivateAttr(default="scenario")

    @model_validator(mode="after")
    def _complete(self) -> Scenario:
        for problem in contradictions(self):
            raise ValueError(problem)
        return self

    # --- making one ------------------------------------------------------------------------

    @classmethod
    def parse(
        cls,
        data: Mapping[str, Any],
        *,
        where: str = "scenario",
        base_dir: Path | None = None,
        lines: Mapping[tuple[str | int, ...], int] | None = None,
    ) -> Scenario:
        """Build a scenario from plain data.

        Parameters
        ----------
        data
            The keys of a scenario file.
        where
            Name of the file, for messages.
        base_dir
            What relative paths are relative to; default: the current directory.
        lines
            Line number of each key path, for messages.

        Raises
        ------
        psdsim.errors.InputError
            For the first thing that is wrong, with its key (and line).
        """
        try:
            scenario = cls.model_validate(data)
        except ValidationError as error:
            raise explain(error, data, cls, where, lines or {}) from None
        scenario._file = where
        scenario._base_dir = base_dir if base_dir is not None else Path()
        return scenario._read_files()

    @classmethod
    def load(cls, path: str | Path, overrides: Mapping[str, Any] | None = None) -> Scenario:
        """Read a YAML or TOML file; `overrides` maps key paths to values."""
        from psdsim.scenario.files import read_scenario_file

        data, lines = read_scenario_file(Path(path))
        data, lines = apply_overrides(data, overrides or {}, lines)
        return cls.parse(data, where=str(path), base_dir=Path(path).parent, lines=lines)

    @classmethod
    def builtin(cls, overrides: Mapping[str, Any] | None = None) -> Scenario:
        """Return the built-in scenario: Qwen3-32B on four H100, Qwen3-0.6B on a fifth."""
        from psdsim.scenario.files import builtin_data

        data, _ = apply_overrides(builtin_data(), overrides or {}, {})
        return cls.parse(data, where="built-in scenario")

    def set(self, overrides: Mapping[str, Any]) -> Scenario:
        """Return a copy with some keys changed, checked anew.

        Parameters
        ----------
        overrides
            Key paths (``"acceptance.alpha"``) to values; a changed figure is no longer
            marked as assumed.
        """
        data, _ = apply_overrides(self.to_dict(), overrides, {})
        return type(self).parse(data, where=self._file, base_dir=self._base_dir)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which `parse` makes the same scenario."""
        return _with_kinds(self, self.model_dump(mode="json", exclude_unset=True))

    def _read_files(self) -> Scenario:
        """Return this scenario with the tables it names read in (the workload stays a path)."""
        base = self._base_dir
        times = self.step_time
        changed: dict[str, Any] = {}
        for field in ("target", "draft", "prefill", "draft_prefill"):
            model = getattr(times, field)
            if model is not None and (read := model.resolve(base)) is not model:
                changed[field] = read
        update: dict[str, Any] = {}
        if changed:
            update["step_time"] = times.model_copy(update=changed)
        if self.acceptance is not None and hasattr(self.acceptance, "resolve"):
            update["acceptance"] = self.acceptance.resolve(base)
        if not update:
            return self
        copy = self.model_copy(update=update)
        copy._base_dir, copy._file = self._base_dir, self._file
        return copy

    # --- what follows from it ----------------------------------------------------------------

    @property
    def base_dir(self) -> Path:
        """What relative paths are relative to."""
        return self._base_dir

    @property
    def file(self) -> str:
        """Name of the file it came from, for messages."""
        return self._file

    @cached_property
    def target_placement(self) -> Placement:
        """Shape and GPUs of the target."""
        return _placement(self.target, self._base_dir, f"{self._file}: target")

    @cached_property
    def draft_placement(self) -> Placement | None:
        """Shape and GPUs of the draft model."""
        if self.draft is None:
            return None
        return _placement(self.draft, self._base_dir, f"{self._file}: draft")

    def timers(self) -> dict[str, StepTimer | None]:
        """Return fresh step timers: target, draft, prefill, draft_prefill."""
        times = self.step_time
        target, draft = self.target_placement, self.draft_placement
        return {
            "target": times.target.bind(target),
            "draft": times.draft.bind(draft) if times.draft is not None and draft else None,
            "prefill": times.prefill.bind(target) if times.prefill is not None else None,
            "draft_prefill": (
                times.draft_prefill.bind(draft)
                if times.draft_prefill is not None and draft
                else None
            ),
        }


def _placement(part: ModelOnGpus, base_dir: Path, where: str) -> Placement:
    shape: ModelShape = model_shape(part.config, base_dir=base_dir, where=f"{where}.config")
    sheet = None if part.gpu == MEASURED else gpu(part.gpu, where=f"{where}.gpu")
    return Placement(shape=shape, gpu=sheet, n_gpus=part.n_gpus)


def _with_kinds(model: BaseModel, data: dict[str, Any]) -> dict[str, Any]:
    """Put each part's kind into its data: objects made in Python need not have stated it."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel) and name in data:
            _with_kinds(value, data[name])
    if hasattr(model, "kind"):
        data["kind"] = model.kind
    return data
