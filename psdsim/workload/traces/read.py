"""From a trace file to requests: read once, sorted, times from zero, scaled."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from psdsim.errors import InputError
from psdsim.workload.kinds import TraceWorkload
from psdsim.workload.requests import Requests
from psdsim.workload.traces.files import read_csv, read_jsonl
from psdsim.workload.traces.formats import LAYOUTS, ReadTrace, detect


def read_trace(workload: TraceWorkload, base_dir: Path | None = None) -> Requests:
    """Return the requests of a trace file.

    Parameters
    ----------
    workload
        File, layout, how many requests, rate scale.
    base_dir
        Folder that a relative path starts from; None: the current one.

    Returns
    -------
    Requests
        Sorted by time, the first at 0 s (whatever the file's own start); requests of the same
        time keep the order of the file. Without times, or with one time for all, they are a
        batch (``open_loop`` False).

    Raises
    ------
    psdsim.errors.InputError
        If the file can't be read or understood (file and line are named), holds fewer requests
        than asked for, or an option has no effect on it.

    Notes
    -----
    A file is parsed once a process and kept until its time of change or its size differs; a
    sweep over ``rate_scale`` reads it once.
    """
    path = (base_dir or Path()) / workload.path
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"can't be read: {reason}", where=str(path)) from None
    # The absolute path is part of the key: a relative one means another file elsewhere.
    key = (path.absolute(), found.st_mtime_ns, found.st_size)
    read = _parsed(path, key, workload.model_copy(update={"rate_scale": 1.0}))
    return _scaled(read, workload, path)


@lru_cache(maxsize=4)
def _parsed(path: Path, key: tuple[Path, int, int], workload: TraceWorkload) -> ReadTrace:
    """Return the trace in order of arrival; `key` is there to tell changed files apart."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind not in {".csv", ".jsonl", ".json"}:
        raise InputError(
            f"has the ending '{path.suffix}'",
            expected=".csv or .jsonl (or .gz of them)",
            where=str(path),
        )
    reader = read_csv if kind == ".csv" else read_jsonl
    n_rows = n_wanted = workload.n_requests
    while True:
        trace = reader(path, n_rows)
        layout = detect(trace) if workload.format == "auto" else workload.format
        _refuse_useless_options(workload, layout, path)
        read = LAYOUTS[layout](trace, workload)
        if n_rows is None or n_wanted is None or len(read) >= n_wanted or trace.n_rows < n_rows:
            break
        # Failed rows were dropped, so the requests asked for lie further down.
        n_rows *= 2
    if not len(read):
        raise InputError("all requests have failed (0 tokens)", where=str(path))
    if n_wanted is not None and len(read) < n_wanted:
        raise InputError(
            f"the file has {len(read)} requests and n_requests is {n_wanted}", where=str(path)
        )
    return _sorted(read.rows(np.arange(len(read))[:n_wanted]))


def _refuse_useless_options(workload: TraceWorkload, layout: str, path: Path) -> None:
    if workload.time_unit is not None and layout != "timed_jsonl":
        raise InputError(
            f"time_unit has no effect: the layout {layout} fixes its own unit", where=str(path)
        )
    if not workload.drop_failures and layout != "burstgpt":
        raise InputError(
            f"drop_failures has no effect: the layout {layout} has no failed rows",
            where=str(path),
        )


def _sorted(read: ReadTrace) -> ReadTrace:
    arrival = read.arrival_s
    if arrival is None:
        return read
    # The rows that are left may start later than the file.
    read = replace(read, arrival_s=arrival - arrival.min())
    if (np.diff(arrival) >= 0).all():
        return read
    note = "the trace was not sorted by time; it is now"
    read = replace(read, notes=(*read.notes, note))
    # A stable sort: requests of the same time keep the order of the file.
    return read.rows(np.argsort(arrival, kind="stable"))


def _scaled(read: ReadTrace, workload: TraceWorkload, path: Path) -> Requests:
    arrival = np.zeros(len(read)) if read.arrival_s is None else read.arrival_s
    notes = read.notes
    spread = bool(arrival[-1] > 0.0)
    if workload.rate_scale != 1.0:
        if not spread:
            raise InputError(
                "rate_scale has no effect: all requests of the trace come at the same time",
                where=str(path),
            )
        with np.errstate(over="ignore", under="ignore"):
            arrival = arrival / workload.rate_scale
        if not 0.0 < arrival[-1] < np.inf:
            raise InputError(
                f"rate_scale {workload.rate_scale:g} puts the last arrival at {arrival[-1]:g} s",
                where=str(path),
            )
        notes = (*notes, f"arrival rate scaled by {workload.rate_scale:g}")
    return Requests(arrival, read.prompt_tokens, read.output_tokens, open_loop=spread, notes=notes)
