"""The one error that a user sees: what was wrong, where, and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input, told in one sentence; the command line turns it into exit code 2.

    Parameters
    ----------
    what
        What was found, in plain words (``"alpha is 1.7"``).
    expected
        What would have been right (``"a probability between 0 and 1"``).
    where
        The file, line or key it was found at (``"scenario.yaml: acceptance.alpha"``).
    """

    def __init__(self, what: str, *, expected: str | None = None, where: str | None = None) -> None:
        self.what = what
        self.expected = expected
        self.where = where
        message = what if where is None else f"{where}: {what}"
        if expected is not None:
            message = f"{message}; expected {expected}"
        super().__init__(message)

    def at(self, where: str) -> InputError:
        """Return the same error with an outer place put in front of its own."""
        place = where if self.where is None else f"{where}: {self.where}"
        return InputError(self.what, expected=self.expected, where=place)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest known word, or an empty string.

    Upper and lower case count as the same.

    Examples
    --------
    >>> did_you_mean("alhpa", ["alpha", "kind"])
    "; did you mean 'alpha'?"
    >>> did_you_mean("zzz", ["alpha"])
    ''
    """
    names = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), list(names), n=1, cutoff=0.6)
    return f"; did you mean '{names[close[0]]}'?" if close else ""
