"""The shape of a Llama-like decoder, read from a Hugging Face ``config.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psdsim.errors import InputError

LAYOUTS = {"llama": (False, False), "qwen2": (True, False), "qwen3": (False, True)}
"""Supported ``model_type``: (bias on q, k and v; RMS norm on q and k)."""

# Keys whose presence changes the arithmetic in a way that this decoder does not know.
_FOREIGN = {
    "sliding_window_pattern": "sliding-window layers",
    "num_experts": "mixture of experts",
    "num_local_experts": "mixture of experts",
    "kv_lora_rank": "latent attention",
    "mlp_bias": "a bias in the MLP",
    "quantization_config": "quantised weights",
    "use_sliding_window": "sliding-window layers",
}

_SCALINGS = {
    "linear": ("factor",),
    "llama3": (
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
    ),
}


@dataclass(frozen=True)
class ModelConfig:
    """A decoder: RMSNorm, rotary positions, grouped KV heads, SwiGLU.

    Parameters
    ----------
    model_type
        ``llama``, ``qwen2`` or ``qwen3``.
    vocab_size, hidden_size, intermediate_size
        Widths.
    n_layers, n_heads, n_kv_heads, head_dim
        Depth and attention heads; `n_kv_heads` divides `n_heads`.
    rms_norm_eps
        Added under the root of every RMS norm.
    rope_theta
        Base of the rotary frequencies.
    rope_scaling
        None, or the parameters of ``linear`` or ``llama3`` scaling, as (name, value) pairs.
    max_positions
        Longest context, tokens.
    tied
        Whether the output head is the embedding.
    qkv_bias, qk_norm
        Bias on q, k and v (Qwen2); RMS norm on each head of q and k (Qwen3).
    """

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: tuple[tuple[str, float | str], ...] | None
    max_positions: int
    tied: bool
    qkv_bias: bool
    qk_norm: bool

    @classmethod
    def from_hf(cls, data: Mapping[str, Any], where: str = "config.json") -> ModelConfig:
        """Read the keys of a ``config.json``.

        Raises
        ------
        psdsim.errors.InputError
            If the layout is another one, or a key is missing or impossible.
        """
        kind = data.get("model_type")
        if kind not in LAYOUTS:
            raise InputError(
                f"model_type is {kind!r}", expected=f"one of {', '.join(LAYOUTS)}", where=where
            )
        for key, what in _FOREIGN.items():
            if data.get(key):
                raise InputError(
                    f"'{key}' asks for {what}", expected="a dense decoder", where=where
                )
        bias, qk_norm = LAYOUTS[kind]
        if data.get("attention_bias") and not bias:
            # Here it also puts a bias on the attention's output, which Qwen2 does not have.
            raise InputError(
                "'attention_bias' asks for a bias on the attention's output",
                expected="an attention without it",
                where=where,
            )
        _check_arithmetic(data, where)
        heads = _count(data, "num_attention_heads", where)
        hidden = _count(data, "hidden_size", where)
        kv_heads = _count(data, "num_key_value_heads", where, heads)
        if heads % kv_heads:
            raise InputError(
                f"'num_key_value_heads' is {kv_heads}",
                expected=f"a divisor of the {heads} attention heads",
                where=where,
            )
        # transformers' default where the key is missing; published files carry it.
        head_dim = _count(data, "head_dim", where, 128 if kind == "qwen3" else hidden // heads)
        if head_dim % 2:
            raise InputError(
                f"'head_dim' is {head_dim}",
                expected="an even number, for rotary pairs",
                where=where,
            )
        return cls(
            model_type=kind,
            vocab_size=_count(data, "vocab_size", where),
            hidden_size=hidden,
            intermediate_size=_count(data, "intermediate_size", where),
            n_layers=_count(data, "num_hidden_layers", where),
            n_heads=heads,
            n_kv_heads=kv_heads,
            head_dim=head_dim,
            rms_norm_eps=_number(data, "rms_norm_eps", where, 1e-6),
            rope_theta=_theta(data, where),
            rope_scaling=_scaling(data, where),
            max_positions=_count(data, "max_position_embeddings", where, 2048),
            tied=bool(data.get("tie_word_embeddings", False)),
            qkv_bias=bias,
            qk_norm=qk_norm,
        )

    @classmethod
    def load(cls, path: Path) -> ModelConfig:
        """Read a ``config.json``."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(
                f"can't be read: {error.strerror}", expected="a config.json", where=str(path)
            ) from None
        except ValueError:
            raise InputError("is not JSON", expected="a config.json", where=str(path)) from None
        if not isinstance(data, dict):
            raise InputError("holds no JSON object", expected="a config.json", where=str(path))
        return cls.from_hf(data, str(path))

    def to_hf(self) -> dict[str, Any]:
        """Return the keys of a ``config.json`` from which `from_hf` makes the same config."""
        data: dict[str, Any] = {
            "architectures": [f"{self.model_type.capitalize()}ForCausalLM"],
            "model_type": self.model_type,
            "hidden_act": "silu",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.n_layers,
            "num_attention_heads": self.n_heads,
            "num_key_value_heads": self.n_kv_heads,
            "head_dim": self.head_dim,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_theta": self.rope_theta,
            "max_position_embeddings": self.max_positions,
            "tie_word_embeddings": self.tied,
        }
        if self.rope_scaling is not None:
            data["rope_scaling"] = dict(self.rope_scaling)
        return data

    @property
    def n_parameters(self) -> int:
        """Weights, the head counted once where it is the embedding."""
        h, d = self.hidden_size, self.head_dim
        qkv = (self.n_heads + 2 * self.n_kv_heads) * d
        layer = h * qkv + self.n_heads * d * h + 3 * h * self.intermediate_size + 2 * h
        layer += (qkv if self.qkv_bias else 0) + (2 * d if self.qk_norm else 0)
        return self.n_layers * layer + (1 if self.tied else 2) * self.vocab_size * h + h

    def pass_bytes(self, n_kv_tokens: float, itemsize: int) -> float:
        """Return the bytes one pass reads: weights once, and the keys and values in the cache."""
        embedding = 0 if self.tied else self.vocab_size * self.hidden_size
        kv = 2 * self.n_layers * self.n_kv_heads * self.head_dim * n_kv_tokens
        return float(itemsize * (self.n_parameters - embedding + kv))

    def pass_flops(self, n_tokens: float, attended: float) -> float:
        """Return the floating-point operations of a pass over `n_tokens` new tokens.

        Parameters
        ----------
        n_tokens
            New tokens, over all sequences.
        attended
            Sum over the new tokens of the cached tokens each attends to.
        """
        weights = self.n_parameters - (0 if self.tied else self.vocab_size * self.hidden_size)
        attention = 4 * self.n_layers * self.n_heads * self.head_dim * attended
        return 2.0 * weights * n_tokens + attention


def _count(data: Mapping[str, Any], key: str, where: str, default: int | None = None) -> int:
    value = data.get(key)
    value = default if value is None else value
    if type(value) is not int or value < 1:
        found = "is missing" if value is None else f"is {value!r}"
        raise InputError(f"'{key}' {found}", expected="a whole number of at least 1", where=where)
    return value


def _number(data: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    value = data.get(key)
    value = default if value is None else value
    if isinstance(value, int | float) and type(value) is not bool and 0 < value < math.inf:
        return float(value)
    found = "is missing" if value is None else f"is {value!r}"
    raise InputError(f"'{key}' {found}", expected="a positive number", where=where)


def _check_arithmetic(data: Mapping[str, Any], where: str) -> None:
    """Refuse values, rather than keys, that this decoder does not know."""
    if data.get("hidden_act", "silu") != "silu":
        found = f"'hidden_act' is {data['hidden_act']!r}"
        raise InputError(found, expected="'silu'", where=where)
    if any(kind != "full_attention" for kind in data.get("layer_types") or ()):
        found = "'layer_types' holds other layers"
        raise InputError(found, expected="'full_attention' alone", where=where)
    share = _rope(data, "rope_parameters", where).get("partial_rotary_factor")
    share = data.get("partial_rotary_factor", 1.0) if share is None else share
    if share != 1.0:
        found = f"'partial_rotary_factor' is {share!r}"
        raise InputError(found, expected="rotation of whole heads (1.0)", where=where)


def _rope(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = data.get(key) or {}
    if not isinstance(value, Mapping):
        raise InputError(f"'{key}' is {value!r}", expected="a JSON object", where=where)
    return value


def _theta(data: Mapping[str, Any], where: str) -> float:
    # transformers 5 writes both under rope_parameters, earlier versions beside each other.
    inner = _rope(data, "rope_parameters", where)
    source = data if inner.get("rope_theta") is None else inner
    return _number(source, "rope_theta", where, 10000.0)


def _scaling(data: Mapping[str, Any], where: str) -> tuple[tuple[str, float | str], ...] | None:
    given = _rope(data, "rope_scaling", where) or _rope(data, "rope_parameters", where)
    kind = given.get("rope_type", given.get("type", "default"))
    if kind == "default":
        return None
    if kind not in _SCALINGS:
        raise InputError(
            f"rope scaling is {kind!r}", expected="default, linear or llama3", where=where
        )
    place = f"{where}: rope scaling '{kind}'"
    pairs = ((name, _number(given, name, place)) for name in _SCALINGS[kind])
    return (("rope_type", kind), *pairs)
