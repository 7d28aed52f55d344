"""What a schedule remembers of each request, by id, in arrays that grow as ids come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.commands import Ids


class Remembered:
    """A row of figures for each request.

    Parameters
    ----------
    start
        The row of a request that nothing has been written for; its dtype is the dtype of all.

    Examples
    --------
    >>> seen = Remembered(np.zeros(2))
    >>> seen[np.array([3])] = 1.5
    >>> seen[np.array([3, 70])].tolist()
    [[1.5, 1.5], [0.0, 0.0]]
    """

    def __init__(self, start: NDArray[Any]) -> None:
        self._start = np.asarray(start)
        self._rows = self._start[None].repeat(64, axis=0)

    def __getitem__(self, ids: Ids) -> NDArray[Any]:
        self._make_room(ids)
        return np.asarray(self._rows[ids])

    def __setitem__(self, ids: Ids, values: Any) -> None:
        self._make_room(ids)
        self._rows[ids] = values

    def forget(self, ids: Ids) -> None:
        """Put the start row back."""
        if ids.size:
            self[ids] = self._start

    def _make_room(self, ids: Ids) -> None:
        largest, held = int(ids.max(initial=-1)), len(self._rows)
        if largest >= held:
            more = self._start[None].repeat(max(held, largest + 1 - held), axis=0)
            self._rows = np.concatenate((self._rows, more))
