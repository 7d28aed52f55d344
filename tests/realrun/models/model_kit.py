"""Tiny models of every layout, and tiny GGUF files, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from realrun.models.cache import KvCache, Rows  # noqa: E402
from realrun.models.config import ModelConfig  # noqa: E402
from realrun.models.decoder import CausalAttention, Decoder  # noqa: E402
from realrun.models.forward import EagerForward  # noqa: E402
from realrun.models.weights import to_hf  # noqa: E402

BASE: dict[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama-grouped": ("llama", {}),
    "llama-tied": ("llama", {"tie_word_embeddings": True, "num_key_value_heads": 4}),
    "llama-one-kv-head": ("llama", {"num_key_value_heads": 1}),
    "llama-wide-heads": ("llama", {"head_dim": 16}),
    "llama-linear": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 4.0}},
    ),
    "llama-llama3": ("llama", {"rope_parameters": LLAMA3, "head_dim": 16}),
    "qwen2": ("qwen2", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "qwen2-tied": ("qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("qwen3", {"head_dim": 16}),
    "qwen3-tied": ("qwen3", {"head_dim": 8, "tie_word_embeddings": True}),
}


def hf_model(layout: str, seed: int = 0) -> Any:
    """Return a tiny transformers model whose norms and biases are random too."""
    transformers = pytest.importorskip("transformers")
    kind, changes = LAYOUTS[layout]
    name = kind.capitalize()
    config = getattr(transformers, f"{name}Config")(**{**BASE, **changes})
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            mean = 1.0 if parameter.ndim == 1 else 0.0
            parameter.normal_(mean, 0.2, generator=generator)
    return model


def hf_logits(model: Any, tokens: Sequence[int]) -> Any:
    with torch.inference_mode():
        return model(torch.tensor([list(tokens)])).logits[0]


def config_of(layout: str, **changes: Any) -> ModelConfig:
    kind, own = LAYOUTS[layout]
    return ModelConfig.from_hf({"model_type": kind, **BASE, **own, **changes})


def random_decoder(config: ModelConfig, seed: int = 0) -> Decoder:
    decoder = Decoder(config).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for parameter in decoder.parameters():
        parameter.normal_(1.0 if parameter.ndim == 1 else 0.0, 0.2, generator=generator)
    decoder.set_positions(config.max_positions)
    return decoder


def full_logits(decoder: Decoder, tokens: Sequence[int]) -> Any:
    """Return the logits of one text in a single pass without a cache."""
    config = decoder.config
    groups = config.n_heads // config.n_kv_heads
    attend = CausalAttention(1, len(tokens), groups, torch.device("cpu"))
    with torch.inference_mode():
        return decoder(torch.tensor(list(tokens)), attend)


def cached(decoder: Decoder, n_slots: int = 8, max_length: int = 64) -> EagerForward:
    cache = KvCache(decoder.config, n_slots, max_length, torch.device("cpu"), torch.float32)
    # What was never written must not matter.
    cache.keys.fill_(7.0)
    cache.values.fill_(-7.0)
    return EagerForward(decoder, cache)


def rows(*triples: tuple[int, int, int]) -> Rows:
    """Return rows from (slot, start, length)."""
    slots, starts, lengths = (np.array(part, dtype=np.int64) for part in zip(*triples, strict=True))
    return Rows(slots, starts, lengths)


def feed(
    forward: EagerForward, texts: dict[int, Sequence[int]], spans: Sequence[tuple[int, int, int]]
) -> list[Any]:
    """Feed texts[slot][start:start + length] for each (slot, start, length), in one pass.

    Returns the logits of each span.
    """
    tokens = [t for slot, start, n in spans for t in texts[slot][start : start + n]]
    logits = forward(rows(*spans), np.array(tokens, dtype=np.int64))
    return list(logits.split([n for _, _, n in spans]))


def text(seed: int, length: int, vocab_size: int = 256) -> list[int]:
    return np.random.default_rng(seed).integers(0, vocab_size, length).tolist()


# The names of llama.cpp's tensors, as its converter writes them.
GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def permute(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """Order rows as convert_hf_to_gguf.py does (LlamaModel.permute)."""
    n = rows.shape[0]
    shape = (n_heads, 2, n // n_heads // 2, *rows.shape[1:])
    return rows.reshape(shape).swapaxes(1, 2).reshape(rows.shape)


def gguf_tensors(decoder: Decoder) -> dict[str, np.ndarray]:
    config, out = decoder.config, {}
    for name, value in to_hf(decoder).items():
        array = value.numpy()
        if config.model_type == "llama" and "q_proj" in name:
            array = permute(array, config.n_heads)
        if config.model_type == "llama" and "k_proj" in name:
            array = permute(array, config.n_kv_heads)
        stem, _, end = name.rpartition(".")
        if stem.startswith("model.layers."):
            _, _, i, inner = stem.split(".", 3)
            out[f"blk.{i}.{GGUF_NAMES[inner]}.{end}"] = array
        else:
            out[f"{GGUF_NAMES[stem]}.{end}"] = array
    return out


def byte_vocabulary() -> tuple[list[str], list[tuple[str, str]]]:
    """Return 244 tokens of byte-level BPE and what merges them: ASCII, merges, 3 specials."""
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    letters = [chr(c) for c in range(33, 127)] + ["Ġ", "Ċ"]
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"), ("1", "2")]
    tokens = specials + letters + ["".join(pair) for pair in merges]
    return tokens, merges


def write_gguf(
    path: Path,
    decoder: Decoder,
    *,
    architecture: str | None = None,
    quantise: Callable[[str, np.ndarray], Any] | None = None,
    extra: Callable[[Any], None] | None = None,
    pre: str = "smollm",
    rope_factors: np.ndarray | None = None,
) -> Path:
    """Write a GGUF file with gguf's own writer.

    Parameters
    ----------
    quantise
        (name, array) -> None, or the quantisation type of that tensor.
    extra
        Adds metadata to the writer.
    """
    gguf = pytest.importorskip("gguf")
    config = decoder.config
    writer = gguf.GGUFWriter(path, architecture or config.model_type)
    writer.add_context_length(config.max_positions)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.n_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.n_heads)
    writer.add_head_count_kv(config.n_kv_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_theta)
    if config.head_dim != config.hidden_size // config.n_heads:
        writer.add_key_length(config.head_dim)
    tokens, merges = byte_vocabulary()
    tokens = tokens + [f"[PAD{i}]" for i in range(len(tokens), config.vocab_size)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * 101 + [5] * (config.vocab_size - 104))
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_eos_token_id(2)
    if extra is not None:
        extra(writer)
    tensors = gguf_tensors(decoder)
    if rope_factors is not None:
        tensors["rope_freqs.weight"] = rope_factors.astype(np.float32)
    for name, array in tensors.items():
        kind = quantise(name, array) if quantise is not None and array.ndim == 2 else None
        data = array if kind is None else gguf.quants.quantize(array, kind)
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
