"""`psdsim timeline`: what every device did, as a picture and as a Perfetto trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from psdsim.cli.options import (
    DraftLength,
    ScenarioFile,
    Seed,
    Set,
    load_scenario,
    parse_ks,
    parse_schedule,
    seconds,
    whole,
)
from psdsim.cli.output import check_output, write_file, write_text
from psdsim.errors import InputError


def timeline_command(
    scenario: ScenarioFile = None,
    schedule: Annotated[str, typer.Option(help="The schedule.")] = "minedraft",
    k: DraftLength = 4,
    set_: Set = None,
    seed: Seed = 0,
    start_s: Annotated[
        float | None,
        typer.Option(
            help="Where the picture begins, s; none: the first decode.",
            parser=seconds,
            metavar="SECONDS",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(help="Steps in the picture.", parser=whole, metavar="INTEGER")
    ] = 8,
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
    trace = output.with_suffix(".trace.json")
    for path in (output, trace):
        check_output(path, "--output")
    name = parse_schedule(schedule)
    parse_ks(str(k))
    loaded = load_scenario(scenario, set_)
    from psdsim.run import simulate

    result = simulate(loaded, name, k, seed=seed, timeline=True)
    figure = result.timeline(start_s=start_s, n_steps=steps)
    write_file(output, lambda part: figure.savefig(part, dpi=150, format=output.suffix[1:]))
    write_text(trace, result.to_perfetto())
    typer.echo(f"written: {output} and {trace} (open the trace at ui.perfetto.dev)")
