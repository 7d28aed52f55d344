"""The acceptance tape: what would be accepted at each output position, drawn before the run.

Rows are drawn lazily in blocks of requests, each from its own keyed stream, so the tape
does not depend on the schedule, on the order of admission or on the number of processes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.acceptance import AcceptanceModel, TapeModel
from psdsim.commands import MAX_K
from psdsim.seeds import Stream, generator

REQUESTS_PER_BLOCK = 64
MARGIN = 2 * MAX_K + 2
"""Positions behind the last token of a request that a draft may reach."""
_KEPT_BLOCKS = 32
_FIRST_SLOTS = 64


class Tape:
    """Rows of a request's verdicts, copied into flat per-slot storage while it runs.

    Parameters
    ----------
    model
        The acceptance model. A `TapeModel` gives bits (stored as the flat index of the next
        rejection); any other only has the uniforms.
    output_tokens
        Tokens asked for by every request of the run, shape (n_requests,).
    n_slots
        Most requests in flight; storage grows to it as it is needed.
    seed, replication
        Keys of the stream.
    """

    def __init__(
        self,
        model: AcceptanceModel,
        output_tokens: NDArray[np.int64],
        n_slots: int,
        seed: int,
        replication: int,
    ) -> None:
        self._model = model
        self._lengths = output_tokens + MARGIN
        self._seed = seed
        self._replication = replication
        self._blocks: OrderedDict[int, tuple[list[int], NDArray[Any]]] = OrderedDict()
        self.row = int(self._lengths.max())
        n_slots = min(n_slots, output_tokens.size, _FIRST_SLOTS)
        self._free = list(range(n_slots - 1, -1, -1))
        size = n_slots * self.row
        kind = np.int32 if size < 2**31 else np.int64
        self.next_reject: NDArray[np.signedinteger] = np.zeros(0, dtype=kind)
        self.uniforms = np.zeros(0)
        if isinstance(model, TapeModel):
            self.next_reject = np.zeros(size, dtype=kind)
        else:
            self.uniforms = np.zeros(size)

    def take_slot(self, request: int) -> int:
        """Copy a request's row into a free slot and return the flat index of its position 0."""
        if not self._free:
            self._grow()
        base = self._free.pop() * self.row
        block, place = divmod(request, REQUESTS_PER_BLOCK)
        starts, values = self._block(block)
        begin, end = starts[place], starts[place + 1]
        row = values[begin:end]
        if self.uniforms.size:
            self.uniforms[base : base + row.size] = row
        else:
            np.add(row, base, out=self.next_reject[base : base + row.size], casting="same_kind")
        return base

    def release(self, base: int) -> None:
        """Give a slot back."""
        self._free.append(base // self.row)

    def _grow(self) -> None:
        old = max(self.next_reject.size, self.uniforms.size) // self.row
        self._free = list(range(2 * old - 1, old - 1, -1))
        if self.uniforms.size:
            self.uniforms = np.concatenate((self.uniforms, np.zeros(old * self.row)))
        else:
            self.next_reject = np.concatenate(
                (self.next_reject, np.zeros(old * self.row, dtype=self.next_reject.dtype))
            )

    def _block(self, block: int) -> tuple[list[int], NDArray[Any]]:
        known = self._blocks.get(block)
        if known is not None:
            self._blocks.move_to_end(block)
            return known
        first = block * REQUESTS_PER_BLOCK
        lengths = self._lengths[first : first + REQUESTS_PER_BLOCK]
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        rng = generator(self._seed, self._replication, Stream.ACCEPTANCE, block)
        u = rng.random(int(starts[-1]))
        if isinstance(self._model, TapeModel):
            own = generator(self._seed, self._replication, Stream.REQUEST, block)
            bits = self._model.accept_bits(u, starts[:-1], own.random(lengths.size))
            values: NDArray[Any] = _next_reject(bits, starts)
        else:
            values = u
        known = self._blocks[block] = (starts.tolist(), values)
        if len(self._blocks) > _KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        return known


def _next_reject(bits: NDArray[np.bool_], starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return, within each row, the position of the first False at or after each position.

    A row's end counts as a rejection; drafts never reach it (`MARGIN`).
    """
    position = np.arange(bits.size, dtype=np.int32)
    stop = np.where(bits, np.int32(bits.size), position)
    ends = starts[1:] - 1
    stop[ends] = position[ends]
    nearest = np.minimum.accumulate(stop[::-1])[::-1]
    nearest -= np.repeat(starts[:-1].astype(np.int32), np.diff(starts))
    return nearest
