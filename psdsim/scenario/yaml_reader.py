"""YAML as scenarios use it: plain data, the line of every key, one message for what is wrong."""

from __future__ import annotations

import re
from typing import Any

import yaml

from psdsim.errors import InputError

Lines = dict[tuple[str | int, ...], int]
"""Line number (from 1) of each key path."""

_DEEPEST = 32
_CORE = "tag:yaml.org,2002:"
_PLAIN = {_CORE + name for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_NAMES = {_CORE + "str", _CORE + "merge"}


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the numbers of YAML 1.2.

    PyYAML follows YAML 1.1, where ``1e-3`` is a text, ``1:30`` is 90, ``010`` is 8 and
    ``2020-13-41`` stops the reader.
    """


_Loader.yaml_implicit_resolvers = {
    first: [
        pair for pair in pairs if pair[0] in {_CORE + name for name in ("bool", "null", "merge")}
    ]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    _CORE + "int", re.compile(r"[-+]?(?:0|[1-9][0-9_]*)\Z"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    _CORE + "float",
    re.compile(
        r"""[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9]+)(?:e[-+]?[0-9]+)?\Z
        |[-+]?[0-9][0-9_]*e[-+]?[0-9]+\Z
        |[-+]?\.inf\Z
        |\.nan\Z""",
        re.IGNORECASE | re.VERBOSE,
    ),
    list("-+.0123456789"),
)


def read_yaml(text: str, where: str) -> tuple[Any, Lines]:
    """Return what a YAML text holds and the line of each key path.

    Parameters
    ----------
    text
        One YAML document.
    where
        File name or option, for messages.

    Raises
    ------
    psdsim.errors.InputError
        If it isn't YAML, a key stands twice or isn't a name, or it nests too deeply.

    Examples
    --------
    >>> read_yaml("a: {b: 1e-3}", "example")
    ({'a': {'b': 0.001}}, {(): 1, ('a',): 1, ('a', 'b'): 1})
    """
    lines: Lines = {}
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, lines
        _collect(node, (), lines, where, set(), ())
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = where if mark is None else f"{where}: line {mark.line + 1}"
        problem = error.problem or error.context
        raise InputError(f"is not YAML: {problem}", where=place) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(
            f"is not YAML: it holds the control character #x{error.character:02x}",
            where=f"{where}: line {line}",
        ) from None
    except RecursionError:
        raise _too_deep(where) from None
    except InputError:
        raise
    except (ValueError, KeyError) as error:
        raise InputError(f"holds a value that can't be read: {error}", where=where) from None
    finally:
        if loader is not None:
            loader.dispose()


def _collect(
    node: yaml.Node,
    path: tuple[str | int, ...],
    lines: Lines,
    where: str,
    seen: set[int],
    parents: tuple[int, ...],
) -> None:
    """Note the lines of all keys; refuse doubled keys, keys that are no names, endless depth."""
    lines[path] = _line(node)
    here = f"{where}: line {_line(node)}"
    if id(node) in parents:
        raise InputError("an anchor holds itself", where=here)
    if node.tag not in _PLAIN:
        tag = node.tag.replace(_CORE, "!!")
        raise InputError(f"found the tag '{tag}'", expected="plain values", where=here)
    if len(parents) >= _DEEPEST:
        raise _too_deep(here)
    # A node that aliases repeat is looked into once: repeated repetition would take forever.
    if id(node) in seen:
        return
    seen.add(id(node))
    parents = (*parents, id(node))
    if isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            at = f"{where}: line {_line(key)}"
            name = str(key.value)
            if not isinstance(key, yaml.ScalarNode):
                raise InputError("a key is a list or a mapping", expected="a name", where=at)
            if key.tag not in _NAMES:
                kind = key.tag.rsplit(":", 1)[-1]
                raise InputError(
                    f"the key '{name}' is of type {kind}",
                    expected="a name (in quotes, if it is one)",
                    where=at,
                )
            if name in names:
                raise InputError(f"the key '{name}' stands twice", where=at)
            names.add(name)
            _collect(value, (*path, name), lines, where, seen, parents)
            lines[(*path, name)] = _line(key)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _collect(value, (*path, index), lines, where, seen, parents)


def _too_deep(where: str) -> InputError:
    return InputError(
        "is nested too deeply", expected=f"at most {_DEEPEST} levels of keys and lists", where=where
    )


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
