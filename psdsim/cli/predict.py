"""`psdsim predict`: one schedule at one draft length."""

from __future__ import annotations

from typing import Annotated

import typer

from psdsim.cli.options import (
    BasisOption,
    Output,
    ScenarioFile,
    Seed,
    Set,
    load_scenario,
    parse_basis,
    parse_ks,
    parse_schedules,
    progress_bar,
)
from psdsim.cli.output import choose_format, stamp, to_csv, to_json, write_text
from psdsim.errors import InputError


def predict_command(
    scenario: ScenarioFile = None,
    schedule: Annotated[str, typer.Option(help="The schedule.")] = "minedraft",
    k: Annotated[int, typer.Option(help="Drafted tokens per round.")] = 4,
    set_: Set = None,
    basis: BasisOption = "step-batch",
    replications: Annotated[int, typer.Option(help="Independent repetitions.")] = 3,
    seed: Seed = 0,
    format_: Annotated[
        str | None, typer.Option("--format", help="table, json or csv.", show_default=False)
    ] = None,
    output: Output = None,
) -> None:
    """Predict throughput and latency of one schedule, with its closed form."""
    kind = choose_format(format_, output)
    names = parse_schedules(schedule)
    if len(names) != 1:
        raise InputError(
            f"'{schedule}' names {len(names)} schedules",
            expected="one (psdsim compare takes several)",
            where="--schedule",
        )
    ks = parse_ks(str(k))
    held = parse_basis(basis)
    loaded = load_scenario(scenario, set_)
    from psdsim.api import compare
    from psdsim.cli.tables import prediction_text
    from psdsim.run.metrics import DEFINITIONS

    with progress_bar("simulating") as progress:
        result = compare(
            loaded, names, ks,
            basis=held, seed=seed, replications=replications, progress=progress,
        )  # fmt: skip
    row = result.rows[0]
    table = prediction_text(result) + "\n"
    if kind == "json":
        text = to_json(
            {
                **stamp(loaded, seed=seed, n_replications=replications, basis=held),
                "definitions": DEFINITIONS,
                "notes": result.notes,
                **row,
            }
        )
    else:
        text = to_csv([row]) if kind == "csv" else table
    if output is None:
        typer.echo(text, nl=False)
        return
    write_text(output, text)
    typer.echo(table, nl=False)
    typer.echo(f"written: {output}", err=True)
