"""The acceptance tape: what would be accepted at each output position, drawn before the run.

Rows are drawn lazily in blocks of requests, each from its own keyed stream, so the tape
does not depend on the schedule, on the order of admission or on the number of processes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
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

Row = NDArray[Any]
Draw = Callable[[int], tuple[list[int], Row]]


class Lane:
    """One number per request and output position, in flat per-slot storage while requests run.

    Parameters
    ----------
    dtype
        Of the storage.
    draw
        Returns the row starts and the values of a block of requests.
    relative
        Values are positions within a row: a slot's base is added when a row is copied in.
    """

    def __init__(self, dtype: Any, draw: Draw, *, relative: bool = False) -> None:
        self.flat: Row = np.zeros(0, dtype=dtype)
        self._draw = draw
        self._relative = relative
        self._blocks: OrderedDict[int, tuple[list[int], Row]] = OrderedDict()

    def grow(self, size: int) -> None:
        """Make room for `size` positions."""
        more = np.zeros(size - self.flat.size, dtype=self.flat.dtype)
        self.flat = np.concatenate((self.flat, more))

    def load(self, request: int, base: int) -> None:
        """Copy the row of a request to a slot."""
        block, place = divmod(request, REQUESTS_PER_BLOCK)
        starts, values = self._block(block)
        row = values[starts[place] : starts[place + 1]]
        if self._relative:
            np.add(row, base, out=self.flat[base : base + row.size], casting="same_kind")
        else:
            self.flat[base : base + row.size] = row

    def _block(self, block: int) -> tuple[list[int], Row]:
        known = self._blocks.get(block)
        if known is not None:
            self._blocks.move_to_end(block)
            return known
        known = self._blocks[block] = self._draw(block)
        if len(self._blocks) > _KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        return known


class Tape:
    """Rows of a request's verdicts, copied into flat per-slot storage while it runs.

    Parameters
    ----------
    model
        The acceptance model. A `TapeModel` gives bits (stored as the flat index of the next
        rejection, one lane for each of its drafters); any other only has the uniforms.
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
        self.row = int(self._lengths.max())
        n_slots = min(n_slots, output_tokens.size, _FIRST_SLOTS)
        self._free = list(range(n_slots - 1, -1, -1))
        self._size = n_slots * self.row
        self._held: dict[int, int] = {}
        """Requests in slots, by base."""
        self._lanes: list[Lane] = []
        self._channels: dict[tuple[Stream, int], Lane] = {}
        self._next: list[Lane] = []
        self._uniforms: Lane | None = None
        if isinstance(model, TapeModel):
            kind = np.int32 if self._size < 2**31 else np.int64
            for variant in range(model.n_variants):
                draw = self._drawer(variant)
                self._next.append(self._add(Lane(kind, draw, relative=True)))
        else:
            draw = self._draw_uniforms(Stream.ACCEPTANCE, None)
            self._uniforms = self._add(Lane(np.float64, draw))

    @property
    def next_reject(self) -> NDArray[np.signedinteger]:
        """Flat index of the next rejection at or after each place (of the first drafter)."""
        return self._next[0].flat

    @property
    def uniforms(self) -> NDArray[np.float64]:
        """The uniform of each place, where the model gives no bits."""
        assert self._uniforms is not None
        return self._uniforms.flat

    @property
    def n_variants(self) -> int:
        """Drafters that the tape has verdicts for."""
        return len(self._next) or 1

    def next_reject_of(self, variant: int) -> NDArray[np.signedinteger]:
        """Return `next_reject` of one of the model's drafters."""
        return self._next[variant].flat

    def channel(self, stream: Stream, index: int = 0) -> NDArray[np.float64]:
        """Return the uniforms of a further stream by place; drawn once somebody asks."""
        lane = self._channels.get((stream, index))
        if lane is None:
            lane = self._add(Lane(np.float64, self._draw_uniforms(stream, index)))
            self._channels[stream, index] = lane
            for base, request in self._held.items():
                lane.load(request, base)
        return lane.flat

    def take_slot(self, request: int) -> int:
        """Copy a request's row into a free slot and return the flat index of its position 0."""
        if not self._free:
            self._grow()
        base = self._free.pop() * self.row
        self._held[base] = request
        for lane in self._lanes:
            lane.load(request, base)
        return base

    def release(self, base: int) -> None:
        """Give a slot back."""
        del self._held[base]
        self._free.append(base // self.row)

    def _add(self, lane: Lane) -> Lane:
        lane.grow(self._size)
        self._lanes.append(lane)
        return lane

    def _grow(self) -> None:
        old = self._size // self.row
        self._free = list(range(2 * old - 1, old - 1, -1))
        self._size *= 2
        for lane in self._lanes:
            lane.grow(self._size)

    def _starts(self, block: int) -> NDArray[np.int64]:
        first = block * REQUESTS_PER_BLOCK
        lengths = self._lengths[first : first + REQUESTS_PER_BLOCK]
        return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)

    def _draw_uniforms(self, stream: Stream, index: int | None) -> Draw:
        def draw(block: int) -> tuple[list[int], Row]:
            starts = self._starts(block)
            rng = generator(self._seed, self._replication, stream, block, index)
            return starts.tolist(), rng.random(int(starts[-1]))

        return draw

    def _drawer(self, variant: int) -> Draw:
        model = self._model
        assert isinstance(model, TapeModel)

        def draw(block: int) -> tuple[list[int], Row]:
            starts = self._starts(block)
            size = int(starts[-1])
            key = (self._seed, self._replication)
            u = generator(*key, Stream.ACCEPTANCE, block).random(size)
            own = generator(*key, Stream.REQUEST, block).random(starts.size - 1)
            if model.n_variants == 1:
                bits = model.accept_bits(u, starts[:-1], own)
            else:
                hidden = generator(*key, Stream.HIDDEN, block).random(size)
                bits = model.variant_bits(variant, u, starts[:-1], own, hidden)
            return starts.tolist(), _next_reject(bits, starts)

        return draw


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
