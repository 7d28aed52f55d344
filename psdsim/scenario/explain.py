"""From a validation error to one sentence: file, line, key, what was found, what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from psdsim.errors import InputError, did_you_mean

Path = tuple[str | int, ...]


def explain(
    error: ValidationError,
    data: Mapping[str, Any],
    model: type[BaseModel],
    where: str,
    lines: Mapping[Path, int],
) -> InputError:
    """Return the first error as an `InputError` (the rest are counted).

    Parameters
    ----------
    error
        What pydantic says.
    data
        What was validated.
    model
        The class it was validated against; its field names give the did-you-mean.
    where
        File name.
    lines
        Line of each key path, where known.
    """
    details = error.errors()
    # An unknown key is usually the cause of whatever else is wrong.
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    path, found = _walk(data, first["loc"])
    what, expected = _words(first, path, found, data, error)
    n_more = len(details) - 1
    if n_more:
        what += f" ({n_more} more problem{'s' if n_more > 1 else ''} in this file)"
    place = where
    line = lines.get(path) or lines.get(path[:-1])
    if line is not None and path:
        place = f"{where}: line {line}"
    key = ".".join(str(part) for part in path)
    return InputError(what, expected=expected, where=f"{place}: {key}" if key else place)


def _walk(data: Any, loc: tuple[int | str, ...]) -> tuple[Path, Any]:
    """Follow an error's location through the data, leaving out union tags."""
    path: list[str | int] = []
    here: Any = data
    for i, part in enumerate(loc):
        last = i == len(loc) - 1
        if isinstance(here, Mapping) and part in here:
            here = here[part]
            path.append(part)
        elif isinstance(here, list | tuple) and isinstance(part, int):
            here = here[part] if part < len(here) else None
            path.append(part)
        elif isinstance(here, Mapping) and last and here.get("kind") != part:
            path.append(part)
            return tuple(path), None
    return tuple(path), here


def _words(
    detail: Any, path: Path, found: Any, data: Mapping[str, Any], error: ValidationError
) -> tuple[str, str | None]:
    kind, context = detail["type"], detail.get("ctx", {})
    name = str(path[-1]) if path else "the scenario"
    if kind == "extra_forbidden":
        known = _known_keys(detail["loc"])
        return f"unknown key '{name}'{did_you_mean(name, known)}", _one_of(known)
    if kind == "missing":
        return f"the key '{name}' is missing", None
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        tags = str(context.get("expected_tags", ""))
        names = [tag.strip().strip("'") for tag in tags.split(",")] if tags else []
        if kind == "union_tag_not_found":
            return f"'{name}' does not say its kind", _one_of(names)
        tag = str(context.get("tag"))
        return f"kind is '{tag}'{did_you_mean(tag, names)}", _one_of(names)
    if kind == "value_error":
        return str(detail["msg"]).removeprefix("Value error, "), None
    expected = str(detail["msg"])
    for opening in ("Input should be ", "Input should have ", "Value should have "):
        expected = expected.removeprefix(opening)
    return f"found {_short(found)}", expected


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _one_of(names: list[str]) -> str | None:
    return "one of " + ", ".join(sorted(names)) if names else None


def _known_keys(loc: tuple[int | str, ...]) -> list[str]:
    from psdsim.scenario.model import Scenario

    models: list[type[BaseModel]] = [Scenario]
    for part in loc[:-1]:
        models = [child for m in models for child in _children(m, part)] or models
    return sorted({name for m in models for name in m.model_fields})


def _children(model: type[BaseModel], part: int | str) -> list[type[BaseModel]]:
    """Return the models that a field can hold, or this one if `part` is its union tag."""
    if isinstance(part, str) and part in model.model_fields:
        return _models_in(model.model_fields[part].annotation)
    kind = model.model_fields.get("kind")
    if kind is not None and part in get_args(kind.annotation):
        return [model]
    return []


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for argument in get_args(annotation) for m in _models_in(argument)]
