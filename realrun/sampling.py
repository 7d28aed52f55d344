"""Randomness of sampled text: keyed uniforms, one of each kind per request and output position.

The same seed gives the same text whatever the batch and whoever asks first (SD and MineDraft at one
draft length also agree; other draft lengths test other places). Each uniform decides at most one
thing that the output depends on: a position that is drafted again after a rejection in front of
it was not judged before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psdsim.seeds import Stream, generator

_KINDS = {
    "draft": Stream.DRAFT_SAMPLING,
    "accept": Stream.ACCEPT_SAMPLING,
    "target": Stream.TARGET_SAMPLING,
}


class Uniforms:
    """Uniforms on [0, 1) by request and position in the text.

    Parameters
    ----------
    seed
        The user's seed.
    kind
        ``draft`` (drafted tokens), ``accept`` (tests) or ``target`` (residual and bonus tokens).
    n_positions
        Longest text, tokens.
    """

    def __init__(self, seed: int, kind: str, n_positions: int) -> None:
        self._seed = seed
        self._stream = _KINDS[kind]
        self._n = n_positions
        self._rows: dict[int, NDArray[np.float64]] = {}

    def at(self, request: int, position: int) -> float:
        """Return the uniform of one position."""
        row = self._rows.get(request)
        if row is None:
            row = self._rows[request] = generator(self._seed, 0, self._stream, request).random(
                self._n
            )
        return float(row[position])

    def forget(self, request: int) -> None:
        """Drop the row of a request that has finished."""
        self._rows.pop(request, None)


def draw(probabilities: NDArray[np.floating], u: float) -> int:
    """Return the token at which the cumulative weight first exceeds u of its total.

    Parameters
    ----------
    probabilities
        Weights, shape (vocab,), >= 0, not all 0; they need not sum to 1.
    u
        In [0, 1).

    Examples
    --------
    >>> draw(np.array([0.25, 0.0, 0.75]), 0.25)
    2
    """
    total = np.cumsum(probabilities, dtype=np.float64)
    return int(np.searchsorted(total, u * total[-1], side="right"))
