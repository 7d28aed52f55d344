"""Replay of a recorded run: accepted drafts of every round of every request."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from psdsim.acceptance.base import AcceptanceModel, JudgedBy
from psdsim.acceptance.convert import conditional_from_unconditional
from psdsim.acceptance.counts import unconditional_from_histogram
from psdsim.acceptance.fields import Count, DraftLength, check_draft_length
from psdsim.acceptance.law import FloatArray, IntArray
from psdsim.errors import InputError


class Replay(AcceptanceModel):
    """Recorded accepted drafts, one list a request; request r of a run replays list r.

    It binds k and the kind of schedule (chain rounds: sd, minedraft). Give the lists, or a file:
    JSON (a list of lists), JSON lines (a list a line, or an object with the key ``accepted``), or
    CSV with the columns ``request`` and ``accepted``, one row a round.

    Examples
    --------
    >>> Replay(k=2, rounds=((2, 0), (1,))).pmf(2).round(12).tolist()
    [0.333333333333, 0.333333333333, 0.333333333333]
    """

    judged_by: ClassVar[JudgedBy] = "replay"

    kind: Literal["replay"] = Field("replay", description="A recorded run.")
    k: DraftLength = Field(description="Drafted tokens per round of the recording.")
    path: str | None = Field(None, min_length=1, description="File, relative to the scenario's.")
    rounds: tuple[tuple[Count, ...], ...] | None = Field(
        None, description="Accepted drafts of each round, one list a request."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.path is None) == (self.rounds is None):
            raise ValueError("expected either path or rounds")
        if self.rounds is not None:
            problem = _problem(self.rounds, self.k)
            if problem:
                raise ValueError(problem)
        return self

    def resolve(self, base_dir: Path) -> Replay:
        """Return the same model with its file read in.

        Raises
        ------
        psdsim.errors.InputError
            If the file can't be read or holds anything but counts 0..k; file and line are named.
        """
        if self.path is None:
            return self
        path = base_dir / self.path
        rounds = _read(path)
        problem = _problem(rounds, self.k)
        if problem:
            raise InputError(problem, where=str(path))
        return Replay(k=self.k, rounds=rounds)

    def recorded(self) -> list[IntArray]:
        """Return the recorded rounds, one int64 array a request."""
        if self.rounds is None:
            raise InputError("the recording has not been read", where="acceptance.path")
        return [np.array(row, dtype=np.int64) for row in self.rounds]

    def check_k(self, k: int) -> None:
        """Refuse every k but the recorded one (0 drafts nothing and needs no recording)."""
        check_draft_length(k)
        if k not in (0, self.k):
            raise InputError(
                f"the recording has k={self.k} and k={k} is asked for",
                expected=f"k={self.k}",
                where="acceptance.k",
            )

    def conditional_rates(self, k: int) -> FloatArray:
        """Return the recorded rates by position, shape (k,)."""
        self.check_k(k)
        if k == 0:
            return np.zeros(0)
        pooled = np.concatenate(self.recorded())
        counts = np.bincount(pooled, minlength=self.k + 1)
        return conditional_from_unconditional(unconditional_from_histogram(counts))

    def notes(self, k: int) -> list[str]:
        """Say what a replay binds."""
        self.check_k(k)
        return [f"acceptance replays {len(self.rounds or ())} recorded requests at k={self.k}"]


def _problem(rounds: tuple[tuple[int, ...], ...], k: int) -> str | None:
    if not rounds:
        return "the recording is empty"
    for index, row in enumerate(rounds):
        if not row:
            return f"request {index} has no rounds"
        if max(row) > k:
            return f"request {index} has a round with {max(row)} accepted drafts at k={k}"
    return None


def _read(path: Path) -> tuple[tuple[int, ...], ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"can't be read: {reason}", where=str(path)) from None
    if path.suffix == ".csv":
        return _from_csv(text, path)
    if path.suffix == ".jsonl":
        rows = [
            (_parse(line, f"{path}: line {number}"), f"{path}: line {number}")
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip()
        ]
    elif path.suffix == ".json":
        data = _parse(text, str(path))
        if not isinstance(data, list):
            raise InputError("the file is not a list", expected="a list of lists", where=str(path))
        rows = [(row, f"{path}: entry {i}") for i, row in enumerate(data)]
    else:
        raise InputError(
            f"has the ending '{path.suffix}'", expected=".json, .jsonl or .csv", where=str(path)
        )
    return tuple(_row(row, where) for row, where in rows)


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", where=where) from None


def _row(value: Any, where: str) -> tuple[int, ...]:
    if isinstance(value, dict):
        value = value.get("accepted")
    good = isinstance(value, list) and all(type(x) is int and x >= 0 for x in value)
    if not good:
        raise InputError(
            f"found {str(value)[:60]}",
            expected="a list of whole numbers of at least 0",
            where=where,
        )
    return tuple(value)


def _from_csv(text: str, path: Path) -> tuple[tuple[int, ...], ...]:
    reader = csv.DictReader(text.splitlines())
    columns = reader.fieldnames or []
    for name in ("request", "accepted"):
        if name not in columns:
            raise InputError(f"the column '{name}' is missing", where=f"{path}: line 1")
    rows: dict[str, list[int]] = {}
    for record in reader:
        value = record["accepted"]
        if value is None or not value.strip().isdigit():
            raise InputError(
                f"accepted is {value!r}",
                expected="a whole number of at least 0",
                where=f"{path}: line {reader.line_num}",
            )
        rows.setdefault(record["request"], []).append(int(value))
    return tuple(tuple(row) for row in rows.values())
