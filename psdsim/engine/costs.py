"""From batch shapes to seconds: what one pass of each model takes, jitter included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psdsim.engine.setup import Costs
from psdsim.latency import JitterStream
from psdsim.seeds import Stream


class PassCosts:
    """Durations of draft phases, target passes and prefills of one replica.

    Jitter multiplies whole passes: one factor of mean 1 for a target pass or a prefill, one
    for a drafting phase (all its forwards together).
    """

    def __init__(self, costs: Costs, seed: int, replication: int, replica: int) -> None:
        self._target = costs.target
        self._draft = costs.draft
        self._draft_start_s = costs.draft_start_s
        self._prefill = costs.prefill or costs.target
        self._draft_prefill = costs.draft_prefill or costs.draft
        self._target_jitter = JitterStream(
            costs.target_jitter_cv, costs.target_jitter_law, seed, replication,
            Stream.TARGET_JITTER, replica=replica,
        )  # fmt: skip
        self._draft_jitter = JitterStream(
            costs.draft_jitter_cv, costs.draft_jitter_law, seed, replication,
            Stream.DRAFT_JITTER, replica=replica,
        )  # fmt: skip
        self._steady = not self._target_jitter.active
        self._draft_steady = not self._draft_jitter.active

    def target_pass(self, n_seqs: int, n_tokens: int, n_kv: int) -> float:
        """Return seconds of one target pass."""
        time_s = self._target(n_seqs, n_tokens, n_kv)
        return time_s if self._steady else time_s * self._target_jitter.next()

    def target_prefill(self, n_seqs: int, n_tokens: int) -> float:
        """Return seconds of the target's pass over whole prompts."""
        time_s = self._prefill(n_seqs, n_tokens, 0)
        return time_s if self._steady else time_s * self._target_jitter.next()

    def draft_prefill(self, n_seqs: int, n_tokens: int) -> float:
        """Return seconds of the draft model's pass over whole prompts."""
        assert self._draft_prefill is not None
        time_s = self._draft_prefill(n_seqs, n_tokens, 0)
        return time_s if self._draft_steady else time_s * self._draft_jitter.next()

    def draft_phase(
        self, n_seqs: int, n: int | NDArray[np.int64], n_kv: int, prompt_debt: int
    ) -> float:
        """Return seconds of one drafting phase: a forward for each drafted token in turn.

        Parameters
        ----------
        n_seqs
            Requests in the batch.
        n
            Tokens to draft, for all or for each.
        n_kv
            Tokens in the draft's cache before it starts.
        prompt_debt
            Prompt tokens that the draft model must first read (chunked prefill), fed in the
            first forward.
        """
        draft = self._draft
        assert draft is not None
        affine = draft.affine
        if isinstance(n, int) and affine is not None:
            base, per_seq, per_token, per_kv = affine
            time_s = n * (base + (per_seq + per_token) * n_seqs) + per_token * prompt_debt
            if per_kv:
                # Forward i reads n_kv + i * n_seqs tokens.
                time_s += per_kv * (n * n_kv + n_seqs * (n * (n - 1) // 2))
        else:
            time_s = self._forward_by_forward(n_seqs, n, n_kv, prompt_debt)
        time_s += self._draft_start_s
        return time_s if self._draft_steady else time_s * self._draft_jitter.next()

    def _forward_by_forward(
        self, n_seqs: int, n: int | NDArray[np.int64], n_kv: int, prompt_debt: int
    ) -> float:
        draft = self._draft
        assert draft is not None
        lengths = np.full(n_seqs, n) if isinstance(n, int) else n
        time_s = 0.0
        mean_kv = n_kv / n_seqs if n_seqs else 0.0
        for i in range(int(lengths.max(initial=0))):
            active = n_seqs if isinstance(n, int) else int(np.count_nonzero(lengths > i))
            kv = n_kv if active == n_seqs else round(mean_kv * active)
            time_s += draft(active, active + prompt_debt, kv + i * active)
            prompt_debt = 0
        return time_s
