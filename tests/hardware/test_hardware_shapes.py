"""Shapes and their arithmetic against published counts and hand calculation."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from psdsim.hardware import Mla, ModelShape, model_names, model_shape

# Parameters as the model pages on Hugging Face state them (safetensors metadata).
PUBLISHED = {
    "meta-llama/Llama-3.1-8B": 8_030_261_248,
    "meta-llama/Llama-3.1-70B": 70_553_706_496,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones_to_the_last(name: str) -> None:
    assert model_shape(name).n_params == PUBLISHED[name]


@pytest.mark.parametrize(
    "name, total, active",
    [  # as the model cards round them, in 10^9
        ("Llama-3.1-405B", (405.5, 406.5), None),
        ("Qwen3-0.6B", (0.595, 0.605), None),
        ("Qwen3-1.7B", (1.65, 1.75), None),
        ("Qwen3-30B-A3B", (30.45, 30.55), (3.25, 3.4)),
        ("Qwen3-235B-A22B", (234.5, 235.5), (21.5, 22.5)),
        ("Mixtral-8x7B-v0.1", (46.65, 46.75), (12.85, 12.95)),
        ("DeepSeek-V3", (670.5, 671.5), (36.5, 38.0)),
        ("Llama-4-Scout-17B-16E", (107.0, 109.0), (16.5, 17.5)),  # without its image encoder
    ],
)
def test_rounded_counts(
    name: str, total: tuple[float, float], active: tuple[float, float] | None
) -> None:
    shape = model_shape(name)
    assert total[0] < shape.n_params / 1e9 < total[1]
    low, high = active or total
    assert low < shape.n_active_params / 1e9 < high


@pytest.mark.parametrize(
    "name, total, stated_active, checkpoint_gib",
    [("gpt-oss-20b", 20_914_757_184, 3.61e9, 12.8),
     ("gpt-oss-120b", 116_829_156_672, 5.13e9, 60.8)],
)  # fmt: skip
def test_gpt_oss_model_card(
    name: str, total: int, stated_active: float, checkpoint_gib: float
) -> None:
    shape = model_shape(name)
    # What is missing are the attention sinks: one number a head and layer.
    assert total - shape.n_params == 64 * shape.n_layers
    # The card's active count leaves the input embedding out.
    assert shape.n_active_params - shape.vocab * shape.hidden == pytest.approx(
        stated_active, rel=2e-3
    )
    assert shape.weight_bytes / 2**30 == pytest.approx(checkpoint_gib, rel=3e-3)


@pytest.mark.parametrize(
    "name, kv_bytes",
    [("Llama-3.1-8B", 131_072), ("Llama-3.1-70B", 327_680), ("Qwen3-0.6B", 114_688),
     ("Qwen3-32B", 262_144), ("Qwen3-30B-A3B", 98_304), ("DeepSeek-V3", 70_272),
     ("gpt-oss-20b", 49_152), ("gpt-oss-120b", 73_728)],
)  # fmt: skip
def test_kv_bytes_of_a_token(name: str, kv_bytes: int) -> None:
    assert model_shape(name).kv_bytes_per_token() == kv_bytes
    assert model_shape(name).kv_bytes_per_token(dtype_bytes=1.0) == kv_bytes / 2


def toy(**changed: Any) -> ModelShape:
    fields: dict[str, Any] = {
        "name": "toy", "n_layers": 2, "hidden": 8, "n_heads": 4, "n_kv_heads": 2, "head_dim": 3,
        "intermediate": 16, "vocab": 10,
    }  # fmt: skip
    return ModelShape(**{**fields, **changed})


def test_each_part_by_hand() -> None:
    c = toy().counts
    # Queries are 12 wide, keys and values 6.
    assert c.attention == 2 * (8 * 12 + 12 * 8 + 2 * 8 * 6)
    assert c.dense_ffn == 2 * 3 * 8 * 16
    assert (c.embedding, c.lm_head, c.router, c.one_expert, c.shared_experts) == (80, 80, 0, 0, 0)
    assert c.norms == 2 * 2 * 8 + 8
    base = toy().n_params
    assert toy(tied=True).n_params == base - 80
    assert toy(gated_ffn=False).n_params == base - 2 * 8 * 16
    assert toy(qkv_bias=True).n_params == base + 2 * (12 + 6 + 6)
    assert toy(o_bias=True).n_params == base + 2 * 8
    assert toy(qk_norm=True).n_params == base + 2 * 2 * 3


def test_experts_by_hand() -> None:
    moe = toy(n_experts=4, n_active_experts=2, expert_intermediate=5, n_moe_layers=1,
              shared_intermediate=7)  # fmt: skip
    swap = -3 * 8 * 16 + 8 * 4 + 3 * 8 * 7  # a dense block out; router and shared expert in
    assert moe.n_params == toy().n_params + swap + 4 * 3 * 8 * 5
    assert moe.n_active_params == toy().n_params + swap + 2 * 3 * 8 * 5
    biased = moe.model_copy(update={"expert_bias": True, "router_bias": True})
    assert biased.n_params == moe.n_params + 4 + 4 * (2 * 5 + 8)
    half = moe.model_copy(update={"expert_dtype_bytes": 0.5})
    assert moe.weight_bytes - half.weight_bytes == 1.5 * 4 * 120


def test_latent_attention_by_hand() -> None:
    mla = Mla(q_lora_rank=5, kv_lora_rank=6, qk_nope_head_dim=3, qk_rope_head_dim=2, v_head_dim=4)
    down = 8 * 5 + 8 * (6 + 2)
    up = 5 * 4 * (3 + 2) + 6 * 4 * (3 + 4)
    assert toy(mla=mla).counts.attention == 2 * (down + up + 4 * 4 * 8)
    assert toy(mla=mla).counts.norms == toy().counts.norms + 2 * (5 + 6)
    full_rank = mla.model_copy(update={"q_lora_rank": 0})
    down, up = 8 * (6 + 2), 8 * 4 * (3 + 2) + 6 * 4 * (3 + 4)
    assert toy(mla=full_rank).counts.attention == 2 * (down + up + 4 * 4 * 8)
    assert toy(mla=mla).kv_bytes_per_token() == 2 * (6 + 2) * 2
    assert toy(mla=mla).kv_bytes_per_token(n_gpus=4) == 2 * (6 + 2) * 2


def test_kv_bytes_by_hand() -> None:
    assert toy().kv_bytes_per_token() == 2 * 2 * 2 * 3 * 2.0  # layers, K and V, heads, elements, B
    assert [toy().kv_bytes_per_token(n_gpus=n) for n in (1, 2, 4)] == [48.0, 24.0, 24.0]
    assert toy().kv_bytes(100) == 4800.0
    window = toy(sliding_window=10, n_sliding_layers=1)
    assert window.kv_bytes(100) == 24 * 100 + 24 * 10
    assert window.kv_bytes(7) == 48 * 7
    assert window.kv_bytes(100, dtype_bytes=1.0, n_gpus=2) == (24 * 100 + 24 * 10) / 4


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"n_kv_heads": 3}, "does not divide n_heads = 4"),
        ({"n_experts": 4}, "either both are 0 or neither"),
        ({"n_moe_layers": 1}, "either both are 0 or neither"),
        ({"n_experts": 4, "n_moe_layers": 1}, "n_active_experts is 0, not between 1 and 4"),
        ({"n_experts": 4, "n_moe_layers": 1, "n_active_experts": 5}, "not between 1 and 4"),
        ({"n_experts": 4, "n_moe_layers": 1, "n_active_experts": 1}, "expert_intermediate is 0"),
        ({"n_sliding_layers": 3, "sliding_window": 4}, "more MoE or sliding layers"),
        ({"n_sliding_layers": 1}, "sliding_window is null"),
        ({"hidden": 0}, "greater than or equal to 1"),
        ({"vocab": True}, "truth value"),
        ({"dtype_bytes": float("nan")}, "finite number"),
        ({"heads": 3}, "Extra inputs"),
    ],
)
def test_impossible_shapes_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        toy(**changed)


def test_every_built_in_name_is_found_in_any_case() -> None:
    for name in model_names():
        for spelled in (name, name.lower(), name.rsplit("/", 1)[1], name.rsplit("/", 1)[1].upper()):
            assert model_shape(spelled).name == name
