"""The table of methods: published systems as schedule x drafter x length x selector x verifier.

A new one is a small class in a file of its own and a line here.
"""

from __future__ import annotations

from functools import lru_cache

from psdsim.errors import InputError, did_you_mean
from psdsim.methods import (
    blocks,
    dspark,
    ensemble,
    lengths,
    parallel,
    pearl,
    relaxed,
    selectors,
    trees,
)
from psdsim.methods.base import Knob, Method, Parts, Stacked
from psdsim.methods.plain import PLAIN_METHODS

METHODS: dict[str, type[Method]] = {
    cls.name: cls
    for family in (
        PLAIN_METHODS,
        pearl.FAMILY,
        parallel.FAMILY,
        selectors.FAMILY,
        lengths.FAMILY,
        dspark.FAMILY,
        trees.FAMILY,
        blocks.FAMILY,
        relaxed.FAMILY,
        ensemble.FAMILY,
    )
    for cls in family
}
"""Every method by its name on the command line."""


@lru_cache(maxsize=512)
def method(spec: str) -> Method:
    """Return a method by what the command line says of it.

    Parameters
    ----------
    spec
        A name; behind it knobs, ``name:knob=value:knob=value``; behind a ``+`` a method that is
        put on top (``pearl+distillspec:gain=0.05``).

    Raises
    ------
    psdsim.errors.InputError
        If there is no such method or knob, or it can't be put on top.

    Examples
    --------
    >>> method("minedraft").summary
    'two sub-batches: the target verifies one while the draft GPU drafts for the other'
    """
    pieces = spec.split("+")
    # The longest name wins: minedraft+tetris is a method of its own.
    for n in range(len(pieces), 0, -1):
        head, *knobs = "+".join(pieces[:n]).split(":")
        # Behind a knob, a + begins the next method.
        if head in METHODS and not any(":" in piece for piece in pieces[: n - 1]):
            base = METHODS[head](_values(spec, knobs))
            tops = [_on_top(spec, piece) for piece in pieces[n:]]
            return Stacked(spec, base, tops) if tops else base
    name = pieces[0].split(":")[0]
    raise InputError(
        f"there is no schedule or method '{name}'{did_you_mean(name, METHODS)}",
        expected=f"one of {', '.join(METHODS)}",
        where="--methods",
    )


def _on_top(spec: str, piece: str) -> Method:
    head, *knobs = piece.split(":")
    able = [name for name, cls in METHODS.items() if cls.stacks]
    if head not in METHODS or not METHODS[head].stacks:
        raise InputError(
            f"'{head}' can't be put on top of another method (in '{spec}')"
            f"{did_you_mean(head, able)}",
            expected=f"one of {', '.join(able)}" if able else None,
            where="--methods",
        )
    return METHODS[head](_values(spec, knobs))


def _values(spec: str, knobs: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for knob in knobs:
        name, equals, value = knob.partition("=")
        if not equals or not name or name in values:
            raise InputError(
                f"'{knob}' in '{spec}' is no knob", expected="name=value, each once",
                where="--methods",
            )  # fmt: skip
        values[name] = value
    return values


__all__ = ["METHODS", "Knob", "Method", "Parts", "Stacked", "method"]
