"""KV-cache blocks: who fits, and who must go when drafts reserve their look-ahead slots."""

from __future__ import annotations

import numpy as np

from psdsim.commands import Ids
from psdsim.engine.state import RequestState
from psdsim.errors import InputError


class KvPool:
    """Counts blocks of a paged KV cache (PagedAttention's allocation, whole blocks a request).

    The exact count is only made when a cheap upper bound doesn't already show that all fits.

    Parameters
    ----------
    n_blocks
        Blocks of the pool; None is unlimited.
    block_size
        Tokens per block.
    state
        Request table; contexts are read from it.
    """

    def __init__(self, n_blocks: int | None, block_size: int, state: RequestState) -> None:
        self.n_blocks = n_blocks
        self.block_size = block_size
        self._state = state
        self.n_context = 0
        """Prompt and emitted tokens of all running requests, kept up to date by the replica."""
        self.reserved: dict[int, tuple[Ids, int]] = {}
        """Look-ahead slots by group: who holds them, how many tokens each."""
        self.largest_reserve = 1

    def check_fits_alone(self, n_drafted: int) -> None:
        """Refuse requests that could never run, even alone with so many drafts (`reach`)."""
        if self.n_blocks is None:
            return
        s = self._state
        need = -(-(s.prompt_tokens + s.output_tokens + n_drafted + 1) // self.block_size)
        worst = int(need.argmax())
        if need[worst] > self.n_blocks:
            raise InputError(
                f"request {worst} ({s.prompt_tokens[worst]} prompt + {s.output_tokens[worst]} "
                f"output tokens) needs {need[worst]} KV blocks of {self.block_size} tokens and "
                f"the pool has {self.n_blocks}",
                expected="a pool that holds the longest request",
                where="engine.kv_blocks",
            )

    def surely_fits(self, n_more: int, n_more_tokens: int, n_running: int) -> bool:
        """Say whether an upper bound of the need is below the pool."""
        if self.n_blocks is None:
            return True
        # A request of t tokens takes at most t // block_size + 1 blocks.
        n = n_running + n_more
        tokens = self.n_context + n_more_tokens + n * self.largest_reserve
        return tokens // self.block_size + n <= self.n_blocks

    def blocks_used(self, running: Ids) -> int:
        """Return blocks held by `running`, reservations included (state must be settled)."""
        if not running.size:
            return 0
        s = self._state
        tokens = s.prompt_tokens[running] + s.emitted[running]
        if self.reserved:
            extra = np.zeros(s.prompt_tokens.size, dtype=np.int64)
            for ids, n in self.reserved.values():
                np.maximum.at(extra, ids, n)
            tokens = tokens + extra[running]
        return int((-(-tokens // self.block_size)).sum())

    def blocks_for(self, n_tokens: int) -> int:
        """Return the blocks that `n_tokens` take."""
        return -(-n_tokens // self.block_size)
