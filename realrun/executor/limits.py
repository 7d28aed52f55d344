"""What the executor on real models lacks, said by name before anything runs."""

from __future__ import annotations

from psdsim.commands import Draft, Judge, Score
from psdsim.errors import InputError


def check(schedule: str, command: Draft | Score | Judge) -> None:
    """Refuse a command that asks for more than chains of one drafter on one target.

    Raises
    ------
    psdsim.errors.InputError
        If so; it names the command's field.
    """
    lacking = _of_draft(command) if isinstance(command, Draft) else None
    if isinstance(command, Score):
        lacking = _of_score(command)
    if isinstance(command, Judge) and command.ids is not None:
        lacking = "Judge.ids"
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
        "stop": draft.stop is not None,
    }
    return next((f"Draft.{name}" for name, used in fields.items() if used), None)


def _of_score(score: Score) -> str | None:
    fields = {
        "rows": score.rows is not None,
        "on": score.on != 0,
        "ranks": score.ranks != 0,
        "of": score.of is not None,
        "bonus=False without peek": not score.bonus and score.peek is None,
    }
    return next((f"Score.{name}" for name, used in fields.items() if used), None)
