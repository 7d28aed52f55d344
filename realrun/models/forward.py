"""One pass of a decoder over a ragged batch in its cache, eager or as a captured graph."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from realrun.models.cache import KvCache, Rows
from realrun.models.decoder import Decoder

Tokens = NDArray[np.int64] | torch.Tensor
"""Token ids, on the CPU or already on the model's device."""


class Forward(Protocol):
    """Feeds tokens and returns logits."""

    decoder: Decoder
    cache: KvCache

    def __call__(self, rows: Rows, tokens: Tokens, *, last_only: bool = False) -> torch.Tensor:
        """Return logits of every new token, or of each row's last one.

        Parameters
        ----------
        rows
            Where the tokens go.
        tokens
            Token ids, flat in the order of `rows`, shape (n_tokens,).
        last_only
            Whether only each row's last logits are wanted.

        Returns
        -------
        torch.Tensor
            Shape (n_tokens or n_rows, vocab_size), on the model's device.
        """


class EagerForward:
    """Runs the decoder as it is.

    Parameters
    ----------
    decoder
        The model, in eval mode, with rotary tables as long as the cache.
    cache
        Its keys and values.
    """

    def __init__(self, decoder: Decoder, cache: KvCache) -> None:
        self.decoder = decoder
        self.cache = cache
        self._device = decoder.norm.device

    @torch.inference_mode()
    def __call__(self, rows: Rows, tokens: Tokens, *, last_only: bool = False) -> torch.Tensor:
        """Return logits (see `Forward`)."""
        attend = self.cache.attention(rows)
        wanted = None
        if last_only and rows.uniform != 1:
            wanted = torch.from_numpy(rows.last()).to(self._device)
        fed = torch.from_numpy(tokens) if isinstance(tokens, np.ndarray) else tokens
        logits: torch.Tensor = self.decoder(fed.to(self._device), attend, wanted)
        return logits
