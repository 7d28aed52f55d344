"""From a trace file to requests: read once, sorted, times from zero, scaled."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from psdsim.errors import InputError
from psdsim.workload.kinds import TraceWorkload
from psdsim.workload.requests import Requests
from psdsim.workload.traces.columns import read_csv, read_jsonl
from psdsim.workload.traces.formats import LAYOUTS, ReadTrace, detect


def read_trace(workload: TraceWorkload, base_dir: Path | None = None) -> Requests:
    """Return the requests of a trace file.

    Parameters
    ----------
    workload
        File, layout, how many rows, rate scale.
    base_dir
        Folder that a relative path starts from; None: the current one.

    Raises
    ------
    psdsim.errors.InputError
        If the file can't be read or understood; file and line are named.
    """
    path = (base_dir or Path()) / workload.path
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(path)) from None
    return _read(path, changed, workload)


@lru_cache(maxsize=4)
def _read(path: Path, changed_ns: int, workload: TraceWorkload) -> Requests:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind not in {".csv", ".jsonl", ".json"}:
        raise InputError(
            f"has the ending '{path.suffix}'", expected=".csv or .jsonl (or .gz of them)",
            where=str(path),
        )  # fmt: skip
    reader = read_csv if kind == ".csv" else read_jsonl
    trace = reader(path, workload.n_requests)
    if workload.n_requests is not None and len(trace) < workload.n_requests:
        raise InputError(
            f"the file has {len(trace)} requests and n_requests is {workload.n_requests}",
            where=str(path),
        )
    layout = detect(trace) if workload.format == "auto" else workload.format
    if workload.time_unit is not None and layout != "timed_jsonl":
        raise InputError(
            f"time_unit has no effect: the layout {layout} fixes its own unit", where=str(path)
        )
    return _requests(LAYOUTS[layout](trace, workload), workload)


def _requests(read: ReadTrace, workload: TraceWorkload) -> Requests:
    notes = list(read.notes)
    if read.arrival_s is None:
        arrival = np.zeros(read.prompt_tokens.size)
        order = np.arange(arrival.size)
    else:
        # A stable sort: requests of the same time keep the order of the file.
        order = np.argsort(read.arrival_s, kind="stable")
        if (np.diff(order) < 0).any():
            notes.append("the trace was not sorted by time; it is now")
        arrival = read.arrival_s[order] / workload.rate_scale
    if workload.rate_scale != 1.0:
        notes.append(f"arrival rate scaled by {workload.rate_scale:g}")
    return Requests(
        arrival,
        read.prompt_tokens[order],
        read.output_tokens[order],
        open_loop=bool(arrival[-1] > 0.0),
        notes=tuple(notes),
    )
