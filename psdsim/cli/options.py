"""Options that commands share, and how their texts are read."""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from psdsim.commands import MAX_K
from psdsim.errors import InputError, did_you_mean
from psdsim.methods import METHODS, method
from psdsim.scenario import Scenario, parse_assignments

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


def whole(text: str | int) -> int:
    """Return a whole number; for options, whose refusals then say what was found.

    Examples
    --------
    >>> whole("12")
    12
    """
    if isinstance(text, str) and re.fullmatch(r"-?[0-9]{1,18}", text.strip()) is None:
        raise ValueError(f"found '{shortened(text)}'; expected a whole number of at most 18 digits")
    return int(text)


def seconds(text: str | float) -> float:
    """Return a time of at least 0; for options, whose refusals then say what was found.

    Examples
    --------
    >>> seconds("0.5")
    0.5
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"found '{text}'; expected seconds, at least 0")
    return value


def shortened(text: str) -> str:
    """Return a text that fits into a message."""
    return text if len(text) <= 60 else text[:57] + "..."


Seed = Annotated[int, typer.Option(help="Root of all randomness.", parser=whole, metavar="INTEGER")]
DraftLength = Annotated[
    int, typer.Option(help="Drafted tokens per round.", parser=whole, metavar="INTEGER")
]
Replications = Annotated[
    int, typer.Option(help="Independent repetitions.", parser=whole, metavar="INTEGER")
]
Processes = Annotated[
    int | None,
    typer.Option(
        help="Worker processes; none: as many as pay.",
        parser=whole,
        metavar="INTEGER",
        show_default=False,
    ),
]
Output = Annotated[Path | None, typer.Option(help="Write the result to this file as well.")]
BasisOption = Annotated[
    str,
    typer.Option(help="What is held equal: step-batch, concurrency or gpus."),
]


def load_scenario(
    path: Path | None, assignments: list[str] | None, output: Path | None = None
) -> Scenario:
    """Return the scenario of a command, changes applied; its file is not to be written over."""
    if path is not None and output is not None and path.resolve() == output.resolve():
        raise InputError(f"'{output}' is the scenario", expected="another file", where="--output")
    overrides = parse_assignments(assignments or [])
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
        match = re.fullmatch(r"\s*([0-9]{1,9})(?:\s*:\s*([0-9]{1,9}))?\s*", part)
        if match is None:
            raise InputError(
                f"'{shortened(text)}' is not a draft length",
                expected="a whole number of at least 0, a list (1,2,4) or a range (1:6)",
                where="--k",
            )
        low = int(match[1])
        high = int(match[2]) if match[2] is not None else low
        if high < low:
            raise InputError(
                f"the range {part.strip()} is empty", expected=f"{high}:{low}", where="--k"
            )
        if high > MAX_K:
            raise InputError(f"k is {high}", expected=f"at most {MAX_K}", where="--k")
        out += range(low, high + 1)
    return list(dict.fromkeys(out))


def parse_schedules(text: str, where: str = "--schedules") -> list[str]:
    """Return schedule names from a comma-separated list; `where` names the option."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(
            "no schedule is named", expected="some of " + ", ".join(METHODS), where=where
        )
    for name in names:
        try:
            method(name)
        except InputError as error:
            raise InputError(error.what, expected=error.expected, where=where) from None
    return list(dict.fromkeys(names))


def parse_schedule(text: str) -> str:
    """Return the one schedule that ``--schedule`` names."""
    names = parse_schedules(text, "--schedule")
    if len(names) != 1:
        raise InputError(
            f"'{text}' names {len(names)} schedules",
            expected="one (psdsim compare takes several)",
            where="--schedule",
        )
    return names[0]


def parse_processes(n: int | None) -> int | None:
    """Return the worker processes asked for, at least 1."""
    if n is not None and n < 1:
        raise InputError(f"processes is {n}", expected="at least 1", where="--processes")
    return n


def parse_basis(text: str) -> str:
    """Return a basis name, or raise `InputError`."""
    from psdsim.run.basis import Basis

    if text not in {str(basis) for basis in Basis}:
        raise InputError(
            f"'{text}' is not a basis{did_you_mean(text, [str(b) for b in Basis])}",
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
