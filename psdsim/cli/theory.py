"""`psdsim theory`: the closed forms of a deployment, and what each of them says."""

from __future__ import annotations

from typing import Annotated

import typer

from psdsim.cli.options import DraftLength, Output, ScenarioFile, Set, load_scenario, parse_ks
from psdsim.cli.output import choose_format, stamp, to_csv, to_json, write_text
from psdsim.cli.tables import aligned, number


def theory_command(
    scenario: ScenarioFile = None,
    k: DraftLength = 4,
    set_: Set = None,
    explain: Annotated[
        str | None,
        typer.Option(help="Print equation, assumptions and source of one formula, and its value."),
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="table, json or csv.", show_default=False)
    ] = None,
    output: Output = None,
) -> None:
    """Evaluate the field's formulas, without simulation."""
    kind = choose_format(format_, output)
    parse_ks(str(k))
    loaded = load_scenario(scenario, set_, output)
    from psdsim.api.formulas import theory_table

    rows = theory_table(loaded, k, None if explain is None else [explain])
    if explain is not None:
        row = rows[0]
        lines = [
            f"{row['name']} ({row['symbol']}): {row['meaning']}",
            f"  equation     {row['equation']}",
            *(f"  assumes      {text}" for text in row["assumptions"]),
            f"  source       {row['source']}",
            f"  is           {row['exactness']}",
            f"  here         {number(row['value'], 6) if row['reason'] is None else row['reason']}",
        ]
        table = "\n".join(lines) + "\n"
    else:
        header = ["formula", "symbol", "value", "meaning", "source"]
        cells = [
            [
                row["name"], row["symbol"],
                ("" if row["exactness"] == "exact" else "~") + number(row["value"], 5),
                row["meaning"], row["source"],
            ]
            for row in rows
        ]  # fmt: skip
        table = f"{loaded.name}, k={k}\n\n" + aligned(header, cells, left=(0, 1, 3, 4)) + "\n"
        reasons = [f"  {row['name']}: {row['reason']}" for row in rows if row["reason"]]
        if reasons:
            table += "\nNo value here\n" + "\n".join(reasons) + "\n"
        table += (
            "\n~ approximate or a bound. Equation and assumptions: psdsim theory --explain NAME\n"
        )
    text = {"table": table, "csv": to_csv(rows)}.get(kind) or to_json(
        {**stamp(loaded, k=k), "rows": rows}
    )
    if output is None:
        typer.echo(text, nl=False)
        return
    write_text(output, text)
    typer.echo(table, nl=False)
