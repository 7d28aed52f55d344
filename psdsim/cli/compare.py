"""`psdsim compare`: several schedules on paired randomness."""

from __future__ import annotations

from typing import Annotated

import typer

from psdsim.cli.options import (
    BasisOption,
    Output,
    Processes,
    Replications,
    ScenarioFile,
    Seed,
    Set,
    load_scenario,
    parse_basis,
    parse_ks,
    parse_processes,
    parse_schedules,
    progress_bar,
    terminal_width,
)
from psdsim.cli.output import choose_format, stamp, to_csv, to_json, write_text
from psdsim.errors import InputError

DEFAULT = "ar,sd,minedraft,pearl"


def compare_command(
    scenario: ScenarioFile = None,
    schedules: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=f"Schedules, separated by commas; none: {DEFAULT}.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="The same, for methods with their knobs: pearl,dspark:auc=0.9 (psdsim methods "
            "lists them).",
            show_default=False,
        ),
    ] = None,
    k: Annotated[
        str, typer.Option(metavar="RANGE", help="Draft lengths: 1:6 (inclusive) or 1,2,4.")
    ] = "1:5",
    set_: Set = None,
    basis: BasisOption = "step-batch",
    replications: Replications = 3,
    seed: Seed = 0,
    processes: Processes = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="table, json or csv.", show_default=False)
    ] = None,
    output: Output = None,
) -> None:
    """Compare schedules, with theory beside each throughput."""
    kind = choose_format(format_, output)
    ks = parse_ks(k)
    if schedules is not None and methods is not None:
        raise InputError(
            "both --schedules and --methods are given", expected="one list of names",
            where="--methods",
        )  # fmt: skip
    if methods is not None:
        names = parse_schedules(methods, "--methods")
    else:
        names = parse_schedules(schedules if schedules is not None else DEFAULT)
    held, n_processes = parse_basis(basis), parse_processes(processes)
    loaded = load_scenario(scenario, set_, output)
    from psdsim.api import compare
    from psdsim.cli.tables import comparison_text
    from psdsim.run.metrics import DEFINITIONS

    with progress_bar("simulating") as progress:
        result = compare(
            loaded, names, ks,
            basis=held, seed=seed, replications=replications, processes=n_processes,
            progress=progress,
        )  # fmt: skip
    table = comparison_text(result, terminal_width()) + "\n"

    if kind == "json":
        text = to_json(
            {
                **stamp(loaded, seed=seed, n_replications=replications, basis=held),
                "definitions": DEFINITIONS,
                "notes": result.notes,
                "rows": result.rows,
            }
        )
    else:
        text = to_csv(result.rows) if kind == "csv" else table
    if output is None:
        typer.echo(text, nl=False)
        return
    write_text(output, text)
    typer.echo(table, nl=False)
    typer.echo(f"written: {output}", err=True)
