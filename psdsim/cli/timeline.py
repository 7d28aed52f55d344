"""`psdsim timeline`: what every device did, as a picture and as a Perfetto trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from psdsim.cli.options import ScenarioFile, Seed, Set, load_scenario, parse_ks, parse_schedules
from psdsim.cli.output import write_file, write_text
from psdsim.errors import InputError


def timeline_command(
    scenario: ScenarioFile = None,
    schedule: Annotated[str, typer.Option(help="The schedule.")] = "minedraft",
    k: Annotated[int, typer.Option(help="Drafted tokens per round.")] = 4,
    set_: Set = None,
    seed: Seed = 0,
    start_s: Annotated[
        float | None,
        typer.Option(
            help="Where the picture begins, s; none: the first decode.", show_default=False
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps in the picture.")] = 8,
    output: Annotated[
        Path, typer.Option(help="The picture; the trace goes beside it as .trace.json.")
    ] = Path("timeline.png"),
) -> None:
    """Draw a timeline, and write it for Perfetto."""
    if output.suffix not in {".png", ".svg", ".pdf"}:
        raise InputError(
            f"'{output}' has the ending '{output.suffix}'",
            expected=".png, .svg or .pdf",
            where="--output",
        )
    if steps < 1:
        raise InputError(f"steps is {steps}", expected="at least 1", where="--steps")
    names = parse_schedules(schedule)
    if len(names) != 1:
        raise InputError(f"'{schedule}' names {len(names)} schedules", where="--schedule")
    parse_ks(str(k))
    loaded = load_scenario(scenario, set_)
    from psdsim.run import simulate

    result = simulate(loaded, names[0], k, seed=seed, timeline=True)
    figure = result.timeline(start_s=start_s, n_steps=steps)
    write_file(output, lambda part: figure.savefig(part, dpi=150, format=output.suffix[1:]))
    trace = output.with_suffix(".trace.json")
    write_text(trace, result.to_perfetto())
    typer.echo(f"written: {output} and {trace} (open the trace at ui.perfetto.dev)")
