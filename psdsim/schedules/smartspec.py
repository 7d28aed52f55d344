"""SmartSpec: the draft length with the most goodput for the batch at hand."""

from __future__ import annotations

from psdsim.commands import Chunks, Draft, Handle, Ids, Look, Score, Verdict, View
from psdsim.errors import InputError
from psdsim.schedules.base import Answered
from psdsim.schedules.serial import SpeculativeDecoding

_PRIOR_TESTS = 10.0  # how many tested drafts the prior weighs


class SmartSpec(SpeculativeDecoding):
    """Serial SD that now and then chooses the k of most goodput, from 0 to a largest one.

    Source: SmartSpec / TurboSpec (arXiv 2406.14066) and its public code: goodput(k) =
    batch * (1 + alpha + ... + alpha^k) / (draft + target + overhead) with one running estimate of
    alpha for all requests and step times by regression, renewed every 20 steps.

    The estimate is accepted drafts over tested ones, each step's weight fading with age, and a
    prior that weighs ten drafts. At k=0 nothing is learnt, so the estimate drifts back to the
    prior and drafting is tried again where the prior says it pays.

    Parameters
    ----------
    k, capacity, chunked
        As for `Schedule`; k is the largest draft length.
    prior
        Estimate of alpha before any verdict, in [0, 1].
    interval
        Steps from one choice to the next, >= 1.
    memory
        Steps after which a verdict's weight has fallen to 1/e, >= 1.
    overhead_s, overhead_per_seq_s
        CPU time of a step, and for each request, s, >= 0.
    """

    name = "smartspec"
    summary = "choose k for the most tokens per second of the present batch, 0 included"
    source = "SmartSpec / TurboSpec (Liu et al. 2024, arXiv 2406.14066) and the code in TETRIS's"

    def __init__(
        self,
        k: int,
        capacity: int,
        *,
        chunked: bool = False,
        prior: float = 0.7,
        interval: int = 20,
        memory: float = 100.0,
        overhead_s: float = 0.0,
        overhead_per_seq_s: float = 0.0,
    ) -> None:
        super().__init__(k, capacity, chunked=chunked)
        bad = {
            "prior": (prior, "a number from 0 to 1", 0.0 <= prior <= 1.0),
            "interval": (interval, "at least 1 step", interval >= 1),
            "memory": (memory, "at least 1 step", memory >= 1.0),
            "overhead_s": (overhead_s, "at least 0 s", overhead_s >= 0.0),
            "overhead_per_seq_s": (overhead_per_seq_s, "at least 0 s", overhead_per_seq_s >= 0.0),
        }
        for name, (value, expected, fine) in bad.items():
            if not fine:
                raise InputError(f"smartspec has {name}={value}", expected=expected, where=name)
        self.prior = prior
        self.interval = interval
        self.overhead_s = overhead_s
        self.overhead_per_seq_s = overhead_per_seq_s
        self._keeps = 1.0 - 1.0 / memory
        self._accepted = 0.0
        self._tested = 0.0
        self._wait = 0
        self.chosen = k

    @property
    def alpha(self) -> float:
        """The present estimate of P(a draft is accepted | all before it were)."""
        return (self.prior * _PRIOR_TESTS + self._accepted) / (_PRIOR_TESTS + self._tested)

    def best_k(self, view: View, n_seqs: int) -> int:
        """Return the k of most goodput for a batch, the smaller at a tie.

        Parameters
        ----------
        view
            Estimates of step times.
        n_seqs
            Requests in the batch, >= 1.
        """
        alpha, tokens, reach = self.alpha, 0.0, 1.0
        best, found = -1.0, 0
        overhead_s = self.overhead_s + self.overhead_per_seq_s * n_seqs
        for k in range(self.k + 1):
            tokens += reach
            reach *= alpha
            draft_s = view.draft_s(n_seqs, k) if k else 0.0
            step_s = draft_s + view.target_s(n_seqs, n_seqs * (k + 1)) + overhead_s
            goodput = n_seqs * tokens / step_s
            if goodput > best:
                best, found = goodput, k
        return found

    def _propose(self, ids: Ids) -> Answered:
        if self._wait <= 0:
            self.chosen = self.best_k((yield Look()), ids.size)
            self._wait = self.interval
        self._wait -= 1
        if not self.chosen:
            return None
        return (yield Draft(ids, self.chosen))

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        return (yield Score(ids, 0 if draft is None else self.chosen, chunks=chunks))

    def _learn(self, ids: Ids, draft: Handle | None, verdict: Verdict) -> None:
        self._accepted *= self._keeps
        self._tested *= self._keeps
        if verdict.n_accepted is None:
            return
        n_accepted = int(verdict.n_accepted.sum())
        # Behind a rejection nothing was tested.
        n_missed = int((verdict.n_accepted < verdict.n_tested).sum())
        self._accepted += n_accepted
        self._tested += n_accepted + n_missed


__all__ = ["SmartSpec"]
