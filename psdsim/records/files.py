"""Writing files whole or not at all, and the commit that wrote them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from psdsim.errors import InputError


def check_output(path: Path, where: str | None = None) -> None:
    """Refuse, before any work is done, a path at which no file can stand.

    A folder, a device or a pipe is refused: the finished file takes the place of what is there.
    """
    place = path.resolve()
    if place.exists() and not place.is_file():
        kind = "a folder" if place.is_dir() else "no ordinary file"
        raise InputError(f"'{path}' is {kind}", expected="the name of a file", where=where)
    above = next(p for p in place.parents if p.exists())
    if not above.is_dir():
        raise InputError(
            f"'{path}' can't be written: {above} is a file", expected="a folder there", where=where
        )
    if not os.access(above, os.W_OK):
        raise InputError(
            f"'{path}' can't be written: {above} is closed to writing",
            expected="another folder",
            where=where,
        )


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place whole.

    Folders that are missing are made; of a link, what it points to is written.

    Raises
    ------
    psdsim.errors.InputError
        If it can't be written; no part of the file is left behind then.
    """
    check_output(path)
    place = path.resolve()
    part: Path | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=f".{place.stem[:40]}-", suffix=place.suffix, dir=place.parent
        )
        os.close(handle)
        part = Path(name)
        write(part)
        part.chmod(0o644)
        part.replace(place)
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", where=str(path)) from None
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_file(path, lambda part: part.write_text(text, encoding="utf-8"))


@cache
def commit() -> str | None:
    """Return the commit of the source tree this package runs from, if it runs from one."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True, text=True, check=True, timeout=5,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
