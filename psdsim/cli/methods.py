"""`psdsim methods`: the published systems, what is their own, their knobs, what is unknown."""

from __future__ import annotations

from textwrap import fill
from typing import Annotated, Any

import typer

from psdsim.cli.options import shortened
from psdsim.errors import InputError, did_you_mean


def methods_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Methods to describe in full; none: a line each.", show_default=False),
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="table or json.")] = "table",
) -> None:
    """List methods: schedule x drafter x length policy x selector x verifier, with their knobs."""
    from psdsim.cli.output import to_json
    from psdsim.methods import METHODS

    if format_ not in {"table", "json"}:
        raise InputError(
            f"'{shortened(format_)}' is not a format", expected="table or json", where="--format"
        )
    for name in names or ():
        if name not in METHODS:
            raise InputError(
                f"there is no method '{shortened(name)}'{did_you_mean(name, METHODS)}",
                expected=f"one of {', '.join(METHODS)}",
            )
    chosen = [description(METHODS[name]) for name in names or METHODS]
    if format_ == "json":
        typer.echo(to_json(chosen), nl=False)
    elif names:
        typer.echo("\n\n".join(_in_full(one) for one in chosen))
    else:
        typer.echo("\n".join(_in_short(one) for one in chosen))
        typer.echo(
            "\npsdsim methods NAME says more: knobs with defaults and source, what is unknown.\n"
            "psdsim compare --methods NAME:KNOB=VALUE,NAME+NAME runs them; + puts a method that "
            "only changes\nthe scenario on top of another."
        )


def description(cls: Any) -> dict[str, Any]:
    """Return what is known of a method, as plain data."""
    parts = cls.parts
    return {
        "name": cls.name,
        "paper": cls.paper,
        "mechanism": cls.summary,
        "schedule": parts.schedule,
        "drafter": parts.drafter,
        "length_policy": parts.length,
        "selector": parts.selector,
        "verifier": parts.verifier,
        "lossless": cls.lossless,
        "devices": devices(cls),
        "stacks": cls.stacks,
        "closed_form": cls.closed_form,
        "unknown": cls.unknown,
        "knobs": [
            {
                "name": knob.name,
                "default": knob.default,
                "low": knob.low,
                "high": knob.high,
                "meaning": knob.meaning,
                "source": knob.source,
            }
            for knob in cls.knobs
        ],
    }


def devices(cls: Any) -> str:
    """Return which GPUs a method works on, and whether at the same time."""
    if not cls.schedule.drafts:
        return "target GPUs"
    if cls.own_drafter:
        where = "drafter on the target GPUs"
    else:
        where = "draft model on GPUs of its own" if cls.schedule.overlaps else "both on the target"
    return f"{where}, {'at the same time' if cls.schedule.overlaps else 'one after the other'}"


def _in_short(one: dict[str, Any]) -> str:
    marks = "" if one["lossless"] else " (LOSSY)"
    marks += " (goes on top of others with +)" if one["stacks"] else ""
    return f"{one['name']}{marks}\n    {one['mechanism']}\n    {one['paper']}"


def _in_full(one: dict[str, Any]) -> str:
    rows = [
        ("mechanism", one["mechanism"]),
        ("paper", one["paper"]),
        ("schedule", one["schedule"]),
        ("drafter", one["drafter"]),
        ("length policy", one["length_policy"]),
        ("selector", one["selector"]),
        ("verifier", one["verifier"]),
        ("lossless", "yes" if one["lossless"] else "NO: the output is not the target's"),
        ("devices", one["devices"]),
        ("closed form", f"that of {one['closed_form']}" if one["closed_form"] else "none"),
        ("unknown", one["unknown"] or "nothing that a prediction needs"),
    ]
    lines = [one["name"]]
    lines += [_wrapped(f"  {name:<14}", text) for name, text in rows]
    if one["knobs"]:
        lines.append("  knobs")
    for knob in one["knobs"]:
        text = f"{knob['meaning']} [{knob['low']:g} to {knob['high']:g}; {knob['source']}]"
        lines.append(_wrapped(f"    {knob['name']}={knob['default']:g}  ", text, 16))
    return "\n".join(lines)


def _wrapped(head: str, text: str, indent: int | None = None) -> str:
    """Return a text behind its head, broken at 96 columns and aligned."""
    blank = " " * (len(head) if indent is None else indent)
    return fill(text, 96, initial_indent=head, subsequent_indent=blank)
