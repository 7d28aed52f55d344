"""`--set key.path=value`: change single keys of a scenario before it is checked."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from psdsim.errors import InputError
from psdsim.scenario.yaml_reader import Lines, read_yaml


def parse_assignment(text: str) -> tuple[str, Any]:
    """Split ``key.path=value``; the value is read as YAML.

    Examples
    --------
    >>> parse_assignment("acceptance.alpha=0.8")
    ('acceptance.alpha', 0.8)
    >>> parse_assignment("workload={kind: poisson, rate: 2.0}")
    ('workload', {'kind': 'poisson', 'rate': 2.0})
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not all(part.strip() for part in key.split(".")):
        raise InputError(
            f"found '{text}'", expected="key.path=value, as in acceptance.alpha=0.8", where="--set"
        )
    try:
        return key, read_yaml(value, key)[0]
    except InputError as error:
        raise InputError(
            f"the value '{value}' of {key} can't be read: {error.what}",
            expected=error.expected,
            where="--set",
        ) from None


def parse_assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Return key paths and values of several assignments; one that another undoes is refused.

    Examples
    --------
    >>> parse_assignments(["acceptance.alpha=0.8", "engine.max_num_seqs=8"])
    {'acceptance.alpha': 0.8, 'engine.max_num_seqs': 8}
    """
    overrides: dict[str, Any] = {}
    for text in texts:
        key, value = parse_assignment(text)
        for earlier in overrides:
            if earlier == key or earlier.startswith(key + "."):
                raise InputError(
                    f"'{text}' undoes the setting of {earlier} before it",
                    expected="each key once",
                    where="--set",
                )
        overrides[key] = value
    return overrides


def apply_overrides(
    data: Mapping[str, Any], overrides: Mapping[str, Any], lines: Lines
) -> tuple[dict[str, Any], Lines]:
    """Return data with some keys replaced, and the lines of those that still stand in the file.

    A replaced figure loses its ASSUMED mark: the user has stated it now.
    """
    changed = copy.deepcopy(dict(data))
    left = dict(lines)
    for path, value in overrides.items():
        keys = path.split(".")
        place: Any = changed
        for key in keys[:-1]:
            if place.get(key) is None:
                place[key] = {}
            place = place[key]
            if not isinstance(place, dict):
                raise InputError(
                    f"'{path}' goes into '{key}', which is {place!r}",
                    expected="a key path of the scenario",
                    where="--set",
                )
        place[keys[-1]] = value
        left = {p: n for p, n in left.items() if p[: len(keys)] != tuple(keys)}
        assumed = changed.get("assumed")
        if isinstance(assumed, dict):
            changed["assumed"] = {
                k: v for k, v in assumed.items() if not (k == path or k.startswith(path + "."))
            }
    return changed, left
