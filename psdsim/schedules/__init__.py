"""The table of schedules: a new one is a class in its own file and a line here."""

from psdsim.errors import InputError, did_you_mean
from psdsim.schedules.base import Schedule
from psdsim.schedules.minedraft import MineDraft
from psdsim.schedules.pearl import DraftAhead, Pearl
from psdsim.schedules.pearl_ablations import NoPostVerify, NoPreVerify
from psdsim.schedules.serial import Autoregressive, SpeculativeDecoding

SCHEDULES: dict[str, type[Schedule]] = {
    cls.name: cls
    for cls in (
        Autoregressive,
        SpeculativeDecoding,
        MineDraft,
        Pearl,
        DraftAhead,
        NoPostVerify,
        NoPreVerify,
    )
}
"""Every schedule by its name on the command line."""


def schedule_class(name: str) -> type[Schedule]:
    """Return the class of a schedule, or raise `InputError` with the nearest name."""
    if name not in SCHEDULES:
        raise InputError(
            f"there is no schedule '{name}'{did_you_mean(name, SCHEDULES)}",
            expected=f"one of {', '.join(SCHEDULES)}",
            where="--schedules",
        )
    return SCHEDULES[name]


__all__ = ["SCHEDULES", "Schedule", "schedule_class"]
