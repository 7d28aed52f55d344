"""The acceptance rule: how many drafts of each request a target pass accepts.

One class a way of deciding (`AcceptanceModel.judged_by`). All count accepted drafts before a
stop clips anything; who never drafts is not judged.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psdsim.acceptance import AcceptanceModel, Replay
from psdsim.commands import Counts, Ids, Score
from psdsim.errors import InputError
from psdsim.verdict.signals import Bits, Floats, run_lengths
from psdsim.verdict.tape import Tape


class Judged(Protocol):
    """The requests of a pass, as much of them as a judge needs."""

    @property
    def ids(self) -> Ids:
        """Request ids, shape (n,)."""

    @property
    def cursor(self) -> NDArray[np.int64]:
        """Flat tape index of each request's next output position, shape (n,).

        That is the position of the first tested draft: `Tape.take_slot` plus tokens emitted.
        """

    @property
    def n(self) -> int:
        """How many requests."""


class Judge(Protocol):
    """Decides verdicts."""

    def accepted(self, batch: Judged, score: Score, k: int) -> Counts:
        """Return accepted drafts of each request, shape (batch.n,).

        Parameters
        ----------
        batch
            Who is judged.
        score
            The command: drafts tested per request, and whether the next block's first is too.
        k
            Length of the block that the tested drafts belong to.
        """

    def bits(self, batch: Judged, k: int, variant: int | Counts = 0) -> Bits:
        """Say of the next k places of each request whether a draft there would be accepted.

        A block of k starts at the cursor; the tree, the candidates and the confidences of a
        proposal are read off these, shape (batch.n, k).
        """

    def rates(self, k: int) -> Floats:
        """Return P(accepted | all before it were) by place in a block of k, shape (k,)."""


def n_tested(score: Score) -> int | Counts:
    """Return the drafts that a pass tests: a peeked one is one more."""
    return score.n + 1 if score.peek is not None else score.n


def block_length(score: Score) -> int:
    """Return the length of the block that the tested drafts belong to, a judge's k."""
    whole: Any = score.of if score.of is not None else score.peek
    n = score.n if whole is None else whole.command.n
    return n if isinstance(n, int) else int(n.max())


class _OnTape:
    """What judges of a model on a tape share."""

    def __init__(self, model: AcceptanceModel, tape: Tape) -> None:
        self._model = model
        self._tape = tape
        self._rates: dict[int, Floats] = {}

    def rates(self, k: int) -> Floats:
        """Return the model's conditional rates, shape (k,)."""
        if k not in self._rates:
            self._rates[k] = self._model.conditional_rates(k)
        return self._rates[k]


class TapeJudge(_OnTape):
    """A bit per output position: accept up to the next rejection on the tape."""

    def accepted(self, batch: Judged, score: Score, k: int) -> Counts:
        """Return the distance to the next rejection, at most the drafts tested."""
        of = score.of
        variant = 0 if of is None else of.command.variant  # type: ignore[attr-defined]
        gap: Counts = self._next(batch.cursor, variant) - batch.cursor
        np.minimum(gap, n_tested(score), out=gap)
        return gap

    def bits(self, batch: Judged, k: int, variant: int | Counts = 0) -> Bits:
        """Look the places up on the tape."""
        places = batch.cursor[:, None] + np.arange(k)
        which = variant if type(variant) is int else np.asarray(variant)[:, None]
        return np.asarray(self._next(places, which) > places)

    def _next(self, places: NDArray[np.int64], variant: int | Counts) -> NDArray[np.int64]:
        tape = self._tape
        if type(variant) is int:
            return tape.next_reject_of(variant).take(places)
        rows = np.stack([tape.next_reject_of(v).take(places) for v in range(tape.n_variants)])
        which = np.broadcast_to(variant, places.shape)[None]
        return np.asarray(np.take_along_axis(rows, which, axis=0)[0])


class PositionJudge(_OnTape):
    """A rate per position in the drafted block; only the uniforms are shared by schedules."""

    def bits(self, batch: Judged, k: int, variant: int | Counts = 0) -> Bits:
        """Compare the uniforms with the rates of the places."""
        u = self._tape.uniforms[batch.cursor[:, None] + np.arange(k)]
        return np.asarray(u < self.rates(k))

    def accepted(self, batch: Judged, score: Score, k: int) -> Counts:
        """Test each draft with the rate of its place in its block."""
        rates = self.rates(k)
        n = np.broadcast_to(np.asarray(score.n, dtype=np.int64), (batch.n,))
        tested = n + 1 if score.peek is not None else n
        widest = int(tested.max(initial=0))
        if not widest:
            return np.zeros(batch.n, dtype=np.int64)
        offset = np.arange(widest)
        u = self._tape.uniforms[batch.cursor[:, None] + offset]
        # A chain tests its whole block from place 0. With a peek, the n tentative drafts are
        # the last n of their block, and the row after them is place 0 of the next block.
        first = np.zeros_like(n) if score.peek is None else k - n
        place = first[:, None] + offset
        place = np.where(offset < n[:, None], place, 0)
        row_rates = np.where(offset < tested[:, None], rates[np.minimum(place, k - 1)], -1.0)
        return run_lengths(u < row_rates)


class RoundsJudge(_OnTape):
    """Rates by place in the round and by whether the round before was fully accepted."""

    def __init__(self, model: AcceptanceModel, tape: Tape, n_requests: int) -> None:
        super().__init__(model, tape)
        self._last_full = np.zeros(n_requests, dtype=np.bool_)

    def accepted(self, batch: Judged, score: Score, k: int) -> Counts:
        """Test each draft, and remember whether all were accepted."""
        if not score.bonus or score.of is not None:
            raise InputError(
                "the Markov-between-rounds model speaks of whole chain rounds",
                expected="schedule sd or minedraft, or a model over positions (markov)",
                where="acceptance.kind",
            )
        accepted = run_lengths(self.bits(batch, k))
        self._last_full[batch.ids] = accepted == k
        return accepted

    def bits(self, batch: Judged, k: int, variant: int | Counts = 0) -> Bits:
        """Compare the uniforms with the rates that the round before leaves."""
        after_full, otherwise = self._model.conditional_rates_after(k)  # type: ignore[attr-defined]
        u = self._tape.uniforms[batch.cursor[:, None] + np.arange(k)]
        full = self._last_full[batch.ids]
        return np.asarray(u < np.where(full[:, None], after_full, otherwise))


class ReplayJudge:
    """Recorded accepted drafts, pass after pass of each request."""

    def __init__(self, model: Replay, n_requests: int) -> None:
        self._recorded = model.recorded()
        self._k = model.k
        self._bonus = model.bonus
        self._next = np.zeros(n_requests, dtype=np.int64)

    def accepted(self, batch: Judged, score: Score, k: int) -> Counts:
        """Return the next recorded value of each request."""
        if score.bonus != self._bonus or k != self._k or score.of is not None:
            what = "chain rounds" if self._bonus else "passes without a bonus row"
            where = "sd or minedraft" if self._bonus else "pearl or pearl-draft-ahead"
            raise InputError(
                f"a recording of {what} at k={self._k} can't be replayed here",
                expected=f"schedule {where} at k={self._k}",
                where="acceptance.kind",
            )
        # A pass without bonus row tests one more: the first draft of the next block.
        tested = np.broadcast_to(np.asarray(n_tested(score)), (batch.n,))
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
            if rounds[place] > tested[i]:
                raise InputError(
                    f"request {request} has {rounds[place]} accepted drafts recorded for round "
                    f"{place}, which tests {tested[i]} here",
                    expected="the schedule that was recorded",
                    where="acceptance",
                )
            out[i] = rounds[place]
            self._next[request] = place + 1
        return out

    def bits(self, batch: Judged, k: int, variant: int | Counts = 0) -> Bits:
        """Refuse: a recording has counts of chain rounds only."""
        raise self._chain_only()

    def rates(self, k: int) -> Floats:
        """Refuse: a recording has counts of chain rounds only."""
        raise self._chain_only()

    @staticmethod
    def _chain_only() -> InputError:
        return InputError(
            "a recording of rounds has no confidences, trees or candidates",
            expected="a model of acceptance fitted to it (psdsim calibrate)",
            where="acceptance.kind",
        )


def make_judge(
    model: AcceptanceModel, schedule_k: int, tape: Tape | None, n_requests: int
) -> Judge:
    """Return the judge of an acceptance model.

    Parameters
    ----------
    model
        Decides verdicts.
    schedule_k
        Drafted tokens per round of the schedule.
    tape
        The model's tape; None only for a replay, which reads none.
    n_requests
        Requests of the run; their ids are 0 to n_requests - 1.

    Raises
    ------
    psdsim.errors.InputError
        If the model can't speak about this draft length.
    """
    model.check_k(schedule_k)
    if isinstance(model, Replay):
        return ReplayJudge(model, n_requests)
    assert tape is not None
    if model.judged_by == "tape":
        return TapeJudge(model, tape)
    if model.judged_by == "rounds":
        return RoundsJudge(model, tape, n_requests)
    return PositionJudge(model, tape)
