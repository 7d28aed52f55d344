"""What every schedule is: a small class whose `run` yields commands.

A schedule never sees time, randomness, simpy or torch; it decides what is drafted, when
it is verified, what is thrown away and which group a new request joins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from psdsim.commands import MAX_K, Command, Ids, Mask
from psdsim.errors import InputError

Program = Generator[Command, Any, None]
"""A running schedule: yields commands, is sent answers."""
Answered = Generator[Command, Any, Any]
"""A part of a running schedule that returns an answer of its own."""


class Schedule(ABC):
    """One decoding schedule with its draft length and its place for requests.

    Parameters
    ----------
    k
        Drafted tokens per round and request, 0..64.
    capacity
        Most requests in flight, >= 1.
    chunked
        Prompts are computed in pieces inside decode passes instead of in steps of their own.
    """

    name: ClassVar[str]
    """Name on the command line."""
    summary: ClassVar[str]
    """Mechanism in one sentence."""
    source: ClassVar[str]
    """Where it was published."""
    n_groups: ClassVar[int] = 1
    """Groups that move through the schedule; each holds `max_num_seqs` on the step-batch basis."""
    drafts: ClassVar[bool] = True
    """Whether a draft model is used at all."""
    overlaps: ClassVar[bool] = False
    """Whether drafting and verifying run at the same time, on devices of their own."""
    bonus: ClassVar[bool] = True
    """Whether the last row of a target pass gives a token of its own (chain rounds)."""
    asks_confidence: ClassVar[bool] = False
    """Whether it asks for `Confidence`: a run on real models then has its drafter compute it."""
    min_k: ClassVar[int] = 0
    """Smallest draft length with a meaning."""
    supports_chunked: ClassVar[bool] = True
    """Whether prompts can ride along in decode passes."""

    def __init__(self, k: int, capacity: int, *, chunked: bool = False) -> None:
        if not self.min_k <= k <= MAX_K:
            raise InputError(
                f"{self.name} was asked for k={k}",
                expected=f"a whole number from {self.min_k} to {MAX_K}",
                where="k",
            )
        if chunked and not self.supports_chunked:
            raise InputError(
                f"{self.name} runs prefill in steps of its own and has no chunked prefill",
                expected="chunked_prefill: false",
                where="engine.chunked_prefill",
            )
        self.k = k
        self.capacity = capacity
        self.chunked = chunked

    @property
    def rows(self) -> int:
        """Most tokens that one request feeds to one target pass while it decodes."""
        return self.k + 1

    @property
    def reach(self) -> int:
        """Most drafted tokens that one request holds KV for, tentative and being drafted."""
        return 2 * self.k

    @property
    def n_targets(self) -> int:
        """Copies of the target that passes are given to."""
        return 1

    @abstractmethod
    def run(self) -> Program:
        """Return the generator of commands; it ends when no request is left."""


def drop(ids: Ids, gone: Ids) -> Ids:
    """Return `ids` without those in `gone`, in order (the same array if none is in it)."""
    if not gone.size:
        return ids
    keep: Mask = ~np.isin(ids, gone)
    return ids if keep.all() else ids[keep]
