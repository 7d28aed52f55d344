"""GGUF files of llama.cpp: Llama, Qwen2 and Qwen3 decoders, in any quantisation gguf knows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from psdsim.errors import InputError
from realrun.models.config import LAYOUTS, ModelConfig
from realrun.models.gguf_reader import GgufTensor, read_gguf
from realrun.models.rope import frequencies
from realrun.models.weights import hf_names

# Metadata below "<architecture>." -> keys of a config.json.
_KEYS = {
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
    "context_length": "max_position_embeddings",
    "expert_count": "num_experts",
    "attention.sliding_window": "use_sliding_window",
}
_OUTER = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_INNER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_ROPE_FACTORS = "rope_freqs.weight"
# Llama 3.1 to 3.3; a GGUF holds what follows from these, not these.
_LLAMA3 = {
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


class GgufFile:
    """An open GGUF file: its config, its metadata and its tensors under Hugging Face names.

    Parameters
    ----------
    path
        The file. Weights are mapped, and read when asked for.

    Raises
    ------
    psdsim.errors.InputError
        If it is no GGUF file, is cut off, or holds a model that `Decoder` can't run.
    """

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        metadata, found = read_gguf(path)
        self.metadata: Mapping[str, Any] = metadata
        tensors = {tensor.name: tensor for tensor in found}
        self._factors = tensors.pop(_ROPE_FACTORS, None)
        self.config = self._read_config(tensors)
        self._tensors = {self._hf_name(name): tensor for name, tensor in tensors.items()}

    @property
    def names(self) -> list[str]:
        """Hugging Face names of the tensors."""
        return list(self._tensors)

    def get(self, name: str) -> torch.Tensor:
        """Return a tensor, dequantised to float32, its rows in Hugging Face's order."""
        tensor = self._tensors[name]
        values = torch.from_numpy(self._dequantise(tensor))
        config = self.config
        if config.model_type == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config.n_heads if name.endswith("q_proj.weight") else config.n_kv_heads
            return unpermute(values, heads)
        return values

    def _dequantise(self, tensor: GgufTensor) -> NDArray[np.float32]:
        try:
            return tensor.values()
        except NotImplementedError:
            raise InputError(
                f"the tensor '{tensor.name}' is in {tensor.kind_name}",
                expected="a quantisation that the package gguf can decode",
                where=self.where,
            ) from None

    def _hf_name(self, name: str) -> str:
        stem, _, end = name.rpartition(".")
        place = stem.split(".", 2)
        hf = ""
        if len(place) == 3 and place[0] == "blk" and place[2] in _INNER:
            hf = f"model.layers.{place[1]}.{_INNER[place[2]]}.{end}"
        elif stem in _OUTER:
            hf = f"{_OUTER[stem]}.{end}"
        if hf not in {part for parts in hf_names(self.config).values() for part in parts}:
            raise InputError(
                f"the tensor '{name}' has no place in this decoder",
                expected=f"a plain {self.config.model_type} model",
                where=self.where,
            )
        return hf

    def _read_config(self, tensors: Mapping[str, GgufTensor]) -> ModelConfig:
        kind = self.metadata.get("general.architecture")
        if kind not in LAYOUTS:
            raise InputError(
                f"the architecture is {kind!r}",
                expected=f"one of {', '.join(LAYOUTS)}",
                where=self.where,
            )
        if self.metadata.get("split.count", 0) > 1:
            raise InputError(
                f"is one of {self.metadata['split.count']} parts",
                expected="a whole model in one file (llama-gguf-split --merge)",
                where=self.where,
            )
        mine = {
            name.removeprefix(f"{kind}."): value
            for name, value in self.metadata.items()
            if name.startswith(f"{kind}.")
        }
        data = {hf: _exact(mine[name]) for name, hf in _KEYS.items() if name in mine}
        hidden, heads = data.get("hidden_size"), data.get("num_attention_heads")
        if type(hidden) is int and type(heads) is int and heads > 0:
            data.setdefault("head_dim", hidden // heads)  # llama.cpp's default, whatever the layout
        embedding = tensors.get("token_embd.weight")
        data.update(
            model_type=kind,
            vocab_size=embedding.shape[0] if embedding is not None else None,
            tie_word_embeddings="output.weight" not in tensors,
            rope_parameters=self._scaling(mine),
        )
        try:
            config = ModelConfig.from_hf(data, self.where)
            return self._with_factors(config, data)
        except InputError as error:
            raise _in_gguf_words(error, kind) from None

    def _scaling(self, mine: Mapping[str, Any]) -> dict[str, Any]:
        kind = mine.get("rope.scaling.type", "none")
        return (
            {} if kind == "none" else {"rope_type": kind, "factor": mine.get("rope.scaling.factor")}
        )

    def _with_factors(self, config: ModelConfig, data: dict[str, Any]) -> ModelConfig:
        """Find the Llama-3 scaling whose frequencies the file's factors divide into."""
        rotated = self.metadata.get(f"{config.model_type}.rope.dimension_count", config.head_dim)
        if rotated != config.head_dim:
            raise InputError(
                f"rotates {rotated} of {config.head_dim} dimensions of a head",
                expected="rotation of whole heads",
                where=self.where,
            )
        if self._factors is None:
            return config
        factors = torch.from_numpy(self._dequantise(self._factors))
        scaling = {**_LLAMA3, "factor": _exact(float(factors.max()))}
        scaled = ModelConfig.from_hf({**data, "rope_parameters": scaling}, self.where)
        ours = frequencies(config) / frequencies(scaled)
        if factors.shape != ours.shape or not torch.allclose(factors, ours, rtol=1e-4):
            raise InputError(
                f"'{_ROPE_FACTORS}' is not the scaling of Llama 3.1",
                expected="no scaling, linear scaling or that of Llama 3.1",
                where=self.where,
            )
        return scaled


def unpermute(rows: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Undo llama.cpp's order of the rows of a Llama model's q and k.

    llama.cpp rotates neighbours, Hugging Face the halves of a head, so its converter interleaves
    the two halves of every head; Qwen's layouts are left alone.

    Examples
    --------
    >>> unpermute(torch.tensor([[0], [2], [1], [3]]), 1).flatten().tolist()
    [0, 1, 2, 3]
    """
    n, *rest = rows.shape
    return rows.reshape(n_heads, n // n_heads // 2, 2, *rest).swapaxes(1, 2).reshape(rows.shape)


def _exact(value: Any) -> Any:
    # GGUF keeps float32; 9.99999975e-06 was 1e-05 in the config.json it came from.
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _in_gguf_words(error: InputError, kind: str) -> InputError:
    """Name the metadata where the config's own message names a key of config.json."""
    what = error.what
    for name, hf in _KEYS.items():
        what = what.replace(f"'{hf}'", f"'{kind}.{name}'")
    return InputError(what, expected=error.expected, where=error.where)
