"""Parameter counts of a transformer from its shape, part by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psdsim.hardware.shape import ModelShape


def expert_coverage(n_experts: int, n_active_experts: int, n_tokens: float) -> float:
    """Return the expected number of experts that a pass touches, N(t) = E (1 - (1 - K/E)^t).

    Routing is taken as uniform and independent between tokens, the assumption of MoESD
    (arXiv 2505.19645); skewed routing touches fewer.

    Parameters
    ----------
    n_experts
        Routed experts per layer E, >= 1.
    n_active_experts
        Experts per token K, 1..E.
    n_tokens
        Tokens in the pass t, >= 0.

    Examples
    --------
    >>> expert_coverage(512, 10, 1)
    10.0
    >>> round(expert_coverage(512, 10, 4), 6)
    38.843309
    """
    missed: float = (1.0 - n_active_experts / n_experts) ** n_tokens
    return n_experts * (1.0 - missed)


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Parameters by what the pass does with them; sums over all layers unless said otherwise."""

    embedding: int
    """Input embedding; only the rows of the pass's tokens are read."""
    lm_head: int
    """Output projection, 0 when tied: it is then the embedding, read whole."""
    attention: int
    """Projections and their biases."""
    dense_ffn: int
    """Feed-forward blocks of the layers without experts."""
    shared_experts: int
    """Experts that every token uses."""
    router: int
    """Routing matrices and their biases."""
    norms: int
    """Normalisation vectors."""
    one_expert: int
    """One routed expert of one layer."""
    n_moe_layers: int
    """Layers with routed experts."""

    def dense(self) -> int:
        """Return everything but the routed experts."""
        return (
            self.embedding
            + self.lm_head
            + self.attention
            + self.dense_ffn
            + self.shared_experts
            + self.router
            + self.norms
        )


def count(shape: ModelShape) -> ParameterCounts:
    """Count the parameters of a shape.

    Multi-token-prediction layers aren't counted: plain decoding doesn't load them.
    """
    h = shape.hidden
    moe = shape.n_moe_layers
    ffn_matrices = 3 if shape.gated_ffn else 2
    # gpt-oss has a bias on every expert matrix: 2 x intermediate up, hidden down.
    one_expert = ffn_matrices * h * shape.expert_intermediate
    if shape.expert_bias:
        one_expert += 2 * shape.expert_intermediate + h
    router = h * shape.n_experts + (shape.n_experts if shape.router_bias else 0)
    return ParameterCounts(
        embedding=shape.vocab * h,
        lm_head=0 if shape.tied else shape.vocab * h,
        attention=shape.n_layers * _attention(shape),
        dense_ffn=(shape.n_layers - moe) * ffn_matrices * h * shape.intermediate,
        shared_experts=moe * ffn_matrices * h * shape.shared_intermediate,
        router=moe * router,
        norms=shape.n_layers * (2 * h + _inner_norms(shape)) + h,
        one_expert=one_expert if moe else 0,
        n_moe_layers=moe,
    )


def _attention(shape: ModelShape) -> int:
    h, heads = shape.hidden, shape.n_heads
    if shape.mla is not None:
        m = shape.mla
        q_width = heads * (m.qk_nope_head_dim + m.qk_rope_head_dim)
        q = h * m.q_lora_rank + m.q_lora_rank * q_width if m.q_lora_rank else h * q_width
        kv_down = h * (m.kv_lora_rank + m.qk_rope_head_dim)
        kv_up = m.kv_lora_rank * heads * (m.qk_nope_head_dim + m.v_head_dim)
        return q + kv_down + kv_up + heads * m.v_head_dim * h
    q_width, kv_width = heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    bias = (q_width + 2 * kv_width if shape.qkv_bias else 0) + (h if shape.o_bias else 0)
    return 2 * h * q_width + 2 * h * kv_width + bias


def _inner_norms(shape: ModelShape) -> int:
    if shape.mla is not None:
        return shape.mla.q_lora_rank + shape.mla.kv_lora_rank
    return 2 * shape.head_dim if shape.qk_norm else 0
