"""A static KV cache with a position for every row, so that rolling back moves a number.

A slot holds one request. Nothing is erased: what lies behind a row's position is never
attended to and is overwritten by the next pass that reaches it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from realrun.models.config import ModelConfig

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Which tokens a pass feeds: a ragged batch of rows, laid out flat.

    Parameters
    ----------
    slots
        Slot of each row, shape (n,).
    starts
        Position of each row's first new token, shape (n,).
    lengths
        New tokens of each row, shape (n,), >= 1.
    """

    slots: Index
    starts: Index
    lengths: Index

    @property
    def uniform(self) -> int:
        """New tokens a row where all have the same, else 0."""
        first = int(self.lengths[0])
        return first if bool((self.lengths == first).all()) else 0

    def flat(self) -> tuple[Index, Index]:
        """Return (slot, position) of every new token, shape (n_tokens,) each."""
        ends = np.cumsum(self.lengths)
        within = np.arange(ends[-1]) - np.repeat(ends - self.lengths, self.lengths)
        return np.repeat(self.slots, self.lengths), np.repeat(self.starts, self.lengths) + within

    def last(self) -> Index:
        """Return where each row's last token lies in the flat layout, shape (n,)."""
        return np.cumsum(self.lengths) - 1


def by_slot(slots: Index) -> tuple[Index, Index] | None:
    """Return the order that sorts rows by slot and the order that undoes it; None: they are.

    Sorted rows are mostly evenly spaced in the cache, and then the attention reads it in place.
    """
    if bool((np.diff(slots) > 0).all()):
        return None
    order = np.argsort(slots)
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return order, back


def token_places(lengths: Index, order: Index) -> Index:
    """Return where the tokens of reordered rows lie in the old flat layout, shape (n_tokens,)."""
    ends = np.cumsum(lengths)
    begins, sizes = (ends - lengths)[order], lengths[order]
    new_ends = np.cumsum(sizes)
    places: Index = np.arange(new_ends[-1]) + np.repeat(begins - (new_ends - sizes), sizes)
    return places


def slot_view(slots: Index) -> slice | None:
    """Return the slice that picks these slots, if they are evenly spaced and ascending."""
    if slots.size == 1:
        return slice(int(slots[0]), int(slots[0]) + 1)
    gaps = np.diff(slots)
    step = int(gaps[0])
    if step < 1 or bool((gaps != step).any()):
        return None
    return slice(int(slots[0]), int(slots[-1]) + 1, step)


class KvCache:
    """Keys and values of every slot, and the attention over them.

    Parameters
    ----------
    config
        The model.
    n_slots
        Requests it can hold.
    max_length
        Tokens a slot can hold.
    device, dtype
        Where it lies and in which precision.
    """

    def __init__(
        self,
        config: ModelConfig,
        n_slots: int,
        max_length: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.max_length = max_length
        self.n_slots = n_slots
        shape = (config.n_layers, n_slots, config.n_kv_heads, max_length, config.head_dim)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self._groups = config.n_heads // config.n_kv_heads
        self._device = device

    @property
    def n_bytes(self) -> int:
        """Memory it takes."""
        return 2 * self.keys.numel() * self.keys.element_size()

    def attention(self, rows: Rows) -> Attention:
        """Prepare the attention of one pass: indices and mask, shared by all layers."""
        return Attention(self, rows, self._groups, self._device)


class Attention:
    """One pass's way through the cache: writes new keys and values, attends to what is there.

    Parameters
    ----------
    cache
        The cache.
    rows
        What is fed.
    groups
        Query heads for each KV head.
    device
        Where the pass runs.
    """

    def __init__(self, cache: KvCache, rows: Rows, groups: int, device: torch.device) -> None:
        self._cache = cache
        self._groups = groups
        slots, positions = rows.flat()
        self.positions = torch.from_numpy(positions).to(device)
        self._slots = torch.from_numpy(slots).to(device)
        self._n = rows.slots.size
        self._width = int(rows.lengths.max())
        self._uniform = rows.uniform > 0
        self._length = int((rows.starts + rows.lengths).max())
        view = slot_view(rows.slots)
        self._pick: slice | torch.Tensor = (
            view if view is not None else torch.from_numpy(rows.slots).to(device)
        )
        if not self._uniform:
            # Ragged rows meet the attention padded to the widest.
            within = positions - np.repeat(rows.starts, rows.lengths)
            place = np.repeat(np.arange(self._n), rows.lengths) * self._width + within
            self._place = torch.from_numpy(place).to(device)
        self._mask = self._make_mask(rows, device)

    def _make_mask(self, rows: Rows, device: torch.device) -> torch.Tensor:
        query = torch.from_numpy(rows.starts).to(device)[:, None] + torch.arange(
            self._width, device=device
        )
        seen = torch.arange(self._length, device=device)
        return causal_mask(query, seen, self._groups, self._cache.keys.dtype)

    def __call__(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> torch.Tensor:
        """Return the attention output, shape (n_tokens, n_heads * head_dim).

        Parameters
        ----------
        layer
            Index of the layer.
        q
            Queries, shape (n_tokens, n_heads, head_dim).
        k, v
            New keys and values, shape (n_tokens, n_kv_heads, head_dim).
        """
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        keys[self._slots, :, self.positions] = k
        values[self._slots, :, self.positions] = v
        if not self._uniform:
            padded = q.new_zeros((self._n * self._width, *q.shape[1:]))
            padded[self._place] = q
            q = padded
        at = slice(None), slice(self._length)
        out = grouped_attention(q, keys[self._pick, *at], values[self._pick, *at], self._mask)
        return out if self._uniform else out[self._place]


def causal_mask(
    query: torch.Tensor, positions: torch.Tensor, groups: int, dtype: torch.dtype
) -> torch.Tensor:
    """Return what is added to the scores, shape (n, 1, groups * width, length).

    Parameters
    ----------
    query
        Positions of the queries, shape (n, width).
    positions
        Positions in the cache, shape (length,).
    groups
        Query heads for each KV head; they stand below each other.
    dtype
        Of the cache.
    """
    unseen = positions > query[:, :, None]
    mask = torch.zeros(unseen.shape, device=unseen.device, dtype=dtype)
    mask.masked_fill_(unseen, float("-inf"))
    return mask.repeat(1, groups, 1)[:, None]


def grouped_attention(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Return the attention output of rows of one width, shape (n * width, n_heads * head_dim).

    Parameters
    ----------
    q
        Queries, flat, shape (n * width, n_heads, head_dim).
    keys, values
        Of the rows, shape (n, n_kv_heads, length, head_dim).
    mask
        `causal_mask`.
    """
    n, kv = keys.shape[:2]
    total, heads, dim = q.shape
    width, groups = total // n, heads // kv
    # (n, kv, groups * width, dim): one product for all query heads of a KV head.
    grouped = q.view(n, width, kv, groups, dim).permute(0, 2, 3, 1, 4)
    grouped = grouped.reshape(n, kv, groups * width, dim)
    out = torch.nn.functional.scaled_dot_product_attention(grouped, keys, values, attn_mask=mask)
    out = out.view(n, kv, groups, width, dim).permute(0, 3, 1, 2, 4)
    return out.reshape(total, heads * dim)
