"""Replay of a recorded run: accepted drafts of every round of every request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from psdsim.acceptance.base import AcceptanceModel, JudgedBy
from psdsim.acceptance.convert import conditional_from_unconditional
from psdsim.acceptance.counts import unconditional_from_histogram
from psdsim.acceptance.fields import Count, DraftLength, check_draft_length
from psdsim.acceptance.law import FloatArray, IntArray
from psdsim.acceptance.replay_file import read_rounds
from psdsim.errors import InputError


class Replay(AcceptanceModel):
    """Recorded accepted drafts, one list a request; request r of a run replays list r.

    It binds k and the kind of schedule: chain rounds (sd, minedraft) or, with ``bonus=False``,
    passes without a bonus row (pearl). Give the lists, or a file: JSON, JSON lines or CSV;
    `psdsim.acceptance.replay_file.read_rounds` says how it looks.

    Examples
    --------
    >>> Replay(k=2, rounds=((2, 0), (1,))).pmf(2).round(12).tolist()
    [0.333333333333, 0.333333333333, 0.333333333333]
    """

    judged_by: ClassVar[JudgedBy] = "replay"

    kind: Literal["replay"] = Field("replay", description="A recorded run.")
    k: DraftLength = Field(description="Drafted tokens per round of the recording.")
    path: str | None = Field(None, min_length=1, description="File, relative to the scenario's.")
    bonus: Annotated[bool, Field(strict=True)] = Field(
        True,
        description="True: chain rounds, whose last row gives a token of its own (sd, minedraft). "
        "False: passes whose last row tests the first draft of the next block (pearl).",
    )
    rounds: tuple[tuple[Count, ...], ...] | None = Field(
        None, description="Accepted drafts of each round, one list a request."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.path is None) == (self.rounds is None):
            found = "neither" if self.path is None else "both"
            raise ValueError(f"found {found}; expected either path or rounds")
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
        rounds = read_rounds(path, self.k)
        problem = _problem(rounds, self.k)
        if problem:
            raise InputError(problem, where=str(path))
        return self.model_copy(update={"path": None, "rounds": rounds})

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
        if not self.bonus:
            raise InputError(
                "recorded passes without a bonus row have no law of chain rounds",
                expected="acceptance.bonus: true, or another kind",
                where="acceptance",
            )
        pooled = np.concatenate(self.recorded())
        counts = np.bincount(pooled, minlength=self.k + 1)
        return conditional_from_unconditional(unconditional_from_histogram(counts))

    def notes(self, k: int) -> list[str]:
        """Say what a replay binds, and that runs are not paired."""
        self.check_k(k)
        what = f"{len(self.rounds)} recorded requests" if self.rounds else f"the file {self.path}"
        return [
            f"acceptance replays {what} at k={self.k}, from the first again where a run has more: "
            "it speaks of the recorded schedule alone, so schedules are not paired"
        ]


def _problem(rounds: tuple[tuple[int, ...], ...], k: int) -> str | None:
    if not rounds:
        return "the recording is empty"
    for index, row in enumerate(rounds):
        if not row:
            return f"request {index} has no rounds"
        if max(row) > k:
            return f"request {index} has a round with {max(row)} accepted drafts at k={k}"
    return None
