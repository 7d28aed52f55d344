"""Schedules as methods: the scenario's draft model, k tokens, all verified, lossless."""

from __future__ import annotations

from psdsim.methods.base import Method, Parts
from psdsim.schedules import SCHEDULES, Schedule


def plain_method(cls: type[Schedule]) -> type[Method]:
    """Return the method that is just this schedule."""
    drafter = Parts.drafter if cls.drafts else "none"
    body = {
        "name": cls.name,
        "paper": cls.source,
        "summary": cls.summary,
        "parts": Parts(schedule=cls.name, drafter=drafter, length="k" if cls.drafts else "-"),
        "schedule": cls,
        "closed_form": cls.name,
        "__doc__": f"The schedule ``{cls.name}``: {cls.summary}.",
        "__module__": __name__,
    }
    return type(f"Plain{cls.__name__}", (Method,), body)


PLAIN_METHODS: tuple[type[Method], ...] = tuple(plain_method(cls) for cls in SCHEDULES.values())
