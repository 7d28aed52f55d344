"""Rotary positions (Su et al. 2021, arXiv 2104.09864) with linear and Llama-3 scaling."""

from __future__ import annotations

import math

import torch

from realrun.models.config import ModelConfig


def rotary_tables(config: ModelConfig, n_positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cosines and signed sines of every position, shape (n_positions, head_dim) each.

    The sines of the first half carry the minus of ``rotate_half``, so that a rotation is
    ``x * cos + swap_halves(x) * sin``.
    """
    angles = torch.outer(torch.arange(n_positions, dtype=torch.float32), frequencies(config))
    sin = angles.sin()
    return torch.cat((angles.cos(), angles.cos()), dim=1), torch.cat((-sin, sin), dim=1)


def frequencies(config: ModelConfig) -> torch.Tensor:
    """Return the angular frequencies of the pairs, shape (head_dim / 2,), radians a token."""
    exponent = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    inverse = 1.0 / (config.rope_theta**exponent)
    scaling = dict(config.rope_scaling or ())
    if not scaling:
        return inverse
    factor = float(scaling["factor"])
    if scaling["rope_type"] == "linear":
        return inverse / factor
    # Llama 3.1: long wavelengths are stretched, short ones kept, those between blended.
    low, high = float(scaling["low_freq_factor"]), float(scaling["high_freq_factor"])
    original = float(scaling["original_max_position_embeddings"])
    wavelength = 2 * math.pi / inverse
    blend = ((original / wavelength - low) / (high - low)).clamp(0.0, 1.0)
    return (1 - blend) * inverse / factor + blend * inverse


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate heads by their positions.

    Parameters
    ----------
    x
        Shape (..., n_heads, head_dim).
    cos, sin
        Rows of `rotary_tables`, shape (..., 1, head_dim).
    """
    half = x.shape[-1] // 2
    swapped = torch.cat((x[..., half:], x[..., :half]), dim=-1)
    return x * cos + swapped * sin
