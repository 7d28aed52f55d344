"""Read a Hugging Face ``config.json`` dictionary into a :class:`ModelShape`.

The same fact goes by several keys across model families; the aliases below were read from
published configs. A layout that the arithmetic does not cover is refused rather than guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from psdsim.errors import InputError
from psdsim.hardware.quantization import storage
from psdsim.hardware.shape import Mla, ModelShape

_UNGATED = {"phi", "gpt_neox", "starcoder2", "nemotron", "arcee"}
# Families whose config leaves the key out where the embeddings are tied.
_TIED = ("gemma", "cohere", "starcoder2")
# Keys whose non-empty value means layers that differ in more than their window.
_MIXED_LAYOUT = {
    "global_head_dim": "layers with two attention head sizes",
    "num_global_key_value_heads": "layers with two numbers of KV heads",
    "num_kv_shared_layers": "layers that share their KV cache",
    "linear_num_value_heads": "linear-attention layers",
    "mamba_d_state": "state-space layers",
    "ssm_state_size": "state-space layers",
    "hybrid_override_pattern": "state-space layers",
    "linear_attn_config": "linear-attention layers",
    "full_attention_interval": "linear-attention layers",
    "block_types": "recurrent layers",
    "cross_attention_layers": "cross-attention layers",
    "index_topk": "sparse attention with an indexer",
    "block_configs": "layers of different shapes",
}
# Counts of experts that are read; any other key of that kind would leave its experts out.
_EXPERT_COUNTS = ("num_local_experts", "num_experts", "n_routed_experts")
_OTHER_EXPERT_COUNTS = (
    "moe_num_experts",
    "num_moe_experts",
    "moe_num_shared_experts",
    "ffn_config",
)
_KNOWN_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}


class _Keys:
    """A config dictionary with typed look-ups whose errors name the key."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self.config = config
        self.where = where

    def first(self, *names: str) -> Any:
        """Return the first value present and not null, else None."""
        return next((self.config[n] for n in names if self.config.get(n) is not None), None)

    def whole(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """Return a whole number under any of the names."""
        name = next((n for n in names if self.config.get(n) is not None), None)
        if name is None:
            if default is not None:
                return default
            known = " or ".join(f"'{n}'" for n in names)
            raise InputError(f"key {known} is missing", where=self.where)
        value = self.config[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(
                f"'{name}' is {value!r}",
                expected=f"a whole number of at least {least}",
                where=self.where,
            )
        return value

    def items(self, name: str, kind: type[str] | type[int]) -> list[Any]:
        """Return a list of names or of layer numbers; an empty one if the key is absent."""
        value = self.config.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(type(item) is kind for item in value):
            what = "names" if kind is str else "whole numbers"
            found = str(value)[:60]
            raise InputError(f"'{name}' is {found}", expected=f"a list of {what}", where=self.where)
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a truth value."""
        value = self.config.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(f"'{name}' is {value!r}", expected="true or false", where=self.where)
        return value


def shape_from_config(
    config: Mapping[str, Any], *, name: str = "model", where: str = "config.json"
) -> ModelShape:
    """Return the shape that a Hugging Face config describes.

    Parameters
    ----------
    config
        The parsed ``config.json``; a multimodal one is read at its ``text_config``.
    name
        Name of the model, for messages.
    where
        The file, for messages.

    Raises
    ------
    psdsim.errors.InputError
        If a key is missing or ill-typed (the message names file and key), or if the layout is
        not covered.

    Examples
    --------
    >>> shape = shape_from_config({
    ...     "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 8,
    ...     "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 10})
    >>> shape.head_dim, shape.n_kv_heads  # 8 / 2; no key for KV heads means one per query head
    (4, 2)
    """
    if not isinstance(config, Mapping):
        raise InputError(
            f"the top level is a {type(config).__name__}", expected="an object", where=where
        )
    text = config.get("text_config")
    inner = {**config, **text} if isinstance(text, Mapping) else config
    keys = _Keys(inner, where)
    model_type = str(inner.get("model_type", ""))
    _refuse_unknown_layout(keys)

    notes: list[str] = []
    n_layers = keys.whole("num_hidden_layers")
    hidden = keys.whole("hidden_size")
    n_heads = keys.whole("num_attention_heads")
    mla = _mla(keys)
    head_dim = keys.whole("head_dim", default=0, least=0)
    if not head_dim:
        if hidden % n_heads and mla is None:
            raise InputError(
                f"'hidden_size' is {hidden} and 'num_attention_heads' is {n_heads}",
                expected="a multiple of the heads, or the key 'head_dim'",
                where=where,
            )
        head_dim = max(hidden // n_heads, 1)
    window, n_sliding = _windows(keys, model_type, n_layers)
    if keys.first("attention_chunk_size") is not None:
        notes.append("chunked attention is counted as full attention")
    is_qwen2 = model_type.startswith("qwen2")
    bias = keys.flag("attention_bias", default=is_qwen2)
    fields: dict[str, Any] = {
        "name": name,
        "n_layers": n_layers,
        "hidden": hidden,
        "n_heads": n_heads,
        "n_kv_heads": n_heads if mla else keys.whole("num_key_value_heads", default=n_heads),
        "head_dim": head_dim,
        "vocab": keys.whole("vocab_size"),
        "tied": keys.flag("tie_word_embeddings", default=model_type.startswith(_TIED)),
        "gated_ffn": model_type not in _UNGATED,
        "qkv_bias": bias and mla is None,
        "o_bias": bias and not is_qwen2 and mla is None,
        "qk_norm": model_type.startswith(("qwen3", "gemma3")),
        "mla": mla,
        "sliding_window": window,
        "n_sliding_layers": n_sliding,
        "n_mtp_layers": keys.whole("num_nextn_predict_layers", default=0, least=0),
        **_feed_forward(keys, model_type, n_layers),
        **storage(inner, where=where, notes=notes),
    }
    if "tie_word_embeddings" not in inner:
        notes.append(f"tie_word_embeddings is absent: {fields['tied']} assumed".lower())
    try:
        return ModelShape(**fields, notes=tuple(notes))
    except ValidationError as error:
        raise InputError(
            error.errors()[0]["msg"].removeprefix("Value error, "), where=where
        ) from None


def _refuse_unknown_layout(keys: _Keys) -> None:
    if keys.config.get("is_encoder_decoder"):
        raise InputError(
            "this is an encoder-decoder model", expected="a decoder-only one", where=keys.where
        )
    for key, what in _MIXED_LAYOUT.items():
        if keys.config.get(key):
            raise InputError(
                f"'{key}' says that the model has {what}, which the roofline does not cover",
                expected="one attention layout (give a step-time table or affine times instead)",
                where=keys.where,
            )
    for key in _OTHER_EXPERT_COUNTS:
        if keys.config.get(key):
            raise InputError(
                f"'{key}' counts experts in a way that the roofline does not cover",
                expected="one of " + ", ".join(_EXPERT_COUNTS),
                where=keys.where,
            )
    layers = keys.items("layer_types", str)
    n_layers = keys.whole("num_hidden_layers")
    if layers and len(layers) != n_layers:
        raise InputError(
            f"'layer_types' has {len(layers)} entries",
            expected=f"{n_layers}, one for each of num_hidden_layers",
            where=keys.where,
        )
    kinds = set(layers) - _KNOWN_LAYERS
    if kinds:
        raise InputError(
            f"'layer_types' names {', '.join(sorted(map(repr, kinds)))}",
            expected="only " + ", ".join(sorted(_KNOWN_LAYERS)),
            where=keys.where,
        )


def _mla(keys: _Keys) -> Mla | None:
    if keys.first("kv_lora_rank") is None:
        return None
    return Mla(
        q_lora_rank=keys.whole("q_lora_rank", default=0, least=0),
        kv_lora_rank=keys.whole("kv_lora_rank"),
        qk_nope_head_dim=keys.whole("qk_nope_head_dim"),
        qk_rope_head_dim=keys.whole("qk_rope_head_dim"),
        v_head_dim=keys.whole("v_head_dim"),
    )


def _windows(keys: _Keys, model_type: str, n_layers: int) -> tuple[int | None, int]:
    """Return (window, number of layers that have it)."""
    if keys.first("sliding_window") is None or not keys.flag("use_sliding_window", default=True):
        return None, 0
    window = keys.whole("sliding_window")
    kinds = keys.items("layer_types", str)
    if kinds:
        return window, kinds.count("sliding_attention")
    if model_type.startswith("gemma3") or keys.first("sliding_window_pattern") is not None:
        # Every p-th layer is a global one.
        return window, n_layers - n_layers // keys.whole("sliding_window_pattern", default=6)
    if model_type in {"gemma2", "gpt_oss"}:
        return window, (n_layers + 1) // 2
    if model_type.startswith("qwen"):
        return window, n_layers - min(n_layers, keys.whole("max_window_layers", least=0))
    return window, n_layers


def _feed_forward(keys: _Keys, model_type: str, n_layers: int) -> dict[str, Any]:
    n_experts = keys.whole(*_EXPERT_COUNTS, default=0, least=0)
    if n_experts == 0:
        return {"intermediate": keys.whole("intermediate_size")}
    plain = keys.whole("intermediate_size")
    expert = keys.whole("moe_intermediate_size", default=plain)
    # Llama-4 keeps one shared expert of the routed experts' size without a key that says so.
    n_shared = keys.whole("n_shared_experts", default=int(model_type.startswith("llama4")), least=0)
    shared = keys.whole("shared_expert_intermediate_size", default=n_shared * expert, least=0)
    return {
        "intermediate": keys.whole("intermediate_size_mlp", default=plain),
        "n_experts": n_experts,
        "n_active_experts": keys.whole("num_experts_per_tok", "experts_per_token", "top_k_experts"),
        "expert_intermediate": expert,
        "shared_intermediate": shared,
        "n_moe_layers": _n_moe_layers(keys, n_layers),
        "expert_bias": model_type == "gpt_oss",
        "router_bias": model_type == "gpt_oss" or keys.first("topk_method") == "noaux_tc",
    }


def _n_moe_layers(keys: _Keys, n_layers: int) -> int:
    step = keys.whole(
        "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq", default=1
    )
    first_dense = keys.whole("first_k_dense_replace", default=0, least=0)
    dense = set(keys.items("mlp_only_layers", int))
    # Qwen and Llama-4 count layers from 1 here; with step 1, the only value DeepSeek uses, it is
    # the same for all.
    return sum(
        (layer + 1) % step == 0 and layer not in dense for layer in range(first_dense, n_layers)
    )
