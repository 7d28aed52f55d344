"""A forward with a fresh cache, as fits the device."""

from __future__ import annotations

from realrun.models.cache import KvCache
from realrun.models.decoder import Decoder
from realrun.models.forward import EagerForward, Forward
from realrun.models.graphs import GraphedForward


def make_forward(decoder: Decoder, n_slots: int, max_length: int) -> Forward:
    """Return a forward over `n_slots` requests of `max_length` tokens; graphed on CUDA."""
    like = decoder.norm
    decoder.set_positions(max_length)
    cache = KvCache(decoder.config, n_slots, max_length, like.device, like.dtype)
    return GraphedForward(decoder, cache) if like.is_cuda else EagerForward(decoder, cache)
