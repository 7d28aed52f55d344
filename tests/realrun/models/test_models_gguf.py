"""GGUF files: the rows llama.cpp permutes, quantised weights, metadata, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")
pytest.importorskip("tokenizers")

from model_kit import (  # noqa: E402
    LAYOUTS,
    config_of,
    full_logits,
    gguf_tensors,
    permute,
    random_decoder,
    text,
    write_gguf,
)

from psdsim.errors import InputError  # noqa: E402
from realrun.models import load  # noqa: E402
from realrun.models.config import ModelConfig  # noqa: E402
from realrun.models.gguf_file import GgufFile, unpermute  # noqa: E402
from realrun.models.load import load_model  # noqa: E402
from realrun.models.rope import frequencies  # noqa: E402

PLAIN = [name for name in LAYOUTS if name not in ("llama-linear", "llama-llama3")]


@pytest.mark.parametrize("layout", PLAIN)
def test_a_gguf_file_holds_the_same_model(layout: str, tmp_path: Path) -> None:
    decoder = random_decoder(config_of(layout))
    path = write_gguf(tmp_path / "tiny.gguf", decoder)
    loaded = load_model(str(path))
    assert loaded.decoder.config == decoder.config == load.config_of(str(path))
    tokens = text(1, 40)
    assert torch.equal(full_logits(loaded.decoder, tokens), full_logits(decoder, tokens))
    assert (loaded.name, loaded.source) == ("tiny", str(path))


def test_transformers_undoes_the_permutation_alike() -> None:
    theirs_too = pytest.importorskip("transformers.modeling_gguf_pytorch_utils")
    processor = theirs_too.LlamaTensorProcessor()
    for n_heads, n_kv_heads in ((4, 4), (4, 2), (6, 1)):
        rows = np.arange(n_kv_heads * 8 * 3).reshape(n_kv_heads * 8, 3)
        theirs = processor._reverse_permute_weights(rows, n_heads, n_kv_heads)
        assert np.array_equal(unpermute(torch.from_numpy(rows), n_kv_heads).numpy(), theirs)
        assert np.array_equal(permute(theirs, n_kv_heads), rows)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_1", "Q4_0", "Q5_0"])
def test_quantised_weights(kind: str, tmp_path: Path) -> None:
    quantisation = gguf.GGMLQuantizationType[kind]
    decoder = random_decoder(config_of("llama-grouped"))
    path = write_gguf(tmp_path / "tiny.gguf", decoder, quantise=lambda *_: quantisation)
    q = load_model(str(path)).decoder.state_dict()["layers.1.qkv.weight"]
    # The writer rounds permuted rows in blocks along a row, so rows round alike wherever they are.
    given = decoder.state_dict()["layers.1.qkv.weight"].numpy()
    rounded = gguf.quants.dequantize(gguf.quants.quantize(given, quantisation), quantisation)
    assert np.array_equal(q.numpy(), rounded)
    assert not np.array_equal(rounded, given)


def test_weights_arrive_in_the_precision_asked_for(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", random_decoder(config_of("qwen2")))
    decoder = load_model(str(path), dtype=torch.bfloat16).decoder
    assert {p.dtype for p in decoder.parameters()} == {torch.bfloat16}
    assert not any(p.requires_grad for p in decoder.parameters())
    assert not decoder.training


def test_linear_scaling(tmp_path: Path) -> None:
    decoder = random_decoder(config_of("llama-linear"))

    def extra(writer: Any) -> None:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(4.0)

    assert GgufFile(write_gguf(tmp_path / "a.gguf", decoder, extra=extra)).config == decoder.config


def llama31_factors(config: ModelConfig, **changes: float) -> np.ndarray:
    """Return the factors that convert_hf_to_gguf.py writes for a Llama 3.1 (32-bit loop)."""
    p = {"factor": 8.0, "low": 1.0, "high": 4.0, "original": 8192, **changes}
    out = []
    for i in range(0, config.head_dim, 2):
        wavelength = 2 * np.pi * config.rope_theta ** (i / config.head_dim)
        if wavelength < p["original"] / p["high"]:
            out.append(1.0)
        elif wavelength > p["original"] / p["low"]:
            out.append(p["factor"])
        else:
            smooth = (p["original"] / wavelength - p["low"]) / (p["high"] - p["low"])
            out.append(1 / ((1 - smooth) / p["factor"] + smooth))
    return np.array(out)


def test_llama3_scaling_is_recognised_by_its_factors(tmp_path: Path) -> None:
    plain = config_of("llama-wide-heads", rope_parameters={"rope_theta": 500000.0})
    decoder, factors = random_decoder(plain), llama31_factors(plain)
    assert 1 < len(set(factors)) < len(factors)
    config = GgufFile(write_gguf(tmp_path / "a.gguf", decoder, rope_factors=factors)).config
    assert dict(config.rope_scaling or ()) == {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192.0,
    }
    assert np.allclose(frequencies(plain) / frequencies(config), factors, rtol=1e-5)
    other = llama31_factors(plain, high=8.0)
    with pytest.raises(InputError, match=r"'rope_freqs.weight' is not the scaling of Llama 3.1"):
        GgufFile(write_gguf(tmp_path / "b.gguf", decoder, rope_factors=other))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return write_gguf(path, random_decoder(config_of("llama-grouped"))).read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_off(share: float, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(
        InputError, match=r"cut\.gguf: is (cut off or damaged|no GGUF file); expected"
    ):
        load_model(str(path))


def test_a_file_cut_anywhere_is_refused(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    for n in np.random.default_rng(0).integers(0, len(whole) - 40, 60).tolist():
        path.write_bytes(whole[:n])
        with pytest.raises(InputError):
            load_model(str(path))


def test_another_kind_of_file(tmp_path: Path) -> None:
    path = tmp_path / "text.gguf"
    path.write_text("not a model at all " * 100, encoding="utf-8")
    with pytest.raises(InputError, match="is no GGUF file"):
        load.config_of(str(path))


def refused(tmp_path: Path, match: str, layout: str = "llama-grouped", **options: Any) -> None:
    path = write_gguf(tmp_path / "odd.gguf", random_decoder(config_of(layout)), **options)
    with pytest.raises(InputError, match=match) as caught:
        load_model(str(path))
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    "extra,match",
    [
        (lambda w: w.add_expert_count(8), "'llama.expert_count' asks for mixture of experts"),
        (lambda w: w.add_sliding_window(64), "'llama.attention.sliding_window' asks for sliding"),
        (lambda w: w.add_rope_scaling_type(gguf.RopeScalingType.YARN), "rope scaling is 'yarn'"),
        (lambda w: w.add_rope_dimension_count(4), "rotates 4 of 8 dimensions"),
        (lambda w: w.add_uint16("split.count", 3), "is one of 3 parts"),
        (
            lambda w: w.add_tensor("blk.0.attn_q.bias", np.zeros(32, np.float32)),
            "the tensor 'blk.0.attn_q.bias' has no place",
        ),
        (
            lambda w: w.add_tensor("blk.7.attn_q.weight", np.zeros((32, 32), np.float32)),
            "the tensor 'blk.7.attn_q.weight' has no place",
        ),
        (lambda w: w.add_tensor("mtp", np.zeros(3, np.float32)), "the tensor 'mtp' has no place"),
    ],
)
def test_models_the_decoder_cannot_run(extra: Any, match: str, tmp_path: Path) -> None:
    refused(tmp_path, match, extra=extra)


def test_another_architecture(tmp_path: Path) -> None:
    refused(tmp_path, r"the architecture is 'gemma3'; expected one of llama", architecture="gemma3")


def test_a_missing_tensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import model_kit

    def without(decoder: Any) -> dict[str, np.ndarray]:
        tensors = gguf_tensors(decoder)
        del tensors["blk.2.ffn_up.weight"]
        return tensors

    monkeypatch.setattr(model_kit, "gguf_tensors", without)
    refused(tmp_path, "the tensor 'model.layers.2.mlp.up_proj.weight' is missing")


def test_a_quantisation_nobody_decodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(gguf.quants, "dequantize", refuse)
    refused(tmp_path, "the tensor 'token_embd.weight' is in F32; expected a quantisation")


def test_another_tokenizer(tmp_path: Path) -> None:
    refused(tmp_path, "'gpt2' with pre-tokenizer 'deepseek-llm'; expected", pre="deepseek-llm")


def test_gguf_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", random_decoder(config_of("qwen2")))
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(InputError, match=r"pip install 'psdsim\[realrun\]'"):
        load_model(str(path))
