"""The texts in flight: what is confirmed, what is tentative, and what the drafter believes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Block:
    """Tokens drafted in one phase for one request, with the distributions they were drawn from.

    Parameters
    ----------
    tokens
        Drafted tokens.
    laws
        Their distributions, shape (len(tokens), vocab); None: proposed for certain.
    """

    tokens: list[int]
    laws: NDArray[np.float32] | None = None

    def behind(self, n: int) -> Block:
        """Return what is left after the first `n` tokens."""
        return Block(self.tokens[n:], None if self.laws is None else self.laws[n:])

    def first(self, n: int) -> Block:
        """Return the first `n` tokens."""
        return Block(self.tokens[:n], None if self.laws is None else self.laws[:n])

    def then(self, other: Block) -> Block:
        """Return both, one behind the other."""
        laws: NDArray[np.float32] | None = None
        if self.laws is not None and other.laws is not None:
            laws = np.concatenate((self.laws, other.laws))
        return Block(self.tokens + other.tokens, laws)


EMPTY = Block([])


@dataclass
class Text:
    """One request.

    Parameters
    ----------
    request, slot
        Its id, and its row in both caches.
    tokens
        Prompt and everything emitted (not clipped at the stop).
    n_prompt
        Tokens of the prompt.
    n_wanted
        Output tokens at which it stops.
    tentative
        Drafts that live on unverified (PEARL's post-verify), in front of `pending`.
    pending
        The block drafted last.
    believed
        What the drafter's copy of the text holds.
    """

    request: int
    slot: int
    tokens: list[int]
    n_prompt: int
    n_wanted: int
    tentative: Block = EMPTY
    pending: Block = EMPTY
    believed: list[int] = field(default_factory=list)
    agreed: int = 0
    """Leading tokens that `believed` and the confirmed text are known to share."""
    tested: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    n_rounds: int = 0
    """Target passes after the prefill."""
    n_drafted: int = 0
    n_discarded: int = 0
    n_dropped: int = 0

    @property
    def n_emitted(self) -> int:
        """Output tokens, not clipped at the stop."""
        return len(self.tokens) - self.n_prompt

    @property
    def n_cached(self) -> int:
        """Confirmed tokens in the target's cache: all but the last, which is fed next."""
        return len(self.tokens) - 1

    def correction(self, after: int) -> tuple[int, list[int]]:
        """Return how much of its copy the drafter can keep, and what must follow it.

        Parameters
        ----------
        after
            Tentative tokens that the coming block continues.
        """
        wanted, believed = self.tokens, self.believed
        if after:
            wanted = wanted + self.tentative.tokens[:after]
        keep, most = self.agreed, min(len(wanted), len(believed))
        while keep < most and wanted[keep] == believed[keep]:
            keep += 1
        self.agreed = min(keep, len(self.tokens))
        return keep, wanted[keep:]

    def output(self) -> NDArray[np.int64]:
        """Return the output tokens, clipped at the stop."""
        end = self.n_prompt + min(self.n_emitted, self.n_wanted)
        return np.array(self.tokens[self.n_prompt : end], dtype=np.int64)


def flat(parts: list[list[int]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return all tokens one behind the other, and the length of each part."""
    lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    tokens = np.fromiter((t for part in parts for t in part), np.int64, int(lengths.sum()))
    return tokens, lengths
