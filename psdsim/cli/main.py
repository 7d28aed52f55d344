"""The `psdsim` console script: commands, and what happens when something is wrong."""

from __future__ import annotations

import sys

import typer

from psdsim.cli import (
    calibrate,
    compare,
    init,
    methods,
    predict,
    schedules,
    theory,
    timeline,
    validate,
)
from psdsim.console import run_app

app = typer.Typer(
    name="psdsim",
    help="Predict what speculative and parallel speculative decoding do to LLM serving.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("compare")(compare.compare_command)
app.command("predict")(predict.predict_command)
app.command("timeline")(timeline.timeline_command)
app.command("theory")(theory.theory_command)
app.command("validate")(validate.validate_command)
app.command("calibrate")(calibrate.calibrate_command)
app.command("schedules")(schedules.schedules_command)
app.command("methods")(methods.methods_command)
app.command("init")(init.init_command)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Predict what speculative and parallel speculative decoding do to LLM serving."""
    if version:
        from psdsim import __version__

        print(f"psdsim {__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; bad input is one sentence on stderr and exit code 2.

    Parameters
    ----------
    arguments
        What comes after ``psdsim``; None takes them from the process.

    Returns
    -------
    int
        0 done, 1 a check failed, 2 bad input, 130 interrupted.
    """
    return run_app(app, "psdsim", arguments)


def run() -> None:
    """Entry point of the console script."""
    sys.exit(main())
