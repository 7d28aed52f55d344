"""Independent runs, one after the other or in processes: the results are the same bytes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_all(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    processes: int | None = None,
    worth_it: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Return ``[function(task) for task in tasks]``.

    Parameters
    ----------
    function
        A module-level function; its result depends on nothing but the task.
    tasks
        Arguments that can be pickled.
    processes
        Worker processes; 1 runs here, None takes one for each core.
    worth_it
        False runs here unless `processes` was given: starting workers would cost more.
    progress
        Called with (done, all).
    """
    n = processes if processes is not None else (os.cpu_count() or 1) if worth_it else 1
    n = min(n, len(tasks))
    if n <= 1:
        return _collect(map(function, tasks), len(tasks), progress)
    # Spawn behaves the same on every platform and inherits no threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n, mp_context=context) as pool:
        return _collect(pool.map(function, tasks), len(tasks), progress)


def _collect(
    results: Iterable[Result], n: int, progress: Callable[[int, int], None] | None
) -> list[Result]:
    out: list[Result] = []
    for result in results:
        out.append(result)
        if progress is not None:
            progress(len(out), n)
    return out
