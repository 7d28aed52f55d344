"""`psdsim validate`: the simulator against the closed forms, cell by cell."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from psdsim.cli.options import Output, Seed, parse_schedules, progress_bar
from psdsim.cli.output import choose_format, to_csv, to_json, write_text
from psdsim.cli.tables import aligned, number
from psdsim.errors import InputError


def validate_command(
    schedules: Annotated[str, typer.Option(help="Schedules to check.")] = "ar,sd,minedraft,pearl",
    seed: Seed = 0,
    seq_steps: Annotated[
        int, typer.Option(help="Requests times steps observed in each cell.")
    ] = 240_000,
    mutation: Annotated[
        str,
        typer.Option(
            help="Build a mistake into the theory (alpha, k+1, k-1, bonus, sync): cells must fail."
        ),
    ] = "none",
    processes: Annotated[
        int | None, typer.Option(help="Worker processes; none: one a core.")
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="table, json or csv.", show_default=False)
    ] = None,
    output: Output = None,
) -> None:
    """Check simulated decode throughput against theory; exit code 1 if a cell disagrees."""
    from psdsim.api import validate
    from psdsim.api.validate import Mutation, default_grid

    kind = choose_format(format_, output)
    if mutation not in get_args(Mutation):
        raise InputError(
            f"'{mutation}' is not a mutation",
            expected="one of " + ", ".join(get_args(Mutation)),
            where="--mutation",
        )
    if seq_steps < 20_000:
        raise InputError(
            f"seq-steps is {seq_steps}", expected="at least 20000", where="--seq-steps"
        )
    names = parse_schedules(schedules)
    with progress_bar("validating") as progress:
        result = validate(
            default_grid(names), seed=seed, n_seq_steps=seq_steps,
            mutation=mutation, processes=processes, progress=progress,  # type: ignore[arg-type]
        )  # fmt: skip
    header = ["cell", "simulated", "theory", "error", "std. error", "|error|/SE", "verdict"]
    rows = [
        [
            f"{row['schedule']} alpha={row['alpha']:g} k={row['k']} n={row['n_seqs']}",
            number(row["simulated"], 6),
            number(row["theory"], 6),
            f"{100 * row['error']:+.3f}%",
            f"{100 * row['standard_error']:.3f}%",
            "exact" if row["distance_se"] is None else f"{row['distance_se']:.2f}",
            row["verdict"],
        ]
        for row in result.rows
    ]
    n_bad = sum(row["verdict"] != "agrees" for row in result.rows)
    end = f"{len(rows)} cells, {n_bad} disagree (limit: 4.5 standard errors; decode tokens/s)\n"
    table = aligned(header, rows) + "\n" + end
    text = {"table": table, "csv": to_csv(result.rows)}.get(kind) or to_json(
        {"seed": seed, "mutation": mutation, "passed": result.passed, "rows": result.rows}
    )
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        typer.echo(table, nl=False)
    if not result.passed:
        raise typer.Exit(1)
