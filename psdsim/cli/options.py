"""Options that commands share, and how their texts are read."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from psdsim.commands import MAX_K
from psdsim.errors import InputError
from psdsim.scenario import Scenario, parse_assignment
from psdsim.schedules import schedule_class

ScenarioFile = Annotated[
    Path | None,
    typer.Argument(
        help="Scenario file (YAML or TOML); none: the built-in one.", show_default=False
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY.PATH=VALUE", help="Change a key of the scenario. Can be given again."
    ),
]
Seed = Annotated[int, typer.Option(help="Root of all randomness.")]
Output = Annotated[Path | None, typer.Option(help="Write the result to this file as well.")]
BasisOption = Annotated[
    str,
    typer.Option(help="What is held equal: step-batch, concurrency or gpus."),
]


def load_scenario(path: Path | None, assignments: list[str] | None) -> Scenario:
    """Return the scenario of a command, changes applied."""
    overrides = dict(parse_assignment(text) for text in assignments or [])
    if path is None:
        return Scenario.builtin(overrides)
    return Scenario.load(path, overrides)


def parse_ks(text: str) -> list[int]:
    """Return draft lengths from ``1:6`` (inclusive), ``1,2,4`` or ``3``.

    Examples
    --------
    >>> parse_ks("1:3,6")
    [1, 2, 3, 6]
    """
    out: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:\s*:\s*(\d+))?\s*", part)
        if match is None:
            raise InputError(
                f"'{text}' is not a draft length",
                expected="a whole number of at least 0, a list (1,2,4) or a range (1:6)",
                where="--k",
            )
        low = int(match[1])
        high = int(match[2]) if match[2] is not None else low
        if high < low:
            raise InputError(f"the range {part.strip()} is empty", where="--k")
        if high > MAX_K:
            raise InputError(f"k is {high}", expected=f"at most {MAX_K}", where="--k")
        out += range(low, high + 1)
    return list(dict.fromkeys(out))


def parse_schedules(text: str) -> list[str]:
    """Return schedule names from a comma-separated list."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("no schedule is named", where="--schedules")
    for name in names:
        schedule_class(name)
    return list(dict.fromkeys(names))


def parse_basis(text: str) -> str:
    """Return a basis name, or raise `InputError`."""
    from psdsim.run.basis import Basis

    if text not in {str(basis) for basis in Basis}:
        raise InputError(
            f"'{text}' is not a basis",
            expected="one of " + ", ".join(str(b) for b in Basis),
            where="--basis",
        )
    return text


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give a progress callback that draws a bar on a terminal, and nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn(text), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(text, total=1)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def terminal_width() -> int | None:
    """Return the columns of the terminal that stdout is, or None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
