"""A batch in flight: the columns of its requests side by side, updated in place every step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import Ids
from psdsim.engine.state import RequestState


class Batch:
    """The requests of one ids array while that array stays the schedule's batch.

    Gathering per-request columns at every step would dominate the run time, so they are
    gathered once per composition and written back (`settle`) when it changes.
    """

    __slots__ = (
        "accepted", "cursor", "drafted", "ids", "last_emit", "left", "min_left", "n",
        "n_kv", "rounds",
    )  # fmt: skip

    def __init__(self, ids: Ids, state: RequestState) -> None:
        self.ids = ids
        self.n = int(ids.size)
        emitted = state.emitted[ids]
        self.left: NDArray[np.int64] = state.output_tokens[ids] - emitted
        """Tokens still to emit."""
        self.min_left = int(self.left.min()) if self.n else 0
        """Lower bound of `left`, exact when it was last looked at."""
        self.cursor: NDArray[np.int64] = state.base[ids] + emitted
        """Flat tape index of the next output position."""
        # The last emitted token is not in the cache until it is fed.
        self.n_kv = int((state.prompt_tokens[ids] + emitted).sum()) - self.n
        last = state.last_emit_s[ids]
        same = self.n == 0 or bool((last == last[0]).all())
        self.last_emit: float | NDArray[np.float64] = float(last[0]) if same and self.n else last
        """When tokens were last emitted: one time for all once a step was shared."""
        self.rounds = 0
        self.drafted: int | NDArray[np.int64] = 0
        self.accepted: NDArray[np.int64] = np.zeros(self.n, dtype=np.int64)

    def settle(self, state: RequestState) -> None:
        """Write everything back to the table and start counting anew."""
        if not self.n:
            return
        ids = self.ids
        state.emitted[ids] = state.output_tokens[ids] - self.left
        state.last_emit_s[ids] = self.last_emit
        state.n_rounds[ids] += self.rounds
        state.n_drafted[ids] += self.drafted
        state.n_accepted[ids] += self.accepted
        self.rounds = 0
        self.drafted = 0
        self.accepted[:] = 0
