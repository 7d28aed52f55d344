"""The command line: one module a command, every message in one place."""

from psdsim.cli.main import main

__all__ = ["main"]
