"""The `psdsim` console script: commands, and what happens when something is wrong."""

from __future__ import annotations

import re
import sys

import typer

from psdsim.cli import compare, init, predict, schedules, theory, timeline, validate
from psdsim.errors import InputError

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
app.command("schedules")(schedules.schedules_command)
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
    try:
        code = app(args=arguments, standalone_mode=False)
        if code == 130:
            # What typer makes of Ctrl-C.
            _tell("interrupted")
        return int(code) if isinstance(code, int) else 0
    except InputError as error:
        _tell(str(error))
    except typer.TyperException as error:
        message = error.format_message()
        if message.startswith("Usage:"):
            # Asked for nothing: the message is the help.
            print(message, file=sys.stderr)
        else:
            _tell(re.sub(r"^Invalid value for '([^']*)': (Value error, )?", r"\1: ", message))
    except typer.Exit as error:
        return int(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing is wrong.
        sys.stderr.close()
        return 0
    except OSError as error:
        _tell(f"{error.filename or 'file'}: {error.strerror or error}")
    except MemoryError:
        _tell("this needs more memory than there is; expected fewer requests or shorter outputs")
    except (KeyboardInterrupt, typer.Abort):
        _tell("interrupted")
        return 130
    return 2


def _tell(message: str) -> None:
    """Print one line, whatever line breaks the input has brought into the message."""
    print("psdsim: " + " ".join(message.split("\n")), file=sys.stderr)


def run() -> None:
    """Entry point of the console script."""
    sys.exit(main())
