"""The acceptance rule inside the simulator: how many drafts of each request a pass accepts.

One class a way of deciding (`AcceptanceModel.judged_by`). All count accepted drafts before a
stop clips anything; who never drafts is not judged.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psdsim.acceptance import AcceptanceModel, Replay
from psdsim.commands import Counts, Score
from psdsim.engine.batch import Batch
from psdsim.engine.state import RequestState
from psdsim.engine.tape import Tape
from psdsim.errors import InputError


class Judge(Protocol):
    """Decides verdicts."""

    def accepted(self, batch: Batch, score: Score, k: int) -> Counts:
        """Return accepted drafts of each request, shape (batch.n,).

        Parameters
        ----------
        batch
            Who is judged; cursors point at the output position of the first tested draft.
        score
            The command: drafts tested per request, and whether the next block's first is too.
        k
            Length of the block that the tested drafts belong to.
        """


class TapeJudge:
    """A bit per output position: accept up to the next rejection on the tape."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def accepted(self, batch: Batch, score: Score, k: int) -> Counts:
        """Return the distance to the next rejection, at most the drafts tested."""
        gap: Counts = self._tape.next_reject.take(batch.cursor) - batch.cursor
        tested = score.n if score.bonus else score.n + 1
        np.minimum(gap, tested, out=gap)
        return gap


def _run_length(u: NDArray[np.float64], rates: NDArray[np.float64]) -> Counts:
    """Return how many leading positions have u below their rate; shapes (n, k) and (n|1, k)."""
    ok = u < rates
    lengths: Counts = np.cumprod(ok, axis=1, dtype=np.int64).sum(axis=1)
    return lengths


class PositionJudge:
    """A rate per position in the drafted block; only the uniforms are shared by schedules."""

    def __init__(self, model: AcceptanceModel, tape: Tape) -> None:
        self._model = model
        self._tape = tape
        self._rates: dict[int, NDArray[np.float64]] = {}

    def _rates_at(self, k: int) -> NDArray[np.float64]:
        if k not in self._rates:
            self._rates[k] = self._model.conditional_rates(k)
        return self._rates[k]

    def accepted(self, batch: Batch, score: Score, k: int) -> Counts:
        """Test each draft with the rate of its place in its block."""
        rates = self._rates_at(k)
        n = np.broadcast_to(np.asarray(score.n, dtype=np.int64), (batch.n,))
        tested = n if score.bonus else n + 1
        widest = int(tested.max(initial=0))
        if not widest:
            return np.zeros(batch.n, dtype=np.int64)
        offset = np.arange(widest)
        u = self._tape.uniforms[batch.cursor[:, None] + offset]
        # A chain tests its whole block from place 0. Without bonus, the n tentative drafts are
        # the last n of their block, and the row after them is place 0 of the next block.
        first = np.zeros_like(n) if score.bonus else k - n
        place = first[:, None] + offset
        place = np.where(offset < n[:, None], place, 0)
        row_rates = np.where(offset < tested[:, None], rates[np.minimum(place, k - 1)], -1.0)
        return _run_length(u, row_rates)


class RoundsJudge:
    """Rates by place in the round and by whether the round before was fully accepted."""

    def __init__(self, model: AcceptanceModel, tape: Tape, state: RequestState) -> None:
        self._model = model
        self._tape = tape
        self._state = state

    def accepted(self, batch: Batch, score: Score, k: int) -> Counts:
        """Test each draft, and remember whether all were accepted."""
        if not score.bonus:
            raise InputError(
                "the Markov-between-rounds model speaks of whole chain rounds",
                expected="schedule sd or minedraft, or a model over positions (markov)",
                where="acceptance.kind",
            )
        after_full, otherwise = self._model.conditional_rates_after(k)  # type: ignore[attr-defined]
        u = self._tape.uniforms[batch.cursor[:, None] + np.arange(k)]
        full = self._state.last_full[batch.ids]
        accepted = _run_length(u, np.where(full[:, None], after_full, otherwise))
        self._state.last_full[batch.ids] = accepted == k
        return accepted


class ReplayJudge:
    """Recorded accepted lengths, one after another for each request."""

    def __init__(self, model: Replay, state: RequestState) -> None:
        self._recorded = model.recorded()
        self._k = model.k
        self._next = np.zeros(len(state), dtype=np.int64)

    def accepted(self, batch: Batch, score: Score, k: int) -> Counts:
        """Return the next recorded value of each request."""
        if not score.bonus or k != self._k:
            raise InputError(
                f"a recording of chain rounds at k={self._k} can't be replayed here",
                expected=f"schedule sd or minedraft at k={self._k}",
                where="acceptance.kind",
            )
        out = np.empty(batch.n, dtype=np.int64)
        for i, request in enumerate(batch.ids.tolist()):
            rounds = self._recorded[request % len(self._recorded)]
            place = int(self._next[request])
            if place >= rounds.size:
                raise InputError(
                    f"request {request} needs more rounds than the {rounds.size} recorded for it",
                    expected="a recording as long as the output",
                    where="acceptance",
                )
            out[i] = rounds[place]
            self._next[request] = place + 1
        return out
