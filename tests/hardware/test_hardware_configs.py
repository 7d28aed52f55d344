"""Reading Hugging Face configs: what is understood, what is refused, and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from psdsim.errors import InputError
from psdsim.hardware import ModelShape, model_names, model_shape, shape_from_config
from psdsim.hardware.quantization import storage

LLAMA: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 16, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 32, "vocab_size": 100,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def read(**changed: Any) -> ModelShape:
    return shape_from_config({k: v for k, v in {**LLAMA, **changed}.items() if v != "drop"})


def test_plain_llama() -> None:
    shape = read()
    assert shape == ModelShape(
        name="model", n_layers=4, hidden=16, n_heads=4, n_kv_heads=2, head_dim=4, intermediate=32,
        vocab=100,
    )  # fmt: skip


@pytest.mark.parametrize(
    "changed, field, value",
    [
        ({"num_key_value_heads": "drop"}, "n_kv_heads", 4),
        ({"head_dim": 8}, "head_dim", 8),
        ({"head_dim": None}, "head_dim", 4),
        ({"tie_word_embeddings": True}, "tied", True),
        ({"tie_word_embeddings": "drop"}, "tied", False),
        ({"tie_word_embeddings": "drop", "model_type": "gemma"}, "tied", True),
        ({"tie_word_embeddings": "drop", "model_type": "starcoder2"}, "tied", True),
        ({"attention_bias": True}, "qkv_bias", True),
        ({"attention_bias": True}, "o_bias", True),
        ({"model_type": "qwen2"}, "qkv_bias", True),
        ({"model_type": "qwen2"}, "o_bias", False),
        ({"model_type": "qwen3"}, "qk_norm", True),
        ({"model_type": "gpt_neox"}, "gated_ffn", False),
        ({"num_nextn_predict_layers": 1}, "n_mtp_layers", 1),
        ({"torch_dtype": "float32"}, "dtype_bytes", 4.0),
        ({"torch_dtype": "drop", "dtype": "torch.float16"}, "dtype_bytes", 2.0),
        # Windows: all layers (Mistral), none, every other, all but each sixth, the last ones.
        ({"sliding_window": 8, "model_type": "mistral"}, "n_sliding_layers", 4),
        ({"sliding_window": None}, "n_sliding_layers", 0),
        ({"sliding_window": 8, "use_sliding_window": False}, "n_sliding_layers", 0),
        ({"sliding_window": 8, "model_type": "gemma2", "num_hidden_layers": 5},
         "n_sliding_layers", 3),
        ({"sliding_window": 8, "model_type": "gemma3_text", "num_hidden_layers": 13},
         "n_sliding_layers", 11),
        ({"sliding_window": 8, "model_type": "qwen2", "use_sliding_window": True,
          "max_window_layers": 3}, "n_sliding_layers", 1),
        ({"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"] * 2},
         "n_sliding_layers", 2),
    ],
)  # fmt: skip
def test_one_key_at_a_time(changed: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(read(**changed), field) == value


def test_assumptions_are_noted() -> None:
    assert read().notes == ()
    notes = read(torch_dtype="drop", tie_word_embeddings="drop", attention_chunk_size=8).notes
    assert notes == (
        "chunked attention is counted as full attention",
        "dtype is absent: bfloat16 assumed",
        "tie_word_embeddings is absent: false assumed",
    )


def test_expert_layers_of_several_families() -> None:
    qwen = read(model_type="qwen3_moe", num_experts=8, num_experts_per_tok=2,
                moe_intermediate_size=6, decoder_sparse_step=2, mlp_only_layers=[3])  # fmt: skip
    assert (qwen.n_experts, qwen.n_active_experts, qwen.expert_intermediate) == (8, 2, 6)
    assert qwen.n_moe_layers == 1  # layers 1 and 3 (from 0), less 3
    mixtral = read(model_type="mixtral", num_local_experts=8, num_experts_per_tok=2)
    assert (mixtral.expert_intermediate, mixtral.n_moe_layers) == (32, 4)
    deepseek = read(model_type="deepseek_v3", n_routed_experts=8, num_experts_per_tok=2,
                    n_shared_experts=2, moe_intermediate_size=6, first_k_dense_replace=3,
                    topk_method="noaux_tc")  # fmt: skip
    assert (deepseek.shared_intermediate, deepseek.n_moe_layers, deepseek.router_bias) == (
        12,
        1,
        True,
    )
    qwen2 = read(model_type="qwen2_moe", num_experts=8, num_experts_per_tok=2,
                 moe_intermediate_size=6, shared_expert_intermediate_size=20)  # fmt: skip
    assert qwen2.shared_intermediate == 20
    llama4 = read(model_type="llama4_text", num_local_experts=4, num_experts_per_tok=1,
                  intermediate_size_mlp=64, interleave_moe_layer_step=2)  # fmt: skip
    assert (llama4.intermediate, llama4.expert_intermediate, llama4.shared_intermediate) == (
        64,
        32,
        32,
    )
    assert llama4.n_moe_layers == 2


def test_multimodal_config_is_read_at_its_text_part() -> None:
    outer = {"model_type": "big", "vision_config": {"hidden_size": 999}, "text_config": LLAMA,
             "quantization_config": {"quant_method": "fp8"}}  # fmt: skip
    assert shape_from_config(outer) == read(quantization_config={"quant_method": "fp8"})


@pytest.mark.parametrize(
    "entry, kind, linear, expert",
    [
        ({"quant_method": "fp8"}, "fp8", 1.0, 1.0),
        ({"quant_method": "mxfp4"}, "mxfp4", 2.0, 4.25 / 8),
        # 4 bits, and for 128 of them 16 bits of scale and 4 of zero point.
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "weight_only", 0.5 + 2.5 / 128,
         0.5 + 2.5 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "weight_only", 1.0, 1.0),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "weight_only", 0.5, 0.5),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "weight_only", 1.0, 1.0),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {
            "num_bits": 8, "type": "float"}}}}, "fp8", 1.0, 1.0),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {
            "num_bits": 8, "type": "int"}}}}, "int8", 1.0, 1.0),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {
            "num_bits": 4, "type": "int", "group_size": 64}}}}, "weight_only", 0.5 + 2.5 / 64,
         0.5 + 2.5 / 64),
    ],
)  # fmt: skip
def test_quantisation(entry: dict[str, Any], kind: str, linear: float, expert: float) -> None:
    shape = read(quantization_config=entry)
    assert shape.quantization == kind
    assert (shape.linear_dtype_bytes, shape.expert_dtype_bytes) == pytest.approx((linear, expert))
    assert shape.dtype_bytes == 2.0


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"num_hidden_layers": "drop"}, "key 'num_hidden_layers' is missing"),
        ({"hidden_size": "16"}, "'hidden_size' is '16'; expected a whole number of at least 1"),
        ({"hidden_size": 16.0}, "'hidden_size' is 16.0"),
        ({"vocab_size": True}, "'vocab_size' is True"),
        ({"num_attention_heads": 0}, "'num_attention_heads' is 0"),
        ({"num_attention_heads": 3, "num_key_value_heads": 3}, "a multiple of the heads"),
        ({"num_key_value_heads": 3}, "n_kv_heads is 3, which does not divide"),
        ({"tie_word_embeddings": "yes"}, "'tie_word_embeddings' is 'yes'; expected true or false"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"global_head_dim": 512}, "two attention head sizes"),
        ({"num_global_key_value_heads": 2}, "two numbers of KV heads"),
        ({"num_kv_shared_layers": 2}, "share their KV cache"),
        ({"linear_num_value_heads": 32}, "linear-attention layers"),
        ({"mamba_d_state": 128}, "state-space layers"),
        ({"ssm_state_size": 128}, "state-space layers"),
        ({"hybrid_override_pattern": "M-M*"}, "state-space layers"),
        ({"linear_attn_config": {"num_heads": 4}}, "linear-attention layers"),
        ({"full_attention_interval": 4}, "linear-attention layers"),
        ({"block_types": ["recurrent", "attention"]}, "recurrent layers"),
        ({"cross_attention_layers": [1, 3]}, "cross-attention layers"),
        ({"moe_num_experts": 64}, "'moe_num_experts' counts experts .* one of num_local_experts"),
        ({"ffn_config": {"moe_num_experts": 16}}, "'ffn_config' counts experts"),
        ({"index_topk": 2048}, "indexer"),
        ({"block_configs": [{}]}, "layers of different shapes"),
        ({"layer_types": ["linear_attention"] * 4}, "'layer_types' names 'linear_attention'"),
        ({"layer_types": ["full_attention"] * 3}, "'layer_types' has 3 entries; expected 4"),
        ({"layer_types": "full_attention"}, "'layer_types' is full_attention; expected a list"),
        ({"layer_types": [{"a": 1}] * 4}, "'layer_types' is .* expected a list of names"),
        ({"num_experts": 4, "num_experts_per_tok": 2, "mlp_only_layers": 3}, "a list of whole"),
        ({"num_experts": 4}, "'num_experts_per_tok' or 'experts_per_token'"),
        ({"num_experts": 4, "num_experts_per_tok": 8}, "n_active_experts is 8"),
        ({"kv_lora_rank": 8}, "'qk_nope_head_dim' is missing"),
        ({"torch_dtype": "int4"}, "the dtype is 'int4'; expected one of bfloat16"),
        ({"quantization_config": []}, r"quantization_config: it is \[\]"),
        ({"quantization_config": {"quant_method": "fp9"}}, "did you mean 'fp8'"),
        ({"quantization_config": {"quant_method": "awq"}}, "'bits' is None"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": "x"}},
         "'group_size' is 'x'"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}},
         "'config_groups.<group>.weights' is missing"),
    ],
)  # fmt: skip
def test_refusals_name_the_key_and_the_file(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(**changed)
    assert str(caught.value).startswith("config.json: ")


def test_storage_alone() -> None:
    notes: list[str] = []
    assert storage({}, where="f", notes=notes)["linear_dtype_bytes"] == 2.0
    assert notes == ["dtype is absent: bfloat16 assumed"]


def test_models_from_files(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8-sig")
    expected = read().model_copy(update={"name": "my-model"})
    assert model_shape(folder) == expected
    assert model_shape(folder / "config.json") == expected
    assert model_shape("my-model", base_dir=tmp_path) == expected
    assert model_shape("my-model/config.json", base_dir=tmp_path) == expected


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"a": 1,\n "b": }', r"line 2: not valid JSON: expecting value at column 7"),
        ("[]", "the top level is a list; expected an object"),
        ("", "line 1: not valid JSON"),
        ("[" * 100_000, "not JSON that can be read|not valid JSON"),
        ('{"vocab_size": ' + "9" * 5000 + "}", "not JSON that can be read"),
        ("{}", "key 'num_hidden_layers' is missing"),
    ],
)
def test_bad_files_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        model_shape(path, where="scenario.yaml: target.config")
    assert str(caught.value).startswith(f"scenario.yaml: target.config: {path}")


def test_what_is_neither_a_name_nor_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown model 'qwen/qwen3-23b'; did you mean 'Qwen/"):
        model_shape("qwen/qwen3-23b", base_dir=tmp_path)
    with pytest.raises(InputError, match=r"^here: no file .*gone.json; expected the path of a"):
        model_shape("gone.json", base_dir=tmp_path, where="here")
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match=r"latin.json: can't be read"):
        model_shape("latin.json", base_dir=tmp_path)


def test_published_configs_give_the_built_in_shapes() -> None:
    folder = Path(__file__).parents[2].parent / "shared" / "data" / "configs"
    files = sorted(folder.glob("*_config.json"))
    if not files:
        pytest.skip(f"no published configs in {folder}")
    seen = []
    for path in files:
        name = path.name.removesuffix("_config.json").replace("--", "/")
        if name.startswith("google/gemma-4"):
            with pytest.raises(
                InputError, match="'global_head_dim' says that the model has layers"
            ):
                model_shape(path)
            continue
        shape = model_shape(path).model_copy(update={"name": name})
        built_in = model_shape(name)
        # Notes may add words about the table itself.
        assert shape.model_copy(update={"notes": ()}) == built_in.model_copy(update={"notes": ()})
        seen.append(name)
    assert len(seen) >= 11
    assert set(seen) <= set(model_names())
