"""The `realrun` console script."""

from __future__ import annotations

import sys

import typer

from psdsim.console import run_app
from realrun.cli.profile import profile_command
from realrun.cli.run import run_command
from realrun.cli.train import distill_command, train_command

app = typer.Typer(
    name="realrun",
    help="Run psdsim's schedules on real models, measure step times, train the built-in pair.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run_command)
app.command("profile")(profile_command)
app.command("train")(train_command)
app.command("distill")(distill_command)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Run psdsim's schedules on real models, measure step times, train the built-in pair."""
    if version:
        from psdsim import __version__

        print(f"realrun {__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; bad input is one sentence on stderr and exit code 2.

    Parameters
    ----------
    arguments
        What comes after ``realrun``; None takes them from the process.

    Returns
    -------
    int
        0 done, 1 `--check` found another text, 2 bad input or a worker that failed, 130
        interrupted.
    """
    return run_app(app, "realrun", arguments)


def run_script() -> None:
    """Entry point of the console script."""
    sys.exit(main())
