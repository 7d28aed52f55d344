"""The decoder's logits are those of transformers, whole and through the cache."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from model_kit import (  # noqa: E402
    LAYOUTS,
    cached,
    config_of,
    feed,
    full_logits,
    hf_logits,
    hf_model,
    random_decoder,
    text,
)

from realrun.models.config import ModelConfig  # noqa: E402
from realrun.models.decoder import CausalAttention, Decoder  # noqa: E402
from realrun.models.load import load_model, save_model  # noqa: E402


def assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_logits_equal_transformers(layout: str, tmp_path: Path) -> None:
    model = hf_model(layout)
    model.save_pretrained(tmp_path)
    loaded = load_model(str(tmp_path))
    assert loaded.n_parameters == sum(p.numel() for p in model.parameters())
    assert loaded.decoder.config == config_of(layout)
    tokens = text(1, 100)
    expected = hf_logits(model, tokens)
    assert float(expected.std()) > 0.1  # else anything would pass
    assert_close(full_logits(loaded.decoder, tokens), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_cache_changes_nothing(layout: str) -> None:
    decoder = random_decoder(config_of(layout))
    texts = {slot: text(slot, 40) for slot in (5, 0, 3)}
    whole = {slot: full_logits(decoder, tokens) for slot, tokens in texts.items()}
    forward = cached(decoder)
    # Prefill of ragged rows in slots that no slice picks, then steps of all kinds.
    for spans in (
        [(5, 0, 7), (0, 0, 3), (3, 0, 20)],
        [(5, 7, 1), (0, 3, 1), (3, 20, 1)],  # a step of plain decoding
        [(5, 8, 4), (3, 21, 4)],  # uniform, one row left out
        [(3, 25, 2), (0, 4, 30)],  # another order; one row's prefill beside a short step
        [(0, 34, 6)],
        [(3, 27, 1), (5, 12, 5)],
    ):
        for (slot, start, n), logits in zip(spans, feed(forward, texts, spans), strict=True):
            assert_close(logits, whole[slot][start : start + n])


@pytest.mark.parametrize("slots", [[0, 1, 2], [1, 3, 5], [5, 3, 1], [0, 1, 3], [6]], ids=str)
@pytest.mark.parametrize("lengths", [[3, 3, 3], [1, 4, 2]], ids=["uniform", "ragged"])
def test_any_choice_of_slots(slots: list[int], lengths: list[int]) -> None:
    decoder = random_decoder(config_of("qwen2"))
    texts = {slot: text(slot, 16) for slot in slots}
    forward = cached(decoder)
    feed(forward, texts, [(slot, 0, 5 + i) for i, slot in enumerate(slots)])
    spans = [(slot, 5 + i, n) for i, (slot, n) in enumerate(zip(slots, lengths, strict=False))]
    for (slot, start, n), logits in zip(spans, feed(forward, texts, spans), strict=True):
        assert_close(logits, full_logits(decoder, texts[slot])[start : start + n])


def test_rolling_back_is_moving_the_pointer() -> None:
    decoder = random_decoder(config_of("llama-grouped"))
    right = {1: text(1, 30), 4: text(4, 30)}
    wrong = {1: text(11, 30), 4: text(14, 30)}
    forward = cached(decoder)
    feed(forward, right, [(1, 0, 10), (4, 0, 6)])
    feed(forward, wrong, [(1, 10, 8), (4, 6, 5)])
    # Back by 8 and by 3: the two rows accept different numbers of tokens.
    feed(forward, wrong, [(4, 6, 2)])
    mixed = {1: right[1], 4: right[4][:6] + wrong[4][6:8] + right[4][8:]}
    spans = [(1, 10, 4), (4, 8, 7)]
    for (slot, start, n), logits in zip(spans, feed(forward, mixed, spans), strict=True):
        assert_close(logits, full_logits(decoder, mixed[slot])[start : start + n])


def test_only_the_last_logits_of_each_row() -> None:
    import numpy as np
    from model_kit import rows

    decoder = random_decoder(config_of("llama-tied"))
    tokens = np.array(text(3, 9), dtype=np.int64)
    every = cached(decoder)(rows((0, 0, 4), (2, 0, 5)), tokens)
    last = cached(decoder)(rows((0, 0, 4), (2, 0, 5)), tokens, last_only=True)
    assert_close(last, every[[3, 8]])


def test_rows_of_a_batch_do_not_see_each_other() -> None:
    decoder = random_decoder(config_of("llama-grouped"))
    a, b = text(1, 12), text(2, 12)
    groups = decoder.config.n_heads // decoder.config.n_kv_heads
    with torch.inference_mode():
        attend = CausalAttention(2, 12, groups, torch.device("cpu"))
        both = decoder(torch.tensor(a + b), attend)
    assert_close(both[:12], full_logits(decoder, a))
    assert_close(both[12:], full_logits(decoder, b))


@pytest.mark.parametrize("layout", ["llama-llama3", "qwen2-tied", "qwen3"])
def test_an_early_exit_is_the_model_of_the_first_layers(layout: str, tmp_path: Path) -> None:
    decoder = random_decoder(config_of(layout))
    save_model(decoder, tmp_path / "model", torch.float32, {})
    early = load_model(str(tmp_path / "model"), n_layers=2)
    assert early.name == "model[:2]"
    assert early.n_parameters < decoder.config.n_parameters
    shallow = Decoder(dataclasses.replace(decoder.config, n_layers=2)).eval()
    state = {k: v for k, v in decoder.state_dict().items() if not k.startswith("layers.2.")}
    shallow.load_state_dict(state)
    shallow.set_positions(64)
    tokens = text(1, 20)
    assert torch.equal(full_logits(early.decoder, tokens), full_logits(shallow, tokens))
    assert not torch.allclose(full_logits(early.decoder, tokens), full_logits(decoder, tokens))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_transformers_loads_what_we_save(layout: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    decoder = random_decoder(config_of(layout))
    save_model(decoder, tmp_path / "model", torch.float32, {"made": "by a test"})
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval()
    tokens = text(2, 50)
    assert_close(full_logits(decoder, tokens), hf_logits(theirs, tokens))
    again = load_model(str(tmp_path / "model")).decoder
    assert again.config == decoder.config
    assert torch.equal(full_logits(again, tokens), full_logits(decoder, tokens))


def test_weights_are_counted() -> None:
    for layout in LAYOUTS:
        config: ModelConfig = config_of(layout)
        held = {id(p): p.numel() for p in Decoder(config).parameters()}
        assert config.n_parameters == sum(held.values()), layout
