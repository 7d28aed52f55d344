"""What a console script does with what goes wrong: one sentence on stderr, and an exit code."""

from __future__ import annotations

import re
import sys

import typer

from psdsim.errors import InputError


def run_app(app: typer.Typer, name: str, arguments: list[str] | None) -> int:
    """Run a command line; bad input is one sentence on stderr and exit code 2.

    Parameters
    ----------
    app
        The commands.
    name
        Of the console script, in front of every message.
    arguments
        What comes after it; None takes them from the process.

    Returns
    -------
    int
        0 done, 1 a check failed, 2 bad input, 130 interrupted.
    """
    try:
        code = app(args=arguments, standalone_mode=False)
        if code == 130:
            # What typer makes of Ctrl-C.
            _tell(name, "interrupted")
        return int(code) if isinstance(code, int) else 0
    except InputError as error:
        _tell(name, str(error))
    except typer.TyperException as error:
        message = error.format_message()
        if message.startswith("Usage:"):
            # Asked for nothing: the message is the help.
            print(message, file=sys.stderr)
        else:
            _tell(name, re.sub(r"^Invalid value for '([^']*)': (Value error, )?", r"\1: ", message))
    except typer.Exit as error:
        return int(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing is wrong.
        sys.stderr.close()
        return 0
    except OSError as error:
        _tell(name, f"{error.filename or 'file'}: {error.strerror or error}")
    except MemoryError:
        _tell(
            name,
            "this needs more memory than there is; expected fewer requests or shorter outputs",
        )
    except (KeyboardInterrupt, typer.Abort):
        _tell(name, "interrupted")
        return 130
    return 2


def _tell(name: str, message: str) -> None:
    """Print one line, whatever line breaks the input has brought into the message."""
    print(f"{name}: " + " ".join(message.split("\n")), file=sys.stderr)
