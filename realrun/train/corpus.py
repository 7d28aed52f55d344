"""The text that the built-in pair learns from: Python's standard library, as bytes."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from psdsim.errors import InputError

Bytes = NDArray[np.uint8]

_SKIPPED = {"site-packages", "__pycache__"}
_HELD_OUT = 13  # of 256 values of the first byte of the path's SHA-256


@dataclass(frozen=True)
class Corpus:
    """Bytes of all files, a zero byte in front of each, split by file.

    Parameters
    ----------
    train, held_out
        Bytes to learn from, and bytes never learned from, shape (n,) each.
    held_out_files
        The files that were held out, in order.
    source
        What it was made from, with a digest.
    """

    train: Bytes
    held_out: Bytes
    held_out_files: tuple[Path, ...]
    source: str


def standard_library() -> Path:
    """Return the folder of the running interpreter's standard library."""
    return Path(sysconfig.get_paths()["stdlib"])


def load_corpus(root: Path | None = None) -> Corpus:
    """Read every Python file below a folder.

    A file is held out by its path alone (5 % of all), so the split does not depend on which
    other files there are.

    Parameters
    ----------
    root
        Folder; None: the standard library of the running interpreter.

    Raises
    ------
    psdsim.errors.InputError
        If there is no Python file below it.
    """
    folder = standard_library() if root is None else root
    parts: dict[bool, list[bytes]] = {True: [], False: []}
    names: list[Path] = []
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder)
        if _SKIPPED.intersection(relative.parts):
            continue
        held_out = is_held_out(relative)
        text = path.read_bytes().replace(b"\0", b"")
        digest.update(text)
        parts[held_out].append(b"\0" + text)
        if held_out:
            names.append(path)
    if not parts[False] or not parts[True]:
        raise InputError("holds too few Python files", expected="hundreds", where=str(folder))
    version = ".".join(map(str, sys.version_info[:3]))
    what = f"standard library of Python {version}" if root is None else folder.name
    train, held = (
        np.frombuffer(b"".join(parts[part]), dtype=np.uint8).copy() for part in (False, True)
    )
    source = f"{what}, {train.size + held.size} bytes, SHA-256 {digest.hexdigest()[:16]}"
    return Corpus(train, held, tuple(names), source)


def is_held_out(relative: Path) -> bool:
    """Say whether a file, by its path below the corpus folder, is held out."""
    return hashlib.sha256(relative.as_posix().encode()).digest()[0] < _HELD_OUT


def held_out_text(root: Path | None = None) -> Bytes:
    """Return the held-out bytes alone, without reading the rest.

    Raises
    ------
    psdsim.errors.InputError
        If there are none.
    """
    folder = standard_library() if root is None else root
    parts = []
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder)
        if not _SKIPPED.intersection(relative.parts) and is_held_out(relative):
            parts.append(b"\0" + path.read_bytes().replace(b"\0", b""))
    if not parts:
        raise InputError("holds no held-out Python file", where=str(folder))
    return np.frombuffer(b"".join(parts), dtype=np.uint8).copy()


def windows(text: Bytes, n: int, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return `n` random windows of `length` bytes, shape (n, length)."""
    starts = rng.integers(0, text.size - length, n)
    picked: NDArray[np.int64] = text[starts[:, None] + np.arange(length)].astype(np.int64)
    return picked
