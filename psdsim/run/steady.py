"""The steady window of a run: full batches, after the start and before the tail."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.records import StepKind


def tail_start(steps: dict[str, NDArray[Any]], capacity: int) -> int:
    """Return the index of the first step of the tail.

    The tail begins when nobody waits and the batch is no longer full; a run that is never
    full has no tail (open arrivals).

    Parameters
    ----------
    steps
        Step columns of one replica, in order.
    capacity
        Most requests in flight.
    """
    full = steps["n_running"] + steps["n_finished"] >= capacity
    if not full.any():
        return int(full.size)
    last_full = int(np.flatnonzero(full)[-1])
    waiting = np.flatnonzero(steps["n_waiting"] > 0)
    last_waiting = int(waiting[-1]) if waiting.size else 0
    return max(last_full, last_waiting) + 1


def decode_window(steps: dict[str, NDArray[Any]], capacity: int) -> NDArray[np.bool_]:
    """Return which steps draft or decode before the tail, shape (n_steps,)."""
    mask: NDArray[np.bool_] = steps["kind"] != int(StepKind.PREFILL)
    mask &= np.arange(mask.size) < tail_start(steps, capacity)
    return mask
