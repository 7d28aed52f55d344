"""`psdsim validate`: the simulator against the closed forms, or against a measured run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from psdsim.cli.options import (
    Output,
    Processes,
    ScenarioFile,
    Seed,
    load_scenario,
    parse_processes,
    parse_schedules,
    progress_bar,
)
from psdsim.cli.output import choose_format, to_csv, to_json, write_text
from psdsim.cli.tables import aligned, number
from psdsim.errors import InputError


def validate_command(
    scenario: ScenarioFile = None,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Replay this measured run (.jsonl) on SCENARIO instead, and compare.",
            show_default=False,
        ),
    ] = None,
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
    """Check the simulator against theory, or against a measured run (exit code 1: not)."""
    from psdsim.api.gates import LIMIT, P_LIMIT, Mutation
    from psdsim.api.validate import all_checks, validate

    if against is not None:
        given = {"--schedules": schedules, "--families": families, "--processes": processes}
        given["--mutation"] = None if mutation == "none" else mutation
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name} has no effect with --against", where=name)
        if scenario is None:
            raise InputError(
                "no scenario is named", expected="one for the run's machine", where="SCENARIO"
            )
        from psdsim.cli.against import against_run

        kind = choose_format(format_, output)
        if not against_run(against, load_scenario(scenario, None, output), kind, output, seed):
            raise typer.Exit(1)
        return
    if scenario is not None:
        raise InputError(
            f"'{scenario}' has no effect", expected="--against RUN.jsonl with it", where="SCENARIO"
        )
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
