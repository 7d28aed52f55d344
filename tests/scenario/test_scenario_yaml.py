"""The YAML reader: YAML 1.2 numbers, lines of keys, one sentence for what is wrong."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psdsim import InputError
from psdsim.scenario.yaml_reader import read_yaml


@pytest.mark.parametrize(
    "text, value",
    [
        ("1e3", 1000.0),
        ("1e-3", 0.001),
        ("-0.5E+2", -50.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("+7", 7),
        ("-7", -7),
        ("1_000", 1000),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1:30", "1:30"),
        ("1.2.3", "1.2.3"),
        ("2020-13-41", "2020-13-41"),
        ("e5", "e5"),
        (".", "."),
        ("'5'", "5"),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("yes", True),
        ("off", False),
        ("null", None),
        ("~", None),
    ],
)
def test_scalars(text, value):
    found = read_yaml(f"a: {text}", "x")[0]["a"]
    assert (found, type(found)) == (value, type(value))


def test_nan():
    assert math.isnan(read_yaml(".nan", "x")[0])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_that_python_prints(value):
    found = read_yaml(repr(value), "x")[0]
    assert (found, type(found)) == (value, float)


def test_lines_of_keys_and_of_list_items():
    text = "a:\n  b: 1\n  c:\n    - 2\n    - {d: 3}\n"
    data, lines = read_yaml(text, "x")
    assert data == {"a": {"b": 1, "c": [2, {"d": 3}]}}
    assert lines[("a",)] == 1
    assert lines[("a", "b")] == 2
    assert lines[("a", "c")] == 3
    assert lines[("a", "c", 0)] == 4
    assert lines[("a", "c", 1, "d")] == 5


def test_anchors_and_merges_are_yaml_too():
    data, _ = read_yaml("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: *a\n", "x")
    assert data["b"] == {"x": 3, "y": 2}
    assert data["c"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    "text, message",
    [
        ("a: 1\na: 2", "x: line 2: the key 'a' stands twice"),
        ("a:\n  b: 1\n  b: 1", "x: line 3: the key 'b' stands twice"),
        ("- {c: 1, c: 2}", "x: line 1: the key 'c' stands twice"),
        ("1: 2", "x: line 1: the key '1' is of type int; expected a name"),
        ("a: 1\nyes: 2", "x: line 2: the key 'yes' is of type bool"),
        ("null: 2", "x: line 1: the key 'null' is of type null"),
        ("[1]: 2", "x: line 1: a key is a list or a mapping; expected a name"),
        ("? {a: 1}\n: 2", "x: line 1: a key is a list or a mapping"),
        ("a: &a [*a]", "x: line 1: an anchor holds itself"),
        ("a: &a {b: *a}", "x: line 1: an anchor holds itself"),
        ("a: *b", "x: line 1: is not YAML: found undefined alias 'b'"),
        ("a: !!python/object/apply:os.system [ls]", "found the tag '!!python/object/apply"),
        ("a: !mine 1", "x: line 1: found the tag '!mine'; expected plain values"),
        ("a: !!timestamp 2020-01-01", "found the tag '!!timestamp'"),
        ("a: !!float b", "x: holds a value that can't be read"),
        ("a: !!bool b", "x: holds a value that can't be read"),
        ("a: " + "9" * 5000, "x: holds a value that can't be read"),
        ("a: 1\n---\nb: 2", "x: line 2: is not YAML: but found another document"),
        ("a: 1\nb: \x07", "x: line 2: is not YAML: it holds the control character #x07"),
        ("a: 1\n\tb: 2", "x: line 2: is not YAML: found character '\\t'"),
        ("a: {b: 1", "x: line 1: is not YAML: expected ',' or '}'"),
        ("a: 'b", "x: line 1: is not YAML: found unexpected end of stream"),
        ("a: " + "[" * 40 + "]" * 40, "is nested too deeply; expected at most 32 levels"),
        ("a: " + "[" * 3000, "is nested too deeply"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(InputError) as error:
        read_yaml(text, "x")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_repeated_repetition_is_read_once():
    """Twenty levels of ten aliases each would be 10^20 items if each were looked at."""
    lines = ["a0: &a0 [1, 2]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 21)]
    data, _ = read_yaml("\n".join(lines), "x")
    assert len(data["a20"]) == 10


def test_empty():
    assert read_yaml("# nothing\n", "x") == (None, {})
