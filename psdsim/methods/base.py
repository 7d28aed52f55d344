"""What a method is: schedule, drafter, length policy, selector and verifier, with knobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from psdsim.errors import InputError, did_you_mean
from psdsim.scenario import Scenario
from psdsim.schedules import Schedule
from psdsim.verdict import PLAIN, Proposals


@dataclass(frozen=True)
class Knob:
    """A parameter of a method.

    Parameters
    ----------
    name
        On the command line: ``method:name=value``.
    default
        Its value where none is given.
    low, high
        Bounds, both allowed.
    meaning
        In words, with the unit.
    source
        Where the default is from; ``assumed`` where no source gives one.
    whole
        Whole numbers only.
    simulated
        It says what a simulated drafter is like; a real one is as it is.
    """

    name: str
    default: float
    low: float
    high: float
    meaning: str
    source: str
    whole: bool = False
    simulated: bool = False

    def read(self, text: str | float, where: str) -> float:
        """Return a value, or raise `InputError`."""
        kind = "whole number" if self.whole else "number"
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not self.low <= value <= self.high or (self.whole and value != round(value)):
            raise InputError(
                f"{where} has {self.name}={text}",
                expected=f"a {kind} from {self.low:g} to {self.high:g}",
                where="--methods",
            )
        return value


@dataclass(frozen=True)
class Parts:
    """The five parts of a method, in a few words each."""

    schedule: str
    drafter: str = "draft model, one forward a token"
    length: str = "k"
    selector: str = "all drafted tokens"
    verifier: str = "lossless"


class Method:
    """A published system as a combination of parts, with its knobs.

    Subclasses say what is their own: a schedule, and how a scenario looks for them.

    Parameters
    ----------
    values
        Knobs that don't have their default, by name.
    """

    name: ClassVar[str]
    """Name on the command line."""
    paper: ClassVar[str]
    """Where it was published."""
    summary: ClassVar[str]
    """Mechanism in one sentence."""
    parts: ClassVar[Parts]
    """Schedule, drafter, length policy, selector, verifier."""
    lossless: ClassVar[bool] = True
    """Whether the target's distribution is kept."""
    unknown: ClassVar[str] = ""
    """What no source says, and what is assumed in its place."""
    knobs: ClassVar[tuple[Knob, ...]] = ()
    schedule: ClassVar[type[Schedule]]
    own_drafter: ClassVar[bool] = False
    """True: it drafts with something else than the scenario's draft model."""
    stacks: ClassVar[bool] = False
    """True: it only changes the scenario, and can be put on top of another method with +."""
    closed_form: ClassVar[str | None] = None
    """The schedule whose closed form holds on the adapted scenario, if one does."""

    def __init__(self, values: Mapping[str, str | float] | None = None) -> None:
        known = {knob.name: knob for knob in self.knobs}
        self.values: dict[str, float] = {knob.name: knob.default for knob in self.knobs}
        self.stated = frozenset(values or {})
        for name, text in (values or {}).items():
            if name not in known:
                raise InputError(
                    f"method '{self.name}' has no knob '{name}'{did_you_mean(name, known)}",
                    expected=f"one of {', '.join(known)}" if known else "no knob: it has none",
                    where="--methods",
                )
            self.values[name] = known[name].read(text, f"method '{self.name}'")

    def __getitem__(self, knob: str) -> float:
        return self.values[knob]

    def count(self, knob: str) -> int:
        """Return a knob of whole numbers."""
        return int(self.values[knob])

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Return the scenario as the method has it: its drafter's times, its acceptance."""
        return scenario

    def proposals(self, scenario: Scenario, k: int) -> Proposals:
        """Return what its drafter has beyond a first choice; of the adapted scenario."""
        return PLAIN

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Return further arguments of the schedule's class; of the adapted scenario."""
        return {}

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Return what is assumed for it on this (unadapted) scenario, a line each."""
        return []

    def make(
        self, adapted: Scenario, k: int, capacity: int, chunked: bool = False
    ) -> Callable[[], Schedule]:
        """Return what builds its schedule."""
        return partial(self.schedule, k, capacity, chunked=chunked, **self.options(adapted, k))


class Stacked(Method):
    """A method with others on top, each of which changes the scenario that the one below has.

    Parameters
    ----------
    name
        As given.
    base
        The method that runs.
    tops
        From below to the top.
    """

    def __init__(self, name: str, base: Method, tops: list[Method]) -> None:
        self.name = name  # type: ignore[misc]
        self._base, self._tops = base, tops
        self.values, self.stated = base.values, base.stated
        self.schedule = base.schedule  # type: ignore[misc]
        self.own_drafter = base.own_drafter  # type: ignore[misc]
        self.closed_form = base.closed_form  # type: ignore[misc]
        self.lossless = base.lossless and all(top.lossless for top in tops)  # type: ignore[misc]
        self.paper = "; ".join(dict.fromkeys(m.paper for m in (base, *tops)))  # type: ignore[misc]
        self.summary = base.summary  # type: ignore[misc]
        self.parts = base.parts  # type: ignore[misc]

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        """Adapt to the base first."""
        for method in (self._base, *self._tops):
            scenario = method.adapt(scenario, k)
        return scenario

    def proposals(self, scenario: Scenario, k: int) -> Proposals:
        """Return the base's."""
        return self._base.proposals(scenario, k)

    def options(self, scenario: Scenario, k: int) -> dict[str, Any]:
        """Return the base's, and what the others add."""
        out: dict[str, Any] = {}
        for method in (*self._tops, self._base):
            out |= method.options(scenario, k)
        return out

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        """Return everybody's, on the scenario that each of them finds."""
        out: list[str] = []
        for method in (self._base, *self._tops):
            out += method.notes(scenario, k)
            scenario = method.adapt(scenario, k)
        return out
