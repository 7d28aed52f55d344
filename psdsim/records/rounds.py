"""What each target pass tested and accepted of each request, in the order of the passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import Counts, Ids

_CHUNK = 1 << 12


@dataclass(frozen=True, eq=False)
class Rounds:
    """Drafts tested and accepted in every round, before a stop clips anything.

    Parameters
    ----------
    tested, accepted
        One int64 array a request, one entry a round, in the order of the requests.
    """

    tested: tuple[NDArray[np.int64], ...]
    accepted: tuple[NDArray[np.int64], ...]

    def __len__(self) -> int:
        return len(self.accepted)


class RoundLog:
    """Collects rounds as they are judged, and deals them out to their requests at the end."""

    def __init__(self) -> None:
        self._open: list[tuple[Ids, int | Counts, Counts]] = []
        self._chunks: list[tuple[Ids, Counts, Counts]] = []

    def add(self, ids: Ids, tested: int | Counts, accepted: Counts) -> None:
        """Add one pass; the arrays must not change afterwards.

        Parameters
        ----------
        ids
            Its requests, shape (n,).
        tested
            Drafts tested: one number for all, or one per request.
        accepted
            Drafts accepted, shape (n,).
        """
        self._open.append((ids, tested, accepted))
        if len(self._open) >= _CHUNK:
            self._pack()

    def _pack(self) -> None:
        if not self._open:
            return
        ids, tested, accepted = zip(*self._open, strict=True)
        spread = [np.broadcast_to(t, i.shape) for i, t in zip(ids, tested, strict=True)]
        self._chunks.append((np.concatenate(ids), np.concatenate(spread), np.concatenate(accepted)))
        self._open.clear()

    def close(self, n_requests: int) -> Rounds:
        """Return the rounds of requests 0 to n - 1."""
        self._pack()
        none = np.zeros(0, dtype=np.int64)
        columns = zip(*self._chunks, strict=True) if self._chunks else ([none], [none], [none])
        ids, tested, accepted = (np.concatenate(column) for column in columns)
        order = np.argsort(ids, kind="stable")
        cuts = np.cumsum(np.bincount(ids, minlength=n_requests))[:-1]
        return Rounds(
            tuple(np.split(tested[order].astype(np.int64), cuts)),
            tuple(np.split(accepted[order].astype(np.int64), cuts)),
        )
