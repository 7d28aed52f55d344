"""What a schedule may know of time: estimates at the present context."""

from __future__ import annotations

from psdsim.engine.costs import PassCosts
from psdsim.engine.roster import Roster


class Estimates:
    """Step times without jitter, at the mean context of the requests in flight (`View`).

    Parameters
    ----------
    costs
        Step times.
    roster
        Whose context.
    """

    def __init__(self, costs: PassCosts, roster: Roster) -> None:
        self._costs = costs
        n = len(roster.running)
        self._context = roster.kv.n_context / n if n else 0.0

    def target_s(self, n_seqs: int, n_tokens: int) -> float:
        """Return seconds of a target pass over n_seqs requests with n_tokens tokens fed in all."""
        return self._costs.target_estimate(n_seqs, n_tokens, round(self._context * n_seqs))

    def draft_s(self, n_seqs: int, n: int) -> float:
        """Return seconds of a drafting phase of n tokens for each of n_seqs requests."""
        return self._costs.draft_estimate(n_seqs, n, round(self._context * n_seqs))
