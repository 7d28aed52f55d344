"""Writing requests as a timed JSON-lines trace."""

from __future__ import annotations

import os
from pathlib import Path

from psdsim.errors import InputError
from psdsim.workload.requests import Requests


def write_trace(requests: Requests, path: Path) -> None:
    """Write one line a request with timestamp_s, input_length and output_length.

    Times are written with all their digits, so :func:`read_trace` gives the same requests back;
    since it counts times from the first arrival, it shifts those of a trace that starts later.

    Parameters
    ----------
    requests
        What to write: open arrivals or a batch.
    path
        The file, ending in .jsonl; replaced if it exists, and only once all is written.

    Raises
    ------
    psdsim.errors.InputError
        For a closed loop, which has no arrival times; for another ending; if the file can't be
        written.
    """
    if requests.concurrency is not None:
        raise InputError(
            "a closed loop has no arrival times that a trace could hold",
            expected="requests of a batch or of open arrivals",
        )
    if path.suffix != ".jsonl":
        raise InputError(f"has the ending '{path.suffix}'", expected=".jsonl", where=str(path))
    rows = zip(
        requests.arrival_s.tolist(),
        requests.prompt_tokens.tolist(),
        requests.output_tokens.tolist(),
        strict=True,
    )
    unfinished = path.with_name(path.name + ".part")
    try:
        try:
            with unfinished.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(
                    f'{{"timestamp_s": {time_s!r}, "input_length": {prompt}, '
                    f'"output_length": {output}}}\n'
                    for time_s, prompt, output in rows
                )
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror or error}", where=str(path)) from None
