"""Closed-form step times, CUDA-graph padding, jitter factors, KV blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from scipy import stats

from psdsim.errors import InputError
from psdsim.hardware import Gpu, ModelShape, gpu, model_shape
from psdsim.latency import (
    AffineStepTime,
    ConstantStepTime,
    ExponentialStepTime,
    JitterStream,
    Placement,
    RooflineStepTime,
    StepTime,
    StepTimeModel,
    TableStepTime,
    kv_blocks,
)
from psdsim.seeds import Stream

NOWHERE = Placement()
ADAPTER: TypeAdapter[StepTime] = TypeAdapter(StepTimeModel)


def test_affine_by_hand() -> None:
    model = AffineStepTime(base_s=8.0, per_sequence_s=0.5, per_token_s=0.25, per_kv_token_s=0.0625)
    timer = model.bind(NOWHERE)
    assert timer(4, 20, 64) == 8.0 + 2.0 + 5.0 + 4.0
    assert timer.affine == (8.0, 0.5, 0.25, 0.0625)
    assert timer.jitter == "none"
    assert timer.over([1, 4], [1, 20], [0, 64]).tolist() == [8.75, 19.0]
    # Arguments broadcast: two batches (down) by three contexts (across).
    assert timer.over([[2], [4]], [[2], [4]], [0, 16, 32]).tolist() == [
        [9.5, 10.5, 11.5],
        [11.0, 12.0, 13.0],
    ]


@given(
    st.tuples(*[st.floats(0, 1)] * 4), st.integers(1, 512), st.integers(1, 10), st.integers(0, 9999)
)
def test_over_equals_calls_bit_for_bit(
    law: tuple[float, float, float, float], n: int, query: int, context: int
) -> None:
    names = ("base_s", "per_sequence_s", "per_token_s", "per_kv_token_s")
    timer = AffineStepTime(**dict(zip(names, law, strict=True))).bind(NOWHERE)
    shapes = [(m, m * query, m * context) for m in (n, n + 1, 2 * n)]
    assert timer.over(*np.array(shapes).T).tolist() == [timer(*shape) for shape in shapes]
    padded = AffineStepTime(**dict(zip(names, law, strict=True)), cuda_graph_sizes=(8, 64, 256))
    timer = padded.bind(NOWHERE)
    assert timer.over(*np.array(shapes).T).tolist() == [timer(*shape) for shape in shapes]


def test_constant_and_exponential() -> None:
    constant = ConstantStepTime(time_s=0.25).bind(NOWHERE)
    assert (constant(1, 1, 0), constant(99, 400, 10**6)) == (0.25, 0.25)
    assert constant.over([1, 2, 3], [1, 2, 3], 0).tolist() == [0.25] * 3
    assert (constant.affine, constant.jitter) == ((0.25, 0.0, 0.0, 0.0), "none")
    exponential = ExponentialStepTime(mean_s=0.5).bind(NOWHERE)
    assert exponential(3, 9, 27) == 0.5  # the mean; the engine multiplies it by the jitter
    assert (exponential.affine, exponential.jitter) == ((0.5, 0.0, 0.0, 0.0), "exponential")


VALID: dict[str, dict[str, Any]] = {
    "constant": {"time_s": 0.1},
    "affine": {"base_s": 0.1},
    "exponential": {"mean_s": 0.1},
    "table": {"rows": [[1, 1, 0, 0.1]]},
    "roofline": {},
}


@pytest.mark.parametrize("kind", VALID)
def test_kind_chooses_the_model_and_it_survives_a_round_trip(kind: str) -> None:
    model = ADAPTER.validate_python({"kind": kind, **VALID[kind]})
    assert ADAPTER.validate_json(ADAPTER.dump_json(model)) == model
    with pytest.raises(ValidationError, match="frozen"):
        model.cuda_graph_sizes = (1,)  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        ADAPTER.validate_python({"kind": kind, **VALID[kind], "jitter": 1.0})


@pytest.mark.parametrize(
    "kind, changed, message",
    [
        ("constant", {"time_s": -1.0}, "greater than or equal to 0"),
        ("constant", {"time_s": True}, "truth value"),
        ("constant", {"time_s": float("inf")}, "finite"),
        ("affine", {"base_s": None}, "valid number"),
        ("affine", {"per_token_s": -1e-9}, "greater than or equal to 0"),
        ("roofline", {"bandwidth_efficiency": 1.1}, "less than or equal to 1"),
        ("roofline", {"compute_efficiency": 0.0}, "greater than 0"),
        ("roofline", {"kv_dtype_bytes": 0.0}, "greater than 0"),
        ("affine", {"cuda_graph_sizes": []}, "ascending"),
        ("affine", {"cuda_graph_sizes": [4, 2]}, "ascending"),
        ("affine", {"cuda_graph_sizes": [2, 2]}, "ascending"),
        ("affine", {"cuda_graph_sizes": [0, 2]}, "greater than or equal to 1"),
        ("affine", {"cuda_graph_sizes": [1, True]}, "truth value"),
        # One time whatever is in the pass: padding would do nothing.
        ("constant", {"cuda_graph_sizes": [1, 2]}, "cuda_graph_sizes has no effect"),
        ("exponential", {"cuda_graph_sizes": [1, 2]}, "cuda_graph_sizes has no effect"),
    ],
)
def test_bad_values_are_refused(kind: str, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ADAPTER.validate_python({"kind": kind, **VALID[kind], **changed})


@pytest.mark.parametrize(
    "model", [ConstantStepTime, AffineStepTime, ExponentialStepTime]
)  # fmt: skip
def test_the_time_itself_has_no_default(model: type[StepTime]) -> None:
    with pytest.raises(ValidationError, match="Field required"):
        model()


# CUDA graphs.


def test_decoding_is_a_staircase_over_the_captured_sizes() -> None:
    model = AffineStepTime(
        base_s=1.0,
        per_sequence_s=4.0,
        per_token_s=2.0,
        per_kv_token_s=0.5,
        cuda_graph_sizes=(1, 2, 4, 8),
    )
    timer = model.bind(NOWHERE)
    # A padded token of a decoding pass is a padded sequence; the cache is not padded.
    steps = [timer(n, n, 10) - 6.0 for n in range(1, 11)]
    assert steps == [6.0 * n for n in (1, 2, 4, 4, 8, 8, 8, 8, 9, 10)]
    assert timer.affine is None


def test_a_verifying_pass_pads_its_tokens_only() -> None:
    bare = AffineStepTime(base_s=1.0, per_sequence_s=4.0, per_token_s=2.0)
    padded = bare.model_copy(update={"cuda_graph_sizes": (8, 16)}).bind(NOWHERE)
    assert padded(2, 10, 0) == bare.bind(NOWHERE)(2, 16, 0) == 1.0 + 8.0 + 32.0
    assert padded(2, 16, 0) == 41.0
    assert padded(2, 17, 0) == bare.bind(NOWHERE)(2, 17, 0)  # above the largest: as it is


def test_padding_keeps_the_notes_of_the_model() -> None:
    table = TableStepTime(rows=((1, 1, 0, 1.0), (3, 1, 0, 2.0)), cuda_graph_sizes=(4,))
    timer = table.bind(NOWHERE)
    assert timer(3, 3, 0) == 2.5
    assert list(timer.notes) == ["n_seqs 4 lies outside the table (1 to 3): extended linearly"]


# Jitter.


def draw(stream: JitterStream, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([stream.next() for _ in range(n)])


@pytest.mark.parametrize("cv", [0.05, 0.3, 1.0])
def test_lognormal_jitter_has_mean_one_and_the_stated_cv(cv: float) -> None:
    x = draw(JitterStream(cv, "lognormal", 3, 0, Stream.TARGET_JITTER), 100_000)
    sigma = np.sqrt(np.log(1.0 + cv**2))
    assert stats.kstest(np.log(x), stats.norm(-(sigma**2) / 2, sigma).cdf).pvalue > 1e-3
    assert abs(x.mean() - 1.0) < 4.5 * cv / np.sqrt(x.size)
    # The squared deviation of a lognormal has a finite fourth moment; its spread is sampled.
    squares = (x - 1.0) ** 2
    assert abs(squares.mean() - cv**2) < 4.5 * squares.std() / np.sqrt(x.size)


def test_exponential_jitter() -> None:
    x = draw(JitterStream(1.0, "exponential", 3, 0, Stream.TARGET_JITTER), 100_000)
    assert stats.kstest(x, stats.expon.cdf).pvalue > 1e-3


@pytest.mark.parametrize("law", ["lognormal", "exponential"])
def test_without_jitter_nothing_is_drawn(law: Any) -> None:
    stream = JitterStream(0.0, law, 0, 0, Stream.TARGET_JITTER)
    assert not stream.active
    assert [stream.next() for _ in range(3)] == [1.0] * 3


def test_streams_are_keyed() -> None:
    def first(*key: Any, replica: int = 0, n: int = 5000) -> list[float]:
        stream = JitterStream(0.5, "lognormal", *key, replica=replica)
        return [stream.next() for _ in range(n)]

    base = first(1, 2, Stream.TARGET_JITTER)
    assert base == first(1, 2, Stream.TARGET_JITTER)
    assert len(set(base)) == 5000  # the second block is not the first again
    others = [
        first(2, 2, Stream.TARGET_JITTER),
        first(1, 3, Stream.TARGET_JITTER),
        first(1, 2, Stream.DRAFT_JITTER),
        first(1, 2, Stream.TARGET_JITTER, replica=1),
    ]
    assert all(not set(base) & set(other) for other in others)


@pytest.mark.parametrize("cv", [-0.1, float("nan"), float("inf"), True])
def test_a_cv_that_is_none_is_refused(cv: float) -> None:
    with pytest.raises(InputError, match="the CV of a jitter is"):
        JitterStream(cv, "lognormal", 0, 0, Stream.TARGET_JITTER)


def test_exponential_has_only_one_cv() -> None:
    with pytest.raises(InputError, match=r"CV of an exponential jitter is 0.5; expected 1"):
        JitterStream(0.5, "exponential", 0, 0, Stream.TARGET_JITTER)


# KV blocks.

SHAPE = ModelShape(
    name="toy", n_layers=2, hidden=8, n_heads=4, n_kv_heads=2, head_dim=4, intermediate=16, vocab=10
)
CARD = Gpu(
    name="card", memory_bytes=20_000, bandwidth_bytes_per_s=1e9, bf16_flops=1e12,
    link_bytes_per_s=1e9, link_latency_s=0.0, source="made up",
)  # fmt: skip


def test_kv_blocks_by_hand() -> None:
    # Layer: attention 2 x 8 x 16 (Q, O) + 2 x 8 x 8 (K, V) = 384; three 8 x 16 matrices = 384;
    # two norms of 8 = 16. Two layers 1568, two embeddings 160, last norm 8: 1736 weights, 3472 B.
    assert SHAPE.weight_bytes == 3472.0
    # A token: 2 layers x (K and V) x 2 heads x 4 elements x 2 B = 64 B; a block of 16: 1024 B.
    room = 20_000 * 0.9
    assert kv_blocks(SHAPE, CARD, 1) == int((room - 3472) // 1024) == 14
    assert kv_blocks(SHAPE, CARD, 1, block_size=8) == 28
    assert kv_blocks(SHAPE, CARD, 1, kv_dtype_bytes=1.0) == 28
    assert kv_blocks(SHAPE, CARD, 1, gpu_memory_utilization=0.5) == ((10_000 - 3472) // 1024)
    # Two GPUs hold half of the weights and one of two KV heads each.
    assert kv_blocks(SHAPE, CARD, 2) == int((room - 1736) // 512) == 31
    # Four hold a quarter of the weights, and a copy of a head each: no smaller than with two.
    assert kv_blocks(SHAPE, CARD, 4) == int((room - 868) // 512) == 33


def test_a_drafter_on_the_same_gpus_takes_weights_and_cache() -> None:
    both = kv_blocks(SHAPE, CARD, 1, other=[SHAPE])
    assert both == ((18_000 - 2 * 3472) // 2048) == 5
    assert kv_blocks(SHAPE, CARD, 1, other=[SHAPE, SHAPE]) == ((18_000 - 3 * 3472) // 3072)


def test_latent_cache_is_not_split() -> None:
    h200 = gpu("H200-SXM")
    v3 = model_shape("DeepSeek-V3")
    per_token = 61 * (512 + 64) * 2.0  # one latent vector a layer, on every GPU
    for n_gpus in (8, 16):
        room = 0.9 * h200.memory_bytes - v3.weight_bytes / n_gpus
        assert kv_blocks(v3, h200, n_gpus) == int(room // (16 * per_token))


def test_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match=r"weights of toy take .* on each of 1 x card"):
        kv_blocks(SHAPE, CARD.model_copy(update={"memory_bytes": 3000}), 1)
    with pytest.raises(InputError, match="no room for a KV block"):
        kv_blocks(SHAPE, CARD.model_copy(update={"memory_bytes": 4500}), 1)
    with pytest.raises(InputError, match="Qwen/Qwen3-32B and Qwen/Qwen3-8B take"):
        kv_blocks(model_shape("Qwen3-32B"), gpu("H100-SXM"), 1, other=[model_shape("Qwen3-8B")])


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"block_size": 0}, "block_size is 0"),
        ({"block_size": 16.0}, "block_size is 16.0"),
        ({"n_gpus": 0}, "n_gpus is 0"),
        ({"n_gpus": True}, "n_gpus is True"),
        ({"gpu_memory_utilization": 0.0}, "gpu_memory_utilization is 0.0"),
        ({"gpu_memory_utilization": 90.0}, "a share above 0 and at most 1"),
        ({"gpu_memory_utilization": float("nan")}, "gpu_memory_utilization is nan"),
        ({"kv_dtype_bytes": -1.0}, "kv_dtype_bytes is -1.0"),
    ],
)
def test_kv_blocks_refuses_nonsense(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        kv_blocks(**{"shape": SHAPE, "gpu": CARD, "n_gpus": 1, **changed})


def test_a_roofline_says_what_it_lacks() -> None:
    for placement in (NOWHERE, Placement(shape=SHAPE), Placement(gpu=CARD)):
        with pytest.raises(InputError, match="needs a model and a GPU"):
            RooflineStepTime().bind(placement)
