"""Static passes: the code that a CUDA graph captures, on whatever device there is."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from realrun.models.cache import KvCache, Rows, by_slot, token_places  # noqa: E402
from realrun.models.config import ModelConfig  # noqa: E402
from realrun.models.decoder import Decoder  # noqa: E402
from realrun.models.forward import EagerForward  # noqa: E402
from realrun.models.graphs import BUCKET, GraphedForward, pass_key  # noqa: E402
from realrun.target import TargetRunner  # noqa: E402
from realrun.train.init import initialise  # noqa: E402
from realrun.workers import TargetWork  # noqa: E402

CONFIG = ModelConfig.from_hf(
    {
        "model_type": "qwen3",
        "vocab_size": 61,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
    }
)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA GPU"))]  # fmt: skip


def forwards(device: str) -> tuple[EagerForward, GraphedForward]:
    decoder = Decoder(CONFIG)
    initialise(decoder, 3)
    decoder.requires_grad_(False).eval().to(device)
    decoder.set_positions(600)
    like = decoder.norm
    caches = [KvCache(CONFIG, 6, 600, like.device, like.dtype) for _ in range(2)]
    return EagerForward(decoder, caches[0]), GraphedForward(decoder, caches[1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "slots", [[0, 1, 2], [1, 3, 5], [4], [0, 3, 4]], ids=["run", "every-other", "one", "irregular"]
)
def test_static_passes_give_the_logits_of_eager_ones(device: str, slots: list[int]) -> None:
    eager, graphed = forwards(device)
    rng = np.random.default_rng(0)
    n = len(slots)
    starts = np.zeros(n, dtype=np.int64)
    # A ragged prompt, then passes of three widths, one beyond a bucket, and the first again.
    for lengths in (
        rng.integers(3, 9, n), np.ones(n), np.full(n, 4), np.full(n, BUCKET), np.ones(n),
        np.full(n, 4),
    ):  # fmt: skip
        lengths = lengths.astype(np.int64)
        rows = Rows(np.array(slots), starts, lengths)
        tokens = rng.integers(0, CONFIG.vocab_size, int(lengths.sum()))
        a, b = eager(rows, tokens), graphed(rows, tokens)
        assert torch.allclose(a, b, atol=1e-5)
        starts = starts + lengths
    kept = slice(0, int(starts.max()))
    for mine, theirs in ((eager.cache.keys, graphed.cache.keys),):
        assert torch.allclose(mine[..., kept, :], theirs[..., kept, :], atol=1e-5)


def test_shapes_recur() -> None:
    _, graphed = forwards("cpu")
    one = np.ones(2, dtype=np.int64)
    for start in range(5, 12):
        graphed(Rows(np.arange(2), one * start, one), np.zeros(2, dtype=np.int64))
    assert graphed.n_graphs == 1
    graphed(Rows(np.arange(2), one * BUCKET, one), np.zeros(2, dtype=np.int64))
    graphed(Rows(np.arange(1, 3), one * 5, one), np.zeros(2, dtype=np.int64))
    assert graphed.n_graphs == 3


def test_irregular_batches_and_prompts_get_no_graph() -> None:
    _, graphed = forwards("cpu")
    graphed(
        Rows(np.array([0, 2, 3]), np.zeros(3, np.int64), np.ones(3, np.int64)),
        np.zeros(3, np.int64),
    )
    graphed(Rows(np.arange(2), np.zeros(2, np.int64), np.array([1, 2])), np.zeros(3, np.int64))
    graphed(
        Rows(np.arange(2), np.zeros(2, np.int64), np.full(2, 3)),
        np.zeros(6, np.int64),
        last_only=True,
    )
    assert graphed.n_graphs == 0


def test_a_key_names_the_bucket_and_the_slots() -> None:
    rows = Rows(np.array([1, 3]), np.array([10, BUCKET - 1]), np.array([2, 2]))
    assert pass_key(rows, 2, slice(1, 4, 2), 10_000) == (2, 2, 2 * BUCKET, 1, 2)
    assert pass_key(rows, 2, slice(1, 4, 2), BUCKET + 5) == (2, 2, BUCKET + 5, 1, 2)


def test_rows_are_sorted_by_slot_and_back() -> None:
    lengths, slots = np.array([2, 1, 3]), np.array([5, 2, 4])
    sorting = by_slot(slots)
    assert sorting is not None
    order, back = sorting
    assert slots[order].tolist() == [2, 4, 5]
    assert slots[order][back].tolist() == slots.tolist()
    # Rows aa, b, ccc lie flat as 01 2 345; sorted they are b, ccc, aa.
    assert token_places(lengths, order).tolist() == [2, 3, 4, 5, 0, 1]
    assert by_slot(np.array([1, 3, 4])) is None


@pytest.mark.parametrize("last_only", [False, True])
def test_a_pass_answers_in_the_order_of_its_rows(last_only: bool) -> None:
    eager, _ = forwards("cpu")
    runner = TargetRunner(eager, 0.7)
    slots, lengths = np.array([4, 0, 2]), np.array([3, 1, 2])
    tokens = np.array([7, 8, 9, 20, 30, 31])
    starts = np.zeros(3, dtype=np.int64)
    found = runner.run(TargetWork(slots, starts, lengths, tokens, last_only))
    at = 0
    for i, n in enumerate(lengths.tolist()):
        one = TargetWork(
            slots[i : i + 1], starts[:1], lengths[i : i + 1], tokens[at : at + n], False
        )
        alone = runner.run(one)
        place = slice(i, i + 1) if last_only else slice(at, at + n)
        kept = slice(-1, None) if last_only else slice(None)
        assert found.tokens[place].tolist() == alone.tokens[kept].tolist()
        assert found.probabilities is not None
        assert alone.probabilities is not None
        np.testing.assert_allclose(found.probabilities[place], alone.probabilities[kept], atol=1e-5)
        at += n
