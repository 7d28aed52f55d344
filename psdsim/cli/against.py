"""`psdsim validate --against`: a measured run beside its replay in the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from psdsim.cli.output import to_csv, to_json, write_text
from psdsim.cli.tables import aligned, number
from psdsim.errors import InputError
from psdsim.scenario import Scenario


def against_run(path: Path, scenario: Scenario, kind: str, output: Path | None, seed: int) -> bool:
    """Print and write the comparison; return whether the counts agree.

    Parameters
    ----------
    path
        The recording.
    scenario
        What to replay it on.
    kind
        ``table``, ``json`` or ``csv``.
    output
        File to write.
    seed
        Of the jitter.
    """
    from psdsim.calibrate import read_run
    from psdsim.calibrate.against import against

    if output is not None and output.resolve() == path.resolve():
        raise InputError(f"'{output}' is the run", expected="another file", where="--output")
    run = read_run(path)
    found = against(run, scenario, seed)
    title = f"{run.file}: {run.schedule.name} k={run.k}, replayed on {scenario.name}"
    table = title + "\n" + "".join(f"{note}\n" for note in found.notes)
    table += aligned(
        ["quantity", "measured", "simulated", "error", ""], [_cells(row) for row in found.rows]
    )
    wanted = any(row["exact"] for row in found.rows)
    if wanted:
        table += "\nThe counts agree.\n" if found.agrees else "\nThe counts DISAGREE.\n"
    rows = [{**row, "spread_ci": row["spread"]} for row in found.rows]
    for row in rows:
        del row["spread"]
    text = {"table": table, "csv": to_csv(rows)}.get(kind) or to_json(
        {
            "run": run.file,
            "schedule": run.schedule.name,
            "k": run.k,
            "partial": run.recording.partial,
            "passed": found.agrees,
            "seed": seed,
            "notes": found.notes,
            "rows": found.rows,
        }
    )
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        typer.echo(table, nl=False)
    return found.agrees


def _cells(row: dict[str, Any]) -> list[str]:
    unit = f", {row['unit']}" if row["unit"] else ""
    error = "-" if row["error"] is None else f"{100 * row['error']:+.2f}%"
    if row["exact"]:
        mark = "equal" if row["measured"] == row["simulated"] else "NOT EQUAL"
    elif row["spread"] is not None:
        low, high = row["spread"]
        mark = f"quartiles of the run's steps: {number(low, 4)} to {number(high, 4)} ms"
    else:
        mark = ""
    figures = [number(row["measured"], 6), number(row["simulated"], 6)]
    return [row["quantity"] + unit, *figures, error, mark]
