"""Passes of recurring shapes as CUDA graphs: one launch instead of hundreds.

On one GPU both models launch kernels from one process; without graphs, launching takes longer
than a draft model computes, and the two threads take turns at the interpreter lock. A graph
needs fixed shapes and addresses: it is captured once for a batch size, width, bucket of
context and set of slots, with its inputs in static buffers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import torch

from realrun.models.cache import KvCache, Rows, causal_mask, grouped_attention, slot_view
from realrun.models.decoder import Decoder
from realrun.models.forward import EagerForward, Tokens

BUCKET = 256
"""Contexts are rounded up to a multiple of it, tokens."""
MAX_WIDTH = 72
"""Widest rows that get a graph, tokens; longer ones are prompts."""

_CAPTURING = threading.Lock()

Key = tuple[int, int, int, int, int]
"""(rows, width, bucketed length, first slot, step between slots)."""


class StaticPass:
    """One pass of a fixed shape, whose inputs lie in buffers of their own.

    It is also the attention of that pass: the mask follows from the positions in the buffer.

    Parameters
    ----------
    decoder, cache
        The model and its keys and values.
    n, width
        Rows, and new tokens of each.
    length
        Cached tokens that are looked at, new ones included.
    slots
        Evenly spaced slots of the rows.
    """

    def __init__(
        self, decoder: Decoder, cache: KvCache, n: int, width: int, length: int, slots: slice
    ) -> None:
        device = decoder.norm.device
        config = decoder.config
        self._decoder = decoder
        self._cache = cache
        self._length = length
        self._groups = config.n_heads // config.n_kv_heads
        self._pick = slots
        self._slots = torch.arange(slots.start, slots.stop, slots.step or 1, device=device)
        self._slots = self._slots.repeat_interleave(width)
        self._offsets = torch.arange(width, device=device)
        self._seen_positions = torch.arange(length, device=device)
        self.tokens = torch.zeros(n * width, dtype=torch.long, device=device)
        self.starts = torch.zeros(n, dtype=torch.long, device=device)
        self.positions = torch.zeros(n * width, dtype=torch.long, device=device)
        self._mask = torch.empty(0)

    def run(self) -> torch.Tensor:
        """Return logits of every new token, shape (n * width, vocab_size)."""
        query = self.starts[:, None] + self._offsets
        self.positions = query.reshape(-1)
        dtype = self._cache.keys.dtype
        self._mask = causal_mask(query, self._seen_positions, self._groups, dtype)
        logits: torch.Tensor = self._decoder(self.tokens, self)
        return logits

    def __call__(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> torch.Tensor:
        """Return the attention output, shape (n_tokens, n_heads * head_dim)."""
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        keys[self._slots, :, self.positions] = k
        values[self._slots, :, self.positions] = v
        at = slice(None), slice(self._length)
        return grouped_attention(q, keys[self._pick, *at], values[self._pick, *at], self._mask)


class GraphedForward:
    """Replays a graph where the shape recurs; prompts and irregular batches run eagerly.

    Parameters
    ----------
    decoder
        The model, in eval mode, with rotary tables as long as the cache.
    cache
        Its keys and values.

    Notes
    -----
    The logits it returns lie in a buffer that the next pass of the same shape overwrites. On
    a CPU nothing is captured and the static passes run as they are, so that all but the
    capture itself is the same code everywhere.
    """

    def __init__(self, decoder: Decoder, cache: KvCache) -> None:
        self.decoder = decoder
        self.cache = cache
        self._eager = EagerForward(decoder, cache)
        self._passes: dict[Key, tuple[StaticPass, Callable[[], torch.Tensor]]] = {}
        self._cuda = decoder.norm.is_cuda
        self._pool = torch.cuda.graph_pool_handle() if self._cuda else None

    @property
    def n_graphs(self) -> int:
        """Shapes captured so far."""
        return len(self._passes)

    @torch.inference_mode()
    def __call__(self, rows: Rows, tokens: Tokens, *, last_only: bool = False) -> torch.Tensor:
        """Return logits (see `realrun.models.forward.Forward`)."""
        width, slots = rows.uniform, slot_view(rows.slots)
        if not 0 < width <= MAX_WIDTH or slots is None or (last_only and width > 1):
            return self._eager(rows, tokens, last_only=last_only)
        key = pass_key(rows, width, slots, self.cache.max_length)
        known = self._passes.get(key)
        if known is None:
            known = self._passes[key] = self._make(key, slots)
        static, replay = known
        fed = torch.from_numpy(tokens) if isinstance(tokens, np.ndarray) else tokens
        static.tokens.copy_(fed, non_blocking=True)
        static.starts.copy_(torch.from_numpy(rows.starts), non_blocking=True)
        return replay()

    def _make(self, key: Key, slots: slice) -> tuple[StaticPass, Callable[[], torch.Tensor]]:
        n, width, length, _, _ = key
        static = StaticPass(self.decoder, self.cache, n, width, length, slots)
        if not self._cuda:
            return static, static.run
        # The passes of warm-up and capture write keys at positions from 0 of these slots: what
        # lies there is saved and put back.
        held = slice(0, width)
        saved = [t[:, slots, :, held].clone() for t in (self.cache.keys, self.cache.values)]
        with _CAPTURING:
            static.run()  # kernels are chosen and loaded outside the capture
            torch.cuda.current_stream().synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(
                graph,
                pool=self._pool,
                stream=torch.cuda.current_stream(),
                capture_error_mode="thread_local",
            ):
                logits = static.run()
        for tensor, before in zip((self.cache.keys, self.cache.values), saved, strict=True):
            tensor[:, slots, :, held] = before

        def replay() -> torch.Tensor:
            graph.replay()
            return logits

        return static, replay


def pass_key(rows: Rows, width: int, slots: slice, max_length: int) -> Key:
    """Return the shape of a pass, with the context rounded up."""
    longest = int(rows.starts.max()) + width
    length = min(-(-longest // BUCKET) * BUCKET, max_length)
    return rows.slots.size, width, length, slots.start, slots.step or 1
