"""What one forward pass reads and computes, from the shape of the model alone."""

from __future__ import annotations

from psdsim.hardware import ModelShape, expert_coverage


class PassWork:
    """Weight bytes and operations of a pass; all GPUs together, everything but the cache.

    Parameters
    ----------
    shape
        The model. What doesn't depend on the pass is summed here, once.

    Examples
    --------
    >>> tiny = ModelShape(name="tiny", n_layers=1, hidden=8, n_heads=2, n_kv_heads=2, head_dim=4,
    ...                   intermediate=16, vocab=10)
    >>> work = PassWork(tiny)
    >>> work.weight_bytes(1)     # 2 B x (256 attention + 384 feed-forward + 80 head + 24 norms)
    1488.0
    >>> work.operations(1, 1, 0)  # 2 x 720, and 4 x 2 heads x 4 elements x half a token
    1456.0
    """

    def __init__(self, shape: ModelShape) -> None:
        c = shape.counts
        head = c.embedding if shape.tied else c.lm_head
        plain = (head + c.router + c.norms) * shape.dtype_bytes
        linear = (c.attention + c.dense_ffn + c.shared_experts) * shape.linear_dtype_bytes
        used = head + c.router + c.attention + c.dense_ffn + c.shared_experts
        used += c.n_moe_layers * shape.n_active_experts * c.one_expert
        self._fixed_bytes = plain + linear
        self._n_moe_layers = c.n_moe_layers
        self._one_expert = c.one_expert
        self._expert_dtype_bytes = shape.expert_dtype_bytes
        self._n_experts = shape.n_experts
        self._n_active_experts = shape.n_active_experts
        self._per_token = 2.0 * used
        self._n_full = shape.n_layers - shape.n_sliding_layers
        self._n_sliding = shape.n_sliding_layers
        self._window = shape.sliding_window
        if shape.mla is not None:
            # In the absorbed form scores take the latent and the rotated part, values the latent.
            latent = 2 * shape.mla.kv_lora_rank + shape.mla.qk_rope_head_dim
            self._per_pair = 2.0 * shape.n_heads * latent
        else:
            self._per_pair = 4.0 * shape.n_heads * shape.head_dim

    def weight_bytes(self, n_tokens: float) -> float:
        """Return the weight bytes that a pass over ``n_tokens`` reads.

        Of routed experts only those count that some token goes to; the embedding table is looked
        up by row, so it counts only where it is the output projection, too.
        """
        if not self._n_experts:
            return self._fixed_bytes
        # The coverage is a number of experts, expected under uniform routing.
        covered = expert_coverage(self._n_experts, self._n_active_experts, n_tokens)
        experts = self._n_moe_layers * covered * self._one_expert * self._expert_dtype_bytes
        return self._fixed_bytes + experts

    def operations(self, n_seqs: float, n_tokens: float, n_kv_tokens: float) -> float:
        """Return the floating-point operations of a pass.

        Two a parameter and token; in attention, scores and values take four a head element for
        each pair of a query token and a token it looks at (the cache, and half of the new ones).
        """
        query = n_tokens / n_seqs
        context = n_kv_tokens / n_seqs + query / 2
        windowed = min(context, self._window) if self._window else context
        looked_at = self._n_full * context + self._n_sliding * windowed
        return self._per_token * n_tokens + self._per_pair * n_tokens * looked_at
