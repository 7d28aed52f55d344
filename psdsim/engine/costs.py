"""From batch shapes to seconds: what one pass of each model takes, jitter included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import Draft
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
        self._resume_s = costs.target_resume_s
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

    def target_pass(self, n_seqs: int, n_tokens: int, n_kv: int, waited: bool = False) -> float:
        """Return seconds of one target pass; `waited`: for drafts, on a device of its own."""
        time_s = self._target(n_seqs, n_tokens, n_kv)
        if waited:
            time_s += self._resume_s
        return time_s if self._steady else time_s * self._target_jitter.next()

    def target_estimate(self, n_seqs: int, n_tokens: int, n_kv: int) -> float:
        """Return the mean seconds of a target pass, without jitter."""
        return self._target(n_seqs, n_tokens, n_kv)

    def draft_estimate(self, n_seqs: int, n: int, n_kv: int) -> float:
        """Return the mean seconds of a plain drafting phase, without jitter."""
        draft = self._draft
        assert draft is not None
        forwards = (draft(n_seqs, n_seqs, n_kv + i * n_seqs) for i in range(n))
        return sum(forwards) + (self._draft_start_s if n else 0.0)

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
        self,
        n_seqs: int,
        n: int | NDArray[np.int64],
        n_kv: int,
        prompt_debt: int,
        shape: Draft | None = None,
    ) -> float:
        """Return seconds of one drafting phase: plainly, a forward for each drafted token in turn.

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
        shape
            The command, where its forwards are not one row a request: blocks, trees, variants.
        """
        draft = self._draft
        assert draft is not None
        affine = draft.affine
        if shape is not None:
            if shape.passes == 0:
                return 0.0
            time_s = self._shaped(n_seqs, n, n_kv, prompt_debt, shape)
        elif isinstance(n, int) and affine is not None:
            base, per_seq, per_token, per_kv = affine
            time_s = n * (base + (per_seq + per_token) * n_seqs) + per_token * prompt_debt
            if per_kv:
                # Forward i reads n_kv + i * n_seqs tokens.
                time_s += per_kv * (n * n_kv + n_seqs * (n * (n - 1) // 2))
        else:
            time_s = self._forward_by_forward(n_seqs, n, n_kv, prompt_debt)
        time_s += self._draft_start_s
        return time_s if self._draft_steady else time_s * self._draft_jitter.next()

    def _shaped(
        self, n_seqs: int, n: int | NDArray[np.int64], n_kv: int, prompt_debt: int, shape: Draft
    ) -> float:
        """Return seconds of the forwards of a block, a tree's levels or side-by-side inputs."""
        draft = self._draft
        assert draft is not None
        longest = n if isinstance(n, int) else int(n.max(initial=0))
        if shape.passes is not None:
            rows = n_seqs * longest * shape.inputs
            first = draft(n_seqs, rows + prompt_debt, n_kv)
            more = shape.passes - 1
            return first + (more * draft(n_seqs, rows, n_kv) if more else 0.0)
        # The forward that makes a level of a tree reads the level above it; the first, one row.
        levels = [1, *shape.tree.widths[:-1]] if shape.tree is not None else [shape.width] * longest
        lengths = np.full(n_seqs, longest) if isinstance(n, int) else n
        mean_kv = n_kv / n_seqs if n_seqs else 0.0
        time_s, above = 0.0, 0
        for i, width in enumerate(levels):
            active = int(np.count_nonzero(lengths > i))
            kv = n_kv if active == n_seqs else round(mean_kv * active)
            time_s += draft(
                active, active * width * shape.inputs + prompt_debt, kv + above * active
            )
            above += width
            prompt_debt = 0
        return time_s

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
