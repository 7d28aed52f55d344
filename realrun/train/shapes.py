"""The shapes of the built-in pair: bytes in, bytes out."""

from __future__ import annotations

from realrun.models.config import ModelConfig


def _byte_model(hidden: int, intermediate: int, layers: int, heads: int) -> ModelConfig:
    return ModelConfig(
        model_type="llama",
        vocab_size=256,
        hidden_size=hidden,
        intermediate_size=intermediate,
        n_layers=layers,
        n_heads=heads,
        n_kv_heads=2,
        head_dim=32,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        rope_scaling=None,
        max_positions=2048,
        tied=True,
        qkv_bias=False,
        qk_norm=False,
    )


TARGET = _byte_model(256, 832, 6, 8)
"""4.9 million parameters."""
DRAFT = _byte_model(128, 192, 2, 4)
"""0.28 million parameters."""
