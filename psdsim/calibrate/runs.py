"""Measured runs: a recording with what its metadata must say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import MAX_K
from psdsim.errors import InputError
from psdsim.methods import METHODS
from psdsim.records import Recording, StepKind, read_recording
from psdsim.schedules import SCHEDULES, Schedule, schedule_class

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """One run of one schedule.

    Parameters
    ----------
    file
        Name of the file, without folders.
    schedule
        Its class.
    k
        Drafted tokens per round; 0 where nothing drafts.
    recording
        Everything that was recorded.
    """

    file: str
    schedule: type[Schedule]
    k: int
    recording: Recording

    @property
    def metadata(self) -> dict[str, Any]:
        """What was run, and on what."""
        return self.recording.metadata

    @property
    def drafts(self) -> bool:
        """Whether anything is drafted."""
        return self.schedule.drafts and self.k > 0

    @property
    def forced(self) -> dict[str, Any] | None:
        """The acceptance model that was forced on the run; None where verdicts were measured."""
        value = self.metadata.get("acceptance")
        return value if isinstance(value, dict) else None

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which requests got all their tokens (all but for a partial run)."""
        done: NDArray[np.bool_] = ~np.isnan(self.recording.requests["finish_s"])
        return done

    def decode_steps(self) -> Columns:
        """Return the steps that verified or decoded, without those that also read prompts."""
        s = self.recording.steps
        mask = (s["kind"] == int(StepKind.DECODE)) & (s["n_verify_seqs"] > 0)
        mask &= s["n_prefill_tokens"] == 0
        return {name: column[mask] for name, column in s.items()}

    def prefill_steps(self) -> Columns:
        """Return the steps that only read prompts."""
        s = self.recording.steps
        mask = (s["kind"] == int(StepKind.PREFILL)) & (s["n_emitted_tokens"] > 0)
        return {name: column[mask] for name, column in s.items()}


def read_run(path: Path) -> MeasuredRun:
    """Read a measured run.

    Raises
    ------
    psdsim.errors.InputError
        If the file or its metadata can't be used; the key is named.
    """
    recording = read_recording(path)
    metadata, where = recording.metadata, str(path)
    for key in ("schedule", "k"):
        if key not in metadata:
            raise InputError(f"the key '{key}' is missing", where=f"{where}: metadata")
    name = str(metadata["schedule"])
    if name not in SCHEDULES and name.split(":")[0] in METHODS:
        # Its rounds say what was chosen to be tested, not how drafts fare.
        raise InputError(
            f"the run is of the method '{name}', whose drafts are chosen by confidences or times",
            expected=f"a run of one of {', '.join(SCHEDULES)}",
            where=f"{where}: metadata: schedule",
        )
    try:
        schedule = schedule_class(name)
    except InputError as error:
        raise InputError(
            error.what, expected=error.expected, where=f"{where}: metadata: schedule"
        ) from None
    k = metadata["k"]
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= MAX_K:
        raise InputError(
            f"k is {str(k)[:40]}", expected=f"a whole number 0 to {MAX_K}",
            where=f"{where}: metadata",
        )  # fmt: skip
    if metadata.get("bonus", schedule.bonus) is not schedule.bonus:
        raise InputError(
            f"bonus is {str(metadata['bonus'])[:40]} and the schedule is {schedule.name}",
            expected=f"{schedule.bonus}",
            where=f"{where}: metadata",
        )
    if recording.requests["request_id"].size == 0:
        raise InputError("the run has no requests", where=where)
    return MeasuredRun(path.name, schedule, k if schedule.drafts else 0, recording)
