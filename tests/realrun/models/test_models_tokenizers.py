"""Tokenizers: bytes, BPE from GGUF metadata, tokenizer.json; equal vocabularies are recognised."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from model_kit import byte_vocabulary

from psdsim.errors import InputError
from realrun.models.tokenizer import ByteTokenizer, from_folder, from_gguf


@given(st.text())
def test_bytes_come_back(text: str) -> None:
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode(text)
    assert ids[0] == 0
    assert all(0 < i < 256 for i in ids[1:])
    lone = any(0xD800 <= ord(c) < 0xE000 for c in text)
    if not lone:
        assert tokenizer.decode(ids) == text.replace("\0", "")


def test_bytes_that_are_no_text() -> None:
    tokenizer = ByteTokenizer(1000)
    assert tokenizer.decode([0, 0xC3, 65, 0, 66, 999]) == "\ufffdAB\ufffd"
    assert tokenizer.vocab_size == 1000
    assert tokenizer.eos_id is None


def test_fingerprints_tell_vocabularies_apart() -> None:
    assert ByteTokenizer().fingerprint == ByteTokenizer().fingerprint
    assert ByteTokenizer().fingerprint != ByteTokenizer(257).fingerprint


def metadata(**changes: Any) -> dict[str, Any]:
    tokens, merges = byte_vocabulary()
    mine: dict[str, Any] = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": tokens,
        "token_type": [3, 3, 3] + [1] * (len(tokens) - 3),
        "merges": [" ".join(pair) for pair in merges],
        "eos_token_id": 2,
        **changes,
    }
    return {f"tokenizer.ggml.{k}": v for k, v in mine.items() if v is not None}


@pytest.fixture(autouse=True)
def _library(request: pytest.FixtureRequest) -> None:
    if "byte" not in request.node.name and "fingerprints" not in request.node.name:
        pytest.importorskip("tokenizers")


def words(tokenizer: Any, text: str) -> list[str]:
    return [tokenizer._inner.id_to_token(i) for i in tokenizer.encode(text)]


@pytest.mark.parametrize(
    "pre,expected",
    [
        ("smollm", ["1", "2", "3"]),  # digits stand alone
        ("gpt-2", ["12", "3"]),
        ("qwen2", ["1", "2", "3"]),
        ("llama-bpe", ["<|endoftext|>", "12", "3"]),
    ],
)
def test_each_pre_tokenizer_splits_in_its_own_way(pre: str, expected: list[str]) -> None:
    tokenizer = from_gguf(metadata(pre=pre, bos_token_id=0), "a.gguf")
    assert words(tokenizer, "123") == expected
    text = "the thin12 one,\n in the end"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_tokens() -> None:
    tokenizer = from_gguf(metadata(), "a.gguf")
    assert tokenizer.encode("<|im_start|>the<|im_end|>") == [1, 100, 2]
    assert tokenizer.decode([1, 100, 2]) == "the"
    assert tokenizer.eos_id == 2
    prompt = tokenizer.chat("Hi")
    assert prompt.endswith("<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert prompt.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")


def test_a_start_token_goes_in_front_where_the_file_says_so() -> None:
    with_start = from_gguf(metadata(bos_token_id=0, add_bos_token=True), "a.gguf")
    assert with_start.encode("the") == [0, 100]
    assert from_gguf(metadata(bos_token_id=0), "a.gguf").encode("the") == [100]


def test_padding_does_not_change_the_fingerprint() -> None:
    tokens, _ = byte_vocabulary()
    plain = from_gguf(metadata(), "a.gguf")
    types = [3, 3, 3] + [1] * (len(tokens) - 3)
    padded = from_gguf(metadata(tokens=[*tokens, "[PAD0]"], token_type=[*types, 5]), "padded.gguf")
    more = from_gguf(metadata(tokens=[*tokens, "xx"], token_type=[*types, 1]), "more.gguf")
    assert padded.fingerprint == plain.fingerprint != more.fingerprint
    assert padded.vocab_size == plain.vocab_size == len(tokens)


@pytest.mark.parametrize(
    "changes,match",
    [
        ({"model": "llama"}, "the tokenizer is 'llama' with pre-tokenizer 'smollm'"),
        ({"pre": None}, "pre-tokenizer None"),
        ({"tokens": None}, "'tokenizer.ggml.tokens' is missing"),
        ({"merges": None}, "'tokenizer.ggml.merges' is missing"),
        ({"merges": ["q q"]}, "merges and tokens do not fit"),
    ],
)
def test_gguf_tokenizers_that_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=f"^a.gguf: .*{match}"):
        from_gguf(metadata(**changes), "a.gguf")


def test_a_folder_and_a_gguf_file_of_one_model_match(tmp_path: Path) -> None:
    from_file = from_gguf(metadata(), "a.gguf")
    from_file._inner.save(str(tmp_path / "tokenizer.json"))
    in_folder = from_folder(tmp_path, {"eos_token_id": [2, 0]})
    assert in_folder.fingerprint == from_file.fingerprint
    assert in_folder.eos_id == 2
    assert in_folder.encode("in the end") == from_file.encode("in the end")
    config = tmp_path / "tokenizer_config.json"
    for eos in ("<|endoftext|>", {"content": "<|endoftext|>"}):
        config.write_text(json.dumps({"eos_token": eos}), encoding="utf-8")
        assert from_folder(tmp_path, {"eos_token_id": 2}).eos_id == 0
    config.write_text("{}", encoding="utf-8")
    assert from_folder(tmp_path, {}).eos_id is None
    config.write_text("[", encoding="utf-8")
    with pytest.raises(InputError, match=r"tokenizer_config\.json: can't be read"):
        from_folder(tmp_path, {})


def test_a_damaged_tokenizer_json(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"tokenizer\.json: can't be read; expected"):
        from_folder(tmp_path, {})


def test_no_chat_without_its_tokens() -> None:
    tokens, _ = byte_vocabulary()
    other = [*(f"<{i}>" for i in range(3)), *tokens[3:]]
    with pytest.raises(InputError, match=r"no '<\|im_start\|>'; expected a ChatML model"):
        from_gguf(metadata(tokens=other), "a.gguf").chat("Hi")


def test_the_library_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(InputError, match=r"^a\.gguf: .*pip install 'psdsim\[hf\]'"):
        from_gguf(metadata(), "a.gguf")
