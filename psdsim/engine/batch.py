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
        "cursor", "drafted", "ids", "last_emit", "min_left", "n", "n_kv", "rounds",
        "start", "stop_at", "uncorrected",
    )  # fmt: skip

    def __init__(self, ids: Ids, state: RequestState) -> None:
        self.ids = ids
        self.n = int(ids.size)
        emitted = state.emitted[ids]
        base = state.base[ids]
        self.start: NDArray[np.int64] = base + emitted
        self.cursor = self.start.copy()
        """Flat tape index of the next output position; a stop does not clip it."""
        self.stop_at: NDArray[np.int64] = base + state.output_tokens[ids]
        """Where the cursor has emitted all."""
        self.min_left = int((self.stop_at - self.cursor).min()) if self.n else 0
        """Lower bound of the tokens left, exact when it was last looked at."""
        # The last emitted token is not in the cache until it is fed.
        self.n_kv = int((state.prompt_tokens[ids] + emitted).sum()) - self.n
        last = state.last_emit_s[ids]
        same = self.n == 0 or bool((last == last[0]).all())
        self.last_emit: float | NDArray[np.float64] = float(last[0]) if same and self.n else last
        """When tokens were last emitted: one time for all once a step was shared."""
        self.rounds = 0
        self.drafted: int | NDArray[np.int64] = 0
        self.uncorrected: int | NDArray[np.int64] = 0
        """Passes that added no token of the target's own (accepted all, no bonus row)."""

    def settle(self, state: RequestState) -> None:
        """Write everything back to the table and start counting anew."""
        if not self.n:
            return
        ids = self.ids
        if not self.rounds and type(self.drafted) is int and not self.drafted:
            return
        moved = self.cursor - self.start
        state.emitted[ids] += np.minimum(self.cursor, self.stop_at) - self.start
        state.last_emit_s[ids] = self.last_emit
        state.n_rounds[ids] += self.rounds
        state.n_drafted[ids] += self.drafted
        # Each pass adds one token of the target's own, but for the uncorrected ones.
        state.n_accepted[ids] += moved - self.rounds + self.uncorrected
        self.start = self.cursor.copy()
        self.rounds = 0
        self.drafted = 0
        self.uncorrected = 0
