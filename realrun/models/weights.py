"""From the tensor names of published checkpoints to the fused decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch

from psdsim.errors import InputError
from realrun.models.config import ModelConfig
from realrun.models.decoder import Decoder

GetTensor = Callable[[str], torch.Tensor]


def hf_names(config: ModelConfig) -> dict[str, tuple[str, ...]]:
    """Map each weight of `Decoder` to the Hugging Face tensors it is made of, stacked by rows."""
    names: dict[str, tuple[str, ...]] = {
        "embedding.weight": ("model.embed_tokens.weight",),
        "norm": ("model.norm.weight",),
    }
    if not config.tied:
        names["head.weight"] = ("lm_head.weight",)
    for i in range(config.n_layers):
        mine, theirs = f"layers.{i}.", f"model.layers.{i}."
        attention, mlp = theirs + "self_attn.", theirs + "mlp."
        names[mine + "attention_norm"] = (theirs + "input_layernorm.weight",)
        names[mine + "mlp_norm"] = (theirs + "post_attention_layernorm.weight",)
        names[mine + "qkv.weight"] = tuple(f"{attention}{x}_proj.weight" for x in "qkv")
        if config.qkv_bias:
            names[mine + "qkv.bias"] = tuple(f"{attention}{x}_proj.bias" for x in "qkv")
        if config.qk_norm:
            names[mine + "q_norm"] = (attention + "q_norm.weight",)
            names[mine + "k_norm"] = (attention + "k_norm.weight",)
        names[mine + "output.weight"] = (attention + "o_proj.weight",)
        names[mine + "gate_up.weight"] = (mlp + "gate_proj.weight", mlp + "up_proj.weight")
        names[mine + "down.weight"] = (mlp + "down_proj.weight",)
    return names


def part_shapes(config: ModelConfig, name: str) -> list[tuple[int, ...]]:
    """Return the shapes of the Hugging Face tensors that one weight of `Decoder` is made of."""
    h, m, d = config.hidden_size, config.intermediate_size, config.head_dim
    q, kv = config.n_heads * d, config.n_kv_heads * d
    shapes: dict[str, list[tuple[int, ...]]] = {
        "embedding.weight": [(config.vocab_size, h)],
        "head.weight": [(config.vocab_size, h)],
        "qkv.weight": [(q, h), (kv, h), (kv, h)],
        "qkv.bias": [(q,), (kv,), (kv,)],
        "q_norm": [(d,)],
        "k_norm": [(d,)],
        "output.weight": [(h, q)],
        "gate_up.weight": [(m, h), (m, h)],
        "down.weight": [(h, m)],
    }
    inner = name.split(".", 2)[2] if name.startswith("layers.") else name
    return shapes.get(inner, [(h,)])  # the other norms


def assign(
    decoder: Decoder,
    known: Iterable[str],
    get: GetTensor,
    where: str,
    device: torch.device | str | None = None,
) -> None:
    """Fill a decoder with the tensors of a checkpoint, named as Hugging Face does.

    Parameters
    ----------
    decoder
        The model, whose weights may be on the meta device; their precision is kept.
    known
        Names of the tensors that there are.
    get
        Returns one of them.
    where
        The checkpoint's place, for messages.
    device
        Where the weights go; None: where the decoder's are.

    Raises
    ------
    psdsim.errors.InputError
        If a tensor is missing or has another shape.
    """
    there = set(known)
    state: dict[str, torch.Tensor] = {}
    wanted = decoder.state_dict()
    for name, parts in hf_names(decoder.config).items():
        like, pieces = wanted[name], []
        for part, shape in zip(parts, part_shapes(decoder.config, name), strict=True):
            if part not in there:
                raise InputError(
                    f"the tensor '{part}' is missing",
                    expected=f"one of shape {shape}, as its config says",
                    where=where,
                )
            piece = get(part)
            if tuple(piece.shape) != shape:
                raise InputError(
                    f"the tensor '{part}' has shape {tuple(piece.shape)}",
                    expected=f"{shape}, as its config says",
                    where=where,
                )
            pieces.append(piece.to(device or like.device, like.dtype))
        # cat copies, so that nothing goes on pointing into a mapped file.
        state[name] = torch.cat(pieces)
    adopt(decoder, state)


def adopt(decoder: Decoder, state: dict[str, torch.Tensor]) -> None:
    """Make these tensors the decoder's own, without a copy; the rotary tables follow them."""
    if decoder.config.tied:
        state = {**state, "head.weight": state["embedding.weight"]}
    decoder.load_state_dict(state, assign=True)
    if decoder.config.tied:
        decoder.head.weight = decoder.embedding.weight
    decoder.set_positions(decoder.cos.shape[0])


def to_hf(decoder: Decoder) -> dict[str, torch.Tensor]:
    """Return the weights under their Hugging Face names, unfused."""
    config = decoder.config
    out: dict[str, torch.Tensor] = {}
    state: Mapping[str, torch.Tensor] = decoder.state_dict()
    for name, parts in hf_names(config).items():
        rows = [shape[0] for shape in part_shapes(config, name)]
        pieces = torch.split(state[name], rows)
        out.update((part, piece.contiguous()) for part, piece in zip(parts, pieces, strict=True))
    return out
