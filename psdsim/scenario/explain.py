"""From a validation error to one sentence: file, line, key, what was found, what is expected."""

from __future__ import annotations

import datetime
import json
import re
import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

from psdsim.errors import InputError, did_you_mean

Path = tuple[str | int, ...]

# pydantic speaks of Python's types; the reader of a scenario file knows YAML's.
_EXPECTED = {
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
    "dict_type": "a mapping of keys",
    "tuple_type": "a list",
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "string_type": "a text",
    "finite_number": "a finite number",
}

_LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


class _Place(NamedTuple):
    path: Path
    found: Any
    models: list[type[BaseModel]]


def explain(
    error: ValidationError,
    data: Mapping[str, Any],
    model: type[BaseModel],
    where: str,
    lines: Mapping[Path, int],
) -> InputError:
    """Return the first error as an `InputError` (the keys of the others are counted).

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
    places = [_walk(data, model, detail["loc"], detail["type"]) for detail in details]
    # An unknown key is usually the cause of whatever else is wrong.
    kinds = [detail["type"] for detail in details]
    first = kinds.index("extra_forbidden") if "extra_forbidden" in kinds else 0
    path, found, models = places[first]
    what, expected = _words(details[first], path, found, models)
    # A key that may be one of several things has one error for each of them.
    others = [
        _words(detail, path, found, models)[1]
        for detail, place in zip(details, places, strict=True)
        if place.path == path
    ]
    if expected is not None:
        expected = " or ".join(dict.fromkeys(text for text in others if text))
    n_more = len({p.path for p in places if p.path != path[: len(p.path)]})
    if n_more:
        what += f" ({n_more} more problem{'s' if n_more > 1 else ''} in this scenario)"
    # What --set has put in has no line, and its section's line says nothing about it.
    line = next((lines[p] for p in (path, path[:-1]) if p and p in lines), None)
    place = where if line is None else f"{where}: line {line}"
    key = ".".join(str(part) for part in path)
    return InputError(what, expected=expected, where=f"{place}: {key}" if key else place)


def _walk(data: Any, model: type[BaseModel], loc: tuple[int | str, ...], kind: str) -> _Place:
    """Follow an error's location through the data and the models, leaving out union tags."""
    path: list[str | int] = []
    here: Any = data
    models = [model]
    for i, part in enumerate(loc):
        tagged = [m for m in models if part in _tags(m)]
        if len(models) > 1 and tagged:
            models = tagged
        elif isinstance(here, Mapping) and part in here:
            path.append(part)
            here = here[part]
            if kind == "extra_forbidden" and i == len(loc) - 1:
                break
            fields = [m.model_fields[part] for m in models if part in m.model_fields]
            models = [child for field in fields for child in _models_in(field.annotation)]
        elif isinstance(here, list | tuple) and isinstance(part, int) and part < len(here):
            path.append(part)
            here = here[part]
        elif kind == "missing" and i == len(loc) - 1:
            path.append(part)
            here = None
    return _Place(tuple(path), here, models)


def _tags(model: type[BaseModel]) -> tuple[Any, ...]:
    kind = model.model_fields.get("kind")
    return get_args(kind.annotation) if kind is not None else ()


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for argument in get_args(annotation) for m in _models_in(argument)]


def _words(
    detail: Any, path: Path, found: Any, models: list[type[BaseModel]]
) -> tuple[str, str | None]:
    """Return what was found and what is expected."""
    kind, context = detail["type"], detail.get("ctx", {})
    name = str(path[-1]) if path else "the scenario"
    if kind == "extra_forbidden":
        known = sorted({name for m in models for name in m.model_fields})
        return f"unknown key '{name}'{did_you_mean(name, known)}", _one_of(known)
    if kind == "missing":
        if path and isinstance(path[-1], int):
            return f"number {path[-1] + 1} of the list is missing", None
        return f"the key '{name}' is missing", None
    if kind == "union_tag_invalid":
        tags = [tag.strip().strip("'") for tag in str(context["expected_tags"]).split(",")]
        # A kind may be of any type; the reader shall see it as it was written.
        tag = found.get("kind") if isinstance(found, Mapping) else context["tag"]
        return f"kind is {_short(tag)}{did_you_mean(str(tag), tags)}", _one_of(tags)
    if kind in {"union_tag_not_found", "length_kind"}:
        tags = [str(tag) for m in models for tag in _tags(m)]
        if kind == "length_kind":
            if isinstance(found, Mapping) and found.get("kind") is not None:
                tag = found["kind"]
                return f"kind is {_short(tag)}{did_you_mean(str(tag), tags)}", _one_of(tags)
            return f"found {_short(found)}", "a whole number, or a kind: " + " or ".join(tags)
        return f"'{name}' does not say its kind", _one_of(tags)
    if kind == "value_error":
        return str(detail["msg"]).removeprefix("Value error, "), None
    if kind in {"too_short", "too_long"}:
        least = kind == "too_short"
        n = context["min_length" if least else "max_length"]
        return f"found {_short(found)}", f"at {'least' if least else 'most'} {n} of them"
    if kind == "string_too_short":
        return "found an empty text", None
    if isinstance(found, float) and found != found:
        return "found nan", "a finite number"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", str(context["expected"]))
        guess = did_you_mean(str(found), choices)
        return f"found {_short(found)}{guess}", str(context["expected"])
    if kind in _LIMITS:
        word, key = _LIMITS[kind]
        return f"found {_short(found)}", f"{word} {context[key]:g}"
    return f"found {_short(found)}", _EXPECTED.get(kind) or _plain(str(detail["msg"]))


def _plain(message: str) -> str:
    """Return pydantic's sentence without its opening."""
    return re.sub(r"^(Input|Value) should (be|have) ", "", message)


def _short(value: Any) -> str:
    """Return a value as its file shows it, cut to a line."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, datetime.date | datetime.time):
        return f"the date {value.isoformat()}"
    # reprlib looks at a few items only: a value may be huge.
    text = reprlib.repr(value) if isinstance(value, list | tuple | dict) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _one_of(names: list[str]) -> str | None:
    return "one of " + ", ".join(sorted(names)) if names else None
