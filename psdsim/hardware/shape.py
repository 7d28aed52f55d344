"""The shape of a decoder-only transformer, and what follows from it by arithmetic."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from psdsim.hardware.fields import Count, Positive, PositiveCount
from psdsim.hardware.params import ParameterCounts, count


class Mla(BaseModel):
    """Multi-head latent attention: one compressed KV vector per token and layer (DeepSeek-V2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    q_lora_rank: Count = Field(default=0, description="Rank of the query projection; 0 = full.")
    kv_lora_rank: PositiveCount = Field(description="Elements of the latent KV vector.")
    qk_nope_head_dim: PositiveCount = Field(description="Query/key size per head without rotation.")
    qk_rope_head_dim: PositiveCount = Field(description="Rotated key elements, shared by heads.")
    v_head_dim: PositiveCount = Field(description="Value size per head.")


class ModelShape(BaseModel):
    """A decoder-only transformer: dense or mixture of experts, grouped-query or latent attention.

    Build it from a ``config.json`` with :func:`psdsim.hardware.model_shape`.

    Examples
    --------
    >>> tiny = ModelShape(name="tiny", n_layers=2, hidden=8, n_heads=2, n_kv_heads=1, head_dim=4,
    ...                   intermediate=16, vocab=10)
    >>> tiny.n_params  # 2 x 80 embeddings, 2 x (192 attention + 384 ffn + 16 norms), 8 norm
    1352
    >>> tiny.kv_bytes_per_token()  # 2 layers x (K and V) x 1 head x 4 elements x 2 bytes
    32.0
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="Name, for messages.")
    n_layers: PositiveCount = Field(description="Transformer layers.")
    hidden: PositiveCount = Field(description="Width of the residual stream.")
    n_heads: PositiveCount = Field(description="Query heads.")
    n_kv_heads: PositiveCount = Field(description="Key/value heads (not used with MLA).")
    head_dim: PositiveCount = Field(description="Size of a head (not used with MLA).")
    intermediate: PositiveCount = Field(description="Width of the dense feed-forward block.")
    vocab: PositiveCount = Field(description="Vocabulary size.")
    tied: bool = Field(default=False, description="Input and output embedding are one matrix.")
    gated_ffn: bool = Field(default=True, description="Three feed-forward matrices, not two.")
    qkv_bias: bool = Field(default=False, description="Bias on the query/key/value projections.")
    o_bias: bool = Field(default=False, description="Bias on the attention output projection.")
    qk_norm: bool = Field(default=False, description="Per-head norms on queries and keys.")
    n_experts: Count = Field(default=0, description="Routed experts per MoE layer; 0 = dense.")
    n_active_experts: Count = Field(default=0, description="Routed experts per token.")
    expert_intermediate: Count = Field(default=0, description="Width of one routed expert.")
    shared_intermediate: Count = Field(default=0, description="Total width of shared experts.")
    n_moe_layers: Count = Field(default=0, description="Layers with routed experts.")
    expert_bias: bool = Field(default=False, description="Biases on the expert matrices.")
    router_bias: bool = Field(default=False, description="Bias on the router.")
    mla: Mla | None = Field(default=None, description="Latent attention, if any.")
    sliding_window: PositiveCount | None = Field(
        default=None, description="Tokens a sliding-window layer looks back; null = none."
    )
    n_sliding_layers: Count = Field(default=0, description="Layers with the sliding window.")
    n_mtp_layers: Count = Field(
        default=0, description="Multi-token-prediction layers (not counted)."
    )
    quantization: Literal["none", "fp8", "int8", "mxfp4", "weight_only"] = Field(
        default="none", description="What the linear layers are stored as."
    )
    dtype_bytes: Positive = Field(default=2.0, description="Bytes of an unquantised parameter.")
    linear_dtype_bytes: Positive = Field(
        default=2.0, description="Bytes per parameter of attention and feed-forward matrices."
    )
    expert_dtype_bytes: Positive = Field(
        default=2.0, description="Bytes per parameter of routed experts."
    )
    notes: tuple[str, ...] = Field(default=(), description="What was assumed while reading it.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.mla is None and self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_kv_heads is {self.n_kv_heads}, which does not divide n_heads = {self.n_heads}"
            )
        if (self.n_experts > 0) != (self.n_moe_layers > 0):
            raise ValueError(
                f"n_experts is {self.n_experts} but n_moe_layers is {self.n_moe_layers}: "
                "either both are 0 or neither"
            )
        if self.n_experts and not 1 <= self.n_active_experts <= self.n_experts:
            raise ValueError(
                f"n_active_experts is {self.n_active_experts}, not between 1 and {self.n_experts}"
            )
        if self.n_experts and not self.expert_intermediate:
            raise ValueError("expert_intermediate is 0 in a model with experts")
        if max(self.n_moe_layers, self.n_sliding_layers) > self.n_layers:
            raise ValueError(f"more MoE or sliding layers than n_layers = {self.n_layers}")
        if self.n_sliding_layers and self.sliding_window is None:
            raise ValueError("n_sliding_layers is set but sliding_window is null")
        return self

    @property
    def counts(self) -> ParameterCounts:
        """Parameters by part."""
        return count(self)

    @property
    def n_params(self) -> int:
        """All parameters, embeddings included, multi-token-prediction layers not."""
        c = self.counts
        return c.dense() + c.n_moe_layers * self.n_experts * c.one_expert

    @property
    def n_active_params(self) -> int:
        """Parameters that one token uses, both embeddings included."""
        c = self.counts
        return c.dense() + c.n_moe_layers * self.n_active_experts * c.one_expert

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights as stored, over all GPUs together."""
        c = self.counts
        plain = c.embedding + c.lm_head + c.router + c.norms
        linear = c.attention + c.dense_ffn + c.shared_experts
        experts = c.n_moe_layers * self.n_experts * c.one_expert
        return (
            plain * self.dtype_bytes
            + linear * self.linear_dtype_bytes
            + experts * self.expert_dtype_bytes
        )

    def kv_elements_per_layer(self, n_gpus: int = 1) -> float:
        """Return the KV elements of one token in one layer on one of ``n_gpus``.

        Tensor parallelism splits KV heads down to one a GPU, then copies them; the latent vector
        of MLA is copied to every GPU.
        """
        if self.mla is not None:
            return float(self.mla.kv_lora_rank + self.mla.qk_rope_head_dim)
        return 2.0 * self.head_dim * max(1.0, self.n_kv_heads / n_gpus)

    def kv_bytes_per_token(self, *, dtype_bytes: float = 2.0, n_gpus: int = 1) -> float:
        """Return the KV-cache bytes of one token on each GPU, windows not taken into account.

        Parameters
        ----------
        dtype_bytes
            Bytes per element: 2 for bf16, 1 for fp8.
        n_gpus
            Tensor-parallel degree; 1 gives the whole model's figure.
        """
        return self.n_layers * self.kv_elements_per_layer(n_gpus) * dtype_bytes

    def kv_bytes(self, context: float, *, dtype_bytes: float = 2.0, n_gpus: int = 1) -> float:
        """Return the KV bytes of one sequence of ``context`` tokens, sliding windows applied."""
        per_layer = self.kv_elements_per_layer(n_gpus) * dtype_bytes
        capped = context if self.sliding_window is None else min(context, self.sliding_window)
        n_full = self.n_layers - self.n_sliding_layers
        return per_layer * (n_full * context + self.n_sliding_layers * capped)
