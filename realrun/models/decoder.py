"""One compact decoder for the Llama, Qwen2 and Qwen3 layouts.

Tokens are fed flat, shape (n_tokens,), whatever rows they belong to: only the attention,
which is handed in, knows about rows. Projections that read the same input are fused.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn
from torch.nn import functional

from realrun.models.config import ModelConfig
from realrun.models.rope import rotary_tables, rotate


class Attend(Protocol):
    """Attention over flat tokens: a cache's (`KvCache.attention`) or `CausalAttention`."""

    positions: torch.Tensor

    def __call__(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> torch.Tensor:
        """Return the output, shape (n_tokens, n_heads * head_dim)."""


class Layer(nn.Module):
    """Attention and SwiGLU, each behind an RMS norm and beside a residual path.

    Parameters
    ----------
    config
        The model.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        h, d = config.hidden_size, config.head_dim
        self._n_q, self._n_kv, self._dim = config.n_heads, config.n_kv_heads, d
        self._eps = config.rms_norm_eps
        self.attention_norm = nn.Parameter(torch.ones(h))
        self.qkv = nn.Linear(h, (config.n_heads + 2 * config.n_kv_heads) * d, config.qkv_bias)
        self.q_norm = nn.Parameter(torch.ones(d)) if config.qk_norm else None
        self.k_norm = nn.Parameter(torch.ones(d)) if config.qk_norm else None
        self.output = nn.Linear(config.n_heads * d, h, bias=False)
        self.mlp_norm = nn.Parameter(torch.ones(h))
        self.gate_up = nn.Linear(h, 2 * config.intermediate_size, bias=False)
        self.down = nn.Linear(config.intermediate_size, h, bias=False)

    def forward(
        self, x: torch.Tensor, layer: int, attend: Attend, cos: torch.Tensor, sin: torch.Tensor
    ) -> torch.Tensor:
        """Return the residual stream behind this layer, shape (n_tokens, hidden_size)."""
        n_q, n_kv = self._n_q, self._n_kv
        y = functional.rms_norm(x, (x.shape[-1],), self.attention_norm, self._eps)
        qkv = self.qkv(y).view(-1, n_q + 2 * n_kv, self._dim)
        if self.q_norm is None:
            turned = rotate(qkv[:, : n_q + n_kv], cos, sin)
            q, k = turned[:, :n_q], turned[:, n_q:]
        else:
            shape = (self._dim,)
            q = functional.rms_norm(qkv[:, :n_q], shape, self.q_norm, self._eps)
            k = functional.rms_norm(qkv[:, n_q : n_q + n_kv], shape, self.k_norm, self._eps)
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        x = x + self.output(attend(layer, q, k, qkv[:, n_q + n_kv :]))
        y = functional.rms_norm(x, (x.shape[-1],), self.mlp_norm, self._eps)
        gate, up = self.gate_up(y).chunk(2, dim=-1)
        out: torch.Tensor = x + self.down(functional.silu(gate) * up)
        return out


class Decoder(nn.Module):
    """Embedding, layers, final norm, head.

    Parameters
    ----------
    config
        The model; its weights are random until loaded.
    """

    cos: torch.Tensor
    sin: torch.Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layers))
        self.norm = nn.Parameter(torch.ones(config.hidden_size))
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tied:
            self.head.weight = self.embedding.weight
        self.set_positions(1)

    def set_positions(self, n_positions: int) -> None:
        """Make the rotary tables long enough for `n_positions` tokens."""
        cos, sin = rotary_tables(self.config, n_positions)
        like = self.norm
        self.register_buffer("cos", cos.to(like)[:, None], persistent=False)
        self.register_buffer("sin", sin.to(like)[:, None], persistent=False)

    def forward(
        self, tokens: torch.Tensor, attend: Attend, rows: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return logits.

        Parameters
        ----------
        tokens
            Token ids, flat, shape (n_tokens,).
        attend
            The attention; its `positions` are those of the tokens.
        rows
            Flat places whose logits are wanted, shape (m,); None: all.

        Returns
        -------
        torch.Tensor
            Shape (n_tokens or m, vocab_size).
        """
        cos, sin = self.cos[attend.positions], self.sin[attend.positions]
        x = self.embedding(tokens)
        for i, layer in enumerate(self.layers):
            x = layer(x, i, attend, cos, sin)
        if rows is not None:
            x = x[rows]
        x = functional.rms_norm(x, (x.shape[-1],), self.norm, self.config.rms_norm_eps)
        logits: torch.Tensor = self.head(x)
        return logits


class CausalAttention:
    """Whole sequences without a cache: training, and reference logits.

    Parameters
    ----------
    n_rows, length
        Sequences and tokens of each; flat tokens are row after row.
    groups
        Query heads for each KV head.
    device
        Where the pass runs.
    """

    def __init__(self, n_rows: int, length: int, groups: int, device: torch.device) -> None:
        self._shape = (n_rows, length)
        self._groups = groups
        self.positions = torch.arange(length, device=device).repeat(n_rows)

    def __call__(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> torch.Tensor:
        """Return the output, shape (n_rows * length, n_heads * head_dim)."""
        n, length = self._shape
        q, k, v = (t.reshape(n, length, -1, t.shape[-1]).transpose(1, 2) for t in (q, k, v))
        if self._groups > 1:
            k = k.repeat_interleave(self._groups, dim=1)
            v = v.repeat_interleave(self._groups, dim=1)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).reshape(n * length, -1)
