"""Tables: alignment, splitting at the terminal's width, figures with few digits."""

from __future__ import annotations

import pytest

from psdsim.cli.tables import aligned, fitted, number, percent

HEADER = ["name", "a", "bb", "ccc"]
ROWS = [["x", "1", "22", "333"], ["long name", "4", "5", "6"]]


def test_aligned():
    assert aligned(HEADER, ROWS) == (
        "name       a  bb  ccc\n---------------------\nx          1  22  333\nlong name  4   5    6"
    )


def test_split_repeats_the_first_column():
    parts = fitted(HEADER, ROWS, 17).split("\n\n")
    assert len(parts) == 2
    assert all(part.splitlines()[0].startswith("name") for part in parts)
    assert all(len(line) <= 17 for part in parts for line in part.splitlines())
    assert fitted(HEADER, ROWS, None) == fitted(HEADER, ROWS, 21) == aligned(HEADER, ROWS)


@pytest.mark.parametrize("width", [1, 10, 14])
def test_nothing_is_lost_however_narrow(width):
    text = fitted(HEADER, ROWS, width)
    for cell in ("333", "22", "1", "6"):
        assert cell in text


def test_number():
    assert number(None) == number(float("nan")) == "-"
    assert number(3) == "3"
    assert number(1234.5) == "1234"
    assert number(0.0123456) == "0.01235"
    assert percent(-0.1234) == "-12.3%"
    assert percent(None) == "-"


def test_progress_bar_on_a_terminal(monkeypatch, capsys):
    from rich.console import Console

    from psdsim.cli import options

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert Console(stderr=True).is_terminal
    with options.progress_bar("working") as progress:
        assert progress is not None
        progress(1, 3)
        progress(3, 3)
    assert "working" in capsys.readouterr().err


def test_no_progress_bar_elsewhere(monkeypatch):
    from psdsim.cli import options

    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with options.progress_bar("working") as progress:
        assert progress is None
