"""`psdsim validate`: the simulator against the closed forms, cell by cell."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import typer

from psdsim.cli.options import (
    Output,
    Processes,
    Seed,
    parse_processes,
    parse_schedules,
    progress_bar,
)
from psdsim.cli.output import choose_format, to_csv, to_json, write_text
from psdsim.cli.tables import aligned, number
from psdsim.errors import InputError


def validate_command(
    schedules: Annotated[
        str | None, typer.Option(help="Schedules to check; none: all.", show_default=False)
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(
            help="Families of checks: steady, acceptance, jitter, finite, makespan; none: all.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    mutation: Annotated[
        str,
        typer.Option(
            help="Build a mistake into the theory (alpha, k+1, k-1, bonus, sync): cells must fail."
        ),
    ] = "none",
    processes: Processes = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="table, json or csv.", show_default=False)
    ] = None,
    output: Output = None,
) -> None:
    """Check the simulator against theory (exit code 1: not)."""
    from psdsim.api.gates import LIMIT, P_LIMIT, Mutation
    from psdsim.api.validate import all_checks, validate

    kind, n_processes = choose_format(format_, output), parse_processes(processes)
    if mutation not in get_args(Mutation):
        raise InputError(
            f"'{mutation}' is not a mutation",
            expected="one of " + ", ".join(get_args(Mutation)),
            where="--mutation",
        )
    wanted = None if families is None else [name.strip() for name in families.split(",")]
    checks = all_checks(wanted, None if schedules is None else parse_schedules(schedules))
    if not checks:
        raise InputError("no check is left", expected="families that know these schedules")
    with progress_bar("validating") as progress:
        result = validate(
            checks, seed=seed, mutation=mutation, processes=n_processes, progress=progress,  # type: ignore[arg-type]
        )  # fmt: skip
    n_bad = sum(row["verdict"] != "agrees" for row in result.rows)
    header = ["cell", "what", "simulated", "theory", "error", "std. error", "distance", "verdict"]
    table = aligned(header, [_cells(row) for row in result.rows])
    table += (
        f"\n{len(result.rows)} comparisons, {n_bad} disagree (limits: {LIMIT} standard errors, "
        f"p = {P_LIMIT:g}; exact where nothing is random)\n"
    )
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


def _cells(row: dict[str, Any]) -> list[str]:
    if row["p_value"] is not None:
        distance, error = f"p={row['p_value']:.2g}", "-"
    elif row["distance_se"] is None:
        distance, error = "exact", "0"
    else:
        distance, error = f"{row['distance_se']:.2f} SE", f"{100 * row['standard_error']:.3f}%"
    return [
        row["cell"],
        row["what"],
        number(row["simulated"], 6),
        number(row["theory"], 6),
        f"{100 * row['error']:+.3f}%",
        error,
        distance,
        row["verdict"],
    ]
