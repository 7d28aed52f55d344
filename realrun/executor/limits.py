"""What the executor on real models lacks, said by name before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from psdsim.commands import Admit, Command, Draft, Judge, Score
from psdsim.errors import InputError
from psdsim.schedules import Schedule
from realrun.executor.setup import MAX_NUM_BATCHED_TOKENS, Job


def check(schedule: str, command: Command) -> None:
    """Refuse a command that asks for more than chains of one drafter on one target.

    Raises
    ------
    psdsim.errors.InputError
        If so; it names the command's field.
    """
    lacking = None
    if isinstance(command, Draft):
        lacking = _of_draft(command)
    elif isinstance(command, Score):
        lacking = _of_score(command)
    elif isinstance(command, Judge) and command.ids is not None:
        lacking = "Judge.ids"
    elif isinstance(command, Admit) and command.n_decode_tokens is not None:
        lacking = "Admit.n_decode_tokens (chunked prefill)"
    if lacking is not None:
        raise InputError(f"schedule '{schedule}' uses {lacking}, which realrun lacks")


def _of_draft(draft: Draft) -> str | None:
    fields = {
        "passes": draft.passes is not None,
        "width": draft.width != 1,
        "inputs": draft.inputs != 1,
        "tree": draft.tree is not None,
        "candidates": draft.candidates != 1,
        "variant": type(draft.variant) is not int or draft.variant != 0,
        # The rule would have to run between two forwards, in the drafter's process.
        "stop": draft.stop is not None,
    }
    return next((f"Draft.{name}" for name, used in fields.items() if used), None)


def _of_score(score: Score) -> str | None:
    of: Any = score.of
    fields = {
        "rows": score.rows is not None,
        "on": score.on != 0,
        "ranks": score.ranks != 0,
        "chunks": score.chunks is not None,
        "bonus=False without peek": not score.bonus and score.peek is None,
        "of with bonus=False": of is not None and not score.bonus,
        "of a draft with after": of is not None and bool(np.any(of.command.after)),
    }
    return next((f"Score.{name}" for name, used in fields.items() if used), None)


def check_budget(schedule: Schedule, job: Job) -> None:
    """Refuse what no target pass can take, as the simulator does.

    Raises
    ------
    psdsim.errors.InputError
        If a prompt, or the largest pass of the schedule, is beyond `MAX_NUM_BATCHED_TOKENS`.
    """
    budget = MAX_NUM_BATCHED_TOKENS
    lengths = [prompt.size for prompt in job.prompts]
    longest = int(np.argmax(lengths))
    if lengths[longest] > budget:
        raise InputError(
            f"request {longest} has {lengths[longest]} prompt tokens and one pass takes {budget}",
            expected="shorter prompts",
        )
    n_seqs = schedule.capacity // schedule.n_groups
    if n_seqs * schedule.rows > budget:
        raise InputError(
            f"verifying {n_seqs} requests with k={schedule.k} feeds {n_seqs * schedule.rows} "
            f"tokens and one pass takes {budget}",
            expected="a smaller batch or k",
        )
