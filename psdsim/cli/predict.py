"""`psdsim predict`: one schedule at one draft length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from psdsim.cli.options import (
    BasisOption,
    DraftLength,
    Output,
    Replications,
    ScenarioFile,
    Seed,
    Set,
    load_scenario,
    parse_basis,
    parse_ks,
    parse_schedule,
    progress_bar,
)
from psdsim.cli.output import (
    check_output,
    choose_format,
    stamp,
    to_csv,
    to_json,
    write_file,
    write_text,
)
from psdsim.errors import InputError

if TYPE_CHECKING:
    from psdsim.run import SimulationResult


def predict_command(
    scenario: ScenarioFile = None,
    schedule: Annotated[str, typer.Option(help="The schedule.")] = "minedraft",
    k: DraftLength = 4,
    set_: Set = None,
    basis: BasisOption = "step-batch",
    replications: Replications = 3,
    seed: Seed = 0,
    format_: Annotated[
        str | None, typer.Option("--format", help="table, json or csv.", show_default=False)
    ] = None,
    output: Output = None,
    records: Annotated[
        Path | None,
        typer.Option(help="Write records of one run: .jsonl, .csv or .parquet."),
    ] = None,
) -> None:
    """Predict one schedule in detail."""
    kind = choose_format(format_, output)
    name = parse_schedule(schedule)
    ks = parse_ks(str(k))
    if records is not None:
        if records.suffix not in {".jsonl", ".csv", ".parquet"}:
            raise InputError(
                f"'{records}' has the ending '{records.suffix}'",
                expected=".jsonl (steps and requests), .csv or .parquet (steps)",
                where="--records",
            )
        check_output(records, "--records")
        if output is not None and records.resolve() == output.resolve():
            raise InputError(
                f"'{records}' is the --output too", expected="another file", where="--records"
            )
    held = parse_basis(basis)
    loaded = load_scenario(scenario, set_, output)
    from psdsim.api import compare
    from psdsim.cli.tables import prediction_text
    from psdsim.run.metrics import DEFINITIONS

    with progress_bar("simulating") as progress:
        result = compare(
            loaded, [name], ks,
            basis=held, seed=seed, replications=replications, progress=progress,
        )  # fmt: skip
    row = result.rows[0]
    if records is not None:
        from psdsim.run import simulate

        rounds = records.suffix == ".jsonl"
        one = simulate(loaded, name, ks[0], seed=seed, basis=held, record_rounds=rounds)
        _write_records(one, records)
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


def _write_records(result: SimulationResult, path: Path) -> None:
    if path.suffix == ".jsonl":
        write_file(path, result.to_jsonl)
    elif path.suffix == ".csv":
        write_file(path, lambda part: result.steps.to_csv(part, index=False))
    else:
        write_file(path, lambda part: result.steps.to_parquet(part, index=False))
    typer.echo(f"written: {path}", err=True)
