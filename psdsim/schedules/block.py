"""Serial decoding with a drafter that fills a whole block at once."""

from __future__ import annotations

import numpy as np

from psdsim.commands import MAX_K, Chunks, Draft, Handle, Ids, Score, Verdict
from psdsim.errors import InputError
from psdsim.schedules.base import Answered
from psdsim.schedules.remembered import Remembered
from psdsim.schedules.serial import SpeculativeDecoding


class BlockDecoding(SpeculativeDecoding):
    """A few forwards over masks draft k tokens; of several candidates the best is kept.

    Source: SpecDiff-2 (arXiv 2511.00606), PEFT-BD (arXiv 2607.12422). Drafting takes `passes`
    forwards whatever k is; the target scores all candidates in one pass.

    Parameters
    ----------
    k, capacity, chunked
        See `Schedule`.
    passes
        Forwards (denoise steps) per block, >= 1.
    candidates
        Blocks drawn from the same forwards, >= 1.
    """

    name = "block"
    summary = "draft a whole block in a few forwards, verify it (or several candidates) in one pass"
    source = "SpecDiff-2 (arXiv 2511.00606)"

    def __init__(
        self,
        k: int,
        capacity: int,
        *,
        chunked: bool = False,
        passes: int = 1,
        candidates: int = 1,
    ) -> None:
        super().__init__(k, capacity, chunked=chunked)
        for what, value in (("passes", passes), ("candidates", candidates)):
            if value < 1:
                raise InputError(f"a block has {what} {value}", expected="at least 1")
        self.passes = passes
        self.candidates = candidates

    @property
    def rows(self) -> int:
        """Most tokens that one request feeds: every candidate whole, and the token before."""
        return self.k * self.candidates + 1

    @property
    def reach(self) -> int:
        """Most drafted tokens that one request holds KV for: every candidate."""
        return max(super().reach, self.k * self.candidates)

    def _propose(self, ids: Ids) -> Answered:
        """Draft the block."""
        return (yield Draft(ids, self.k, passes=self.passes, candidates=self.candidates))

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        """Score every candidate."""
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        return (yield Score(ids, draft.command.n, of=draft, chunks=chunks))  # type: ignore[attr-defined]


class ControlledBlock(BlockDecoding):
    """A block whose length follows what was generated and what was accepted (DiffuSpec).

    Source: DiffuSpec (arXiv 2510.02358): k' = clip(G + delta [A >= G], k_min, k_max), with G and A
    the exponential moving averages of generated and accepted lengths. Each request has its own.
    What a drafter generates before its end-of-sequence token is not known here: G follows k.

    Parameters
    ----------
    k, capacity, chunked
        See `Schedule`; k is a request's first length, clipped to the bounds.
    k_min, k_max
        Bounds of the length, 1 <= k_min <= k_max <= 64.
    step
        delta, tokens, >= 0.
    memory
        rho, weight of the newest round in the averages, in (0, 1].
    """

    name = "controlled-block"
    summary = "draft a whole block at once; its length follows generated and accepted lengths"
    source = "DiffuSpec (arXiv 2510.02358)"
    min_k = 1

    def __init__(
        self,
        k: int,
        capacity: int,
        *,
        chunked: bool = False,
        k_min: int = 20,
        k_max: int = 30,
        step: int = 10,
        memory: float = 0.5,
    ) -> None:
        if not 1 <= k_min <= k_max <= MAX_K or step < 0 or not 0.0 < memory <= 1.0:
            raise InputError(
                f"the length controller has k_min {k_min}, k_max {k_max}, step {step}, "
                f"memory {memory}",
                expected=f"1 <= k_min <= k_max <= {MAX_K}, step >= 0, memory above 0, at most 1",
            )
        super().__init__(k, capacity, chunked=chunked)
        first = min(max(k, k_min), k_max)
        # Memory and token budgets are for the longest block that may come.
        self.k = k_max
        self.k_min, self.k_max, self.step, self.memory = k_min, k_max, step, memory
        # Next length, average of generated and of accepted tokens; -1: no round yet.
        self._state = Remembered(np.array([first, -1.0, -1.0]))

    def _propose(self, ids: Ids) -> Answered:
        """Draft every request's own length in one pass."""
        n = self._state[ids][:, 0].astype(np.int64)
        return (yield Draft(ids, n, passes=self.passes))

    def _test(self, ids: Ids, draft: Handle | None, chunks: Chunks | None) -> Answered:
        """Score each block whole."""
        if draft is None:
            return (yield Score(ids, 0, chunks=chunks))
        return (yield Score(ids, draft.lengths, of=draft, chunks=chunks))

    def _learn(self, ids: Ids, draft: Handle | None, verdict: Verdict) -> None:
        """Move the averages and set each request's next length."""
        if verdict.n_accepted is None:
            return
        seen = np.stack([np.asarray(verdict.n_tested), verdict.n_accepted], axis=1)
        averages = self._state[ids][:, 1:]
        moved = np.where(averages < 0.0, seen, averages + self.memory * (seen - averages))
        generated, accepted = moved.T
        length = generated + self.step * (accepted >= generated)
        length = np.clip(np.rint(length), self.k_min, self.k_max)
        self._state[ids] = np.column_stack([length, moved])
