"""Initial weights: normal, with the projections back into the residual path scaled down."""

from __future__ import annotations

import torch

from realrun.models.decoder import Decoder

_SCALE = 0.02


@torch.no_grad()
def initialise(decoder: Decoder, seed: int) -> None:
    """Draw all matrices anew from a seed (Radford et al. 2019); norms become 1, biases 0."""
    generator = torch.Generator().manual_seed(seed)
    residual = _SCALE / (2 * decoder.config.n_layers) ** 0.5
    for name, parameter in decoder.named_parameters():
        if parameter.ndim == 2:
            scale = residual if name.endswith(("output.weight", "down.weight")) else _SCALE
            draw = torch.empty(parameter.shape).normal_(0.0, scale, generator=generator)
            parameter.copy_(draw)
        else:
            parameter.fill_(0.0 if name.endswith("bias") else 1.0)
