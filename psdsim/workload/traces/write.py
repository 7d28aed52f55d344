"""Writing requests as a timed JSON-lines trace."""

from __future__ import annotations

from pathlib import Path

from psdsim.workload.requests import Requests


def write_trace(requests: Requests, path: Path) -> None:
    """Write one line a request with timestamp_s, input_length and output_length.

    Parameters
    ----------
    requests
        What to write.
    path
        The file, ending in .jsonl; replaced if it exists.
    """
    rows = zip(
        requests.arrival_s.tolist(),
        requests.prompt_tokens.tolist(),
        requests.output_tokens.tolist(),
        strict=True,
    )
    with path.open("w", encoding="utf-8") as file:
        for time_s, prompt, output in rows:
            file.write(
                f'{{"timestamp_s": {time_s!r}, "input_length": {prompt}, '
                f'"output_length": {output}}}\n'
            )
