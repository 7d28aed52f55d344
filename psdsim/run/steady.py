"""The steady window of a run: full batches, after the start and before the tail."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.records import StepKind


def tail_start(steps: dict[str, NDArray[Any]], capacity: int, open_loop: bool) -> int:
    """Return the index of the first step of the tail.

    The tail begins when nobody waits and the batch is no longer full. Full is the capacity, or
    what a batch or a closed loop ever filled of it; open arrivals that never fill the capacity
    have no tail.

    Parameters
    ----------
    steps
        Step columns of one replica, in order.
    capacity
        Most requests in flight.
    open_loop
        Whether requests arrive whatever the server does.
    """
    held = steps["n_running"] + steps["n_finished"]
    full = held >= (capacity if open_loop else min(capacity, int(held.max(initial=0))))
    if not full.any():
        return int(full.size)
    last_full = int(np.flatnonzero(full)[-1])
    waiting = np.flatnonzero(steps["n_waiting"] > 0)
    last_waiting = int(waiting[-1]) if waiting.size else 0
    return max(last_full, last_waiting) + 1


def decode_window(
    steps: dict[str, NDArray[Any]], capacity: int, open_loop: bool
) -> NDArray[np.bool_]:
    """Return which steps draft or decode before the tail, shape (n_steps,)."""
    mask: NDArray[np.bool_] = steps["kind"] != int(StepKind.PREFILL)
    mask &= np.arange(mask.size) < tail_start(steps, capacity, open_loop)
    return mask
