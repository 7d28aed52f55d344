"""The roofline by hand: bytes, operations, all-reduces, expert coverage."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psdsim.hardware import Gpu, Mla, ModelShape, expert_coverage, gpu, model_shape
from psdsim.latency import Placement, RooflineStepTime
from psdsim.latency.work import PassWork

DENSE = ModelShape(
    name="dense", n_layers=2, hidden=8, n_heads=4, n_kv_heads=2, head_dim=4, intermediate=16,
    vocab=10,
)  # fmt: skip
# Per layer: Q, O 2 x 8 x 16 = 256; K, V 2 x 8 x 8 = 128; feed-forward 3 x 8 x 16 = 384; norms 16.
DENSE_MATRICES = 2 * (256 + 128 + 384) + 80  # and the output projection, 8 x 10
DENSE_READ = DENSE_MATRICES + 2 * 16 + 8  # and norms; the input embedding is looked up by row
CARD = Gpu(
    name="card", memory_bytes=10**9, bandwidth_bytes_per_s=1e6, bf16_flops=1e9, fp8_flops=2e9,
    link_bytes_per_s=1e5, link_latency_s=0.5, source="made up",
)  # fmt: skip
IDEAL = RooflineStepTime(
    bandwidth_efficiency=1.0, compute_efficiency=1.0, link_efficiency=1.0, kv_dtype_bytes=2.0
)


def test_memory_bound_pass_by_hand() -> None:
    # KV of a token: 2 layers x (K and V) x 2 heads x 4 elements x 2 B = 64 B.
    expected = (2 * DENSE_READ + 64 * 300) / 1e6
    assert IDEAL.bind(Placement(DENSE, CARD))(3, 3, 300) == pytest.approx(expected, rel=1e-12)
    half = IDEAL.model_copy(update={"bandwidth_efficiency": 0.5, "kv_dtype_bytes": 1.0})
    expected = (2 * DENSE_READ + 32 * 300) / 0.5e6
    assert half.bind(Placement(DENSE, CARD))(3, 3, 300) == pytest.approx(expected, rel=1e-12)


def test_compute_bound_pass_by_hand() -> None:
    # 2 operations a weight and token; attention: 4 x 4 heads x 4 elements a query-key pair and
    # layer; of 100 new tokens a sequence, one sees the 50 cached and half of the new on average.
    flops = 2 * DENSE_MATRICES * 200 + 2 * 64 * 200 * (50 + 50)
    assert PassWork(DENSE).operations(2, 200, 100) == flops
    slow = CARD.model_copy(update={"bf16_flops": 1e3})
    assert IDEAL.bind(Placement(DENSE, slow))(2, 200, 100) == pytest.approx(flops / 1e3, rel=1e-12)
    half = IDEAL.model_copy(update={"compute_efficiency": 0.25})
    assert half.bind(Placement(DENSE, slow))(2, 200, 100) == pytest.approx(flops / 250, rel=1e-12)


def test_pass_is_the_slower_of_both_and_fixed_times_come_on_top() -> None:
    model = IDEAL.model_copy(update={"launch_s": 7.0, "per_layer_s": 2.0})
    n = np.arange(1, 3000, 50)
    memory = 2 * DENSE_READ / 1e6
    for card, tokens in product((CARD, CARD.model_copy(update={"bf16_flops": 1e6})), n):
        compute = PassWork(DENSE).operations(int(tokens), int(tokens), 0) / card.bf16_flops
        time_s = model.bind(Placement(DENSE, card))(int(tokens), int(tokens), 0)
        assert time_s == pytest.approx(11.0 + max(memory, compute), rel=1e-12)


def test_tensor_parallelism_by_hand() -> None:
    # Two all-reduces in each of 2 layers; a ring moves 2 (n - 1) / n of 3 tokens x 8 x 2 B.
    reduce_s = 4 * (0.5 + 2 * 1 / 2 * 3 * 16 / 1e5)
    memory = (2 * DENSE_READ / 2 + 32 * 300) / 1e6  # half of the weights, one of two KV heads
    assert IDEAL.bind(Placement(DENSE, CARD, 2))(3, 3, 300) == pytest.approx(
        memory + reduce_s, rel=1e-12
    )
    # Four GPUs for two KV heads: weights in quarters, each GPU keeps a copy of one head.
    reduce_s = 4 * (0.5 + 2 * 3 / 4 * 3 * 16 / 1e5)
    memory = (2 * DENSE_READ / 4 + 32 * 300) / 1e6
    assert IDEAL.bind(Placement(DENSE, CARD, 4))(3, 3, 300) == pytest.approx(
        memory + reduce_s, rel=1e-12
    )
    slow_link = IDEAL.model_copy(update={"link_efficiency": 0.5})
    with_half = slow_link.bind(Placement(DENSE, CARD, 4))(3, 3, 300) - memory
    assert with_half == pytest.approx(4 * (0.5 + 2 * 3 / 4 * 3 * 16 / 0.5e5), rel=1e-12)


@pytest.mark.parametrize(
    "n_experts, n_active, n_tokens", [(4, 2, 3), (5, 1, 4), (3, 3, 2), (4, 3, 2)]
)
def test_expert_coverage_equals_enumeration_of_all_routings(
    n_experts: int, n_active: int, n_tokens: int
) -> None:
    choices = list(combinations(range(n_experts), n_active))
    touched = [len(set().union(*picks)) for picks in product(choices, repeat=n_tokens)]
    assert expert_coverage(n_experts, n_active, n_tokens) == pytest.approx(np.mean(touched))


@given(st.integers(1, 256), st.data(), st.integers(1, 512))
def test_expert_coverage_bounds(n_experts: int, data: st.DataObject, n_tokens: int) -> None:
    n_active = data.draw(st.integers(1, n_experts))
    covered = expert_coverage(n_experts, n_active, n_tokens)
    assert n_active - 1e-9 <= covered <= min(n_experts, n_active * n_tokens) + 1e-9
    assert covered <= expert_coverage(n_experts, n_active, n_tokens + 1) + 1e-9


MOE = DENSE.model_copy(
    update={"n_experts": 4, "n_active_experts": 2, "expert_intermediate": 6, "n_moe_layers": 1}
)


def test_mixture_of_experts_by_hand() -> None:
    # One dense layer, one with a router (8 x 4) and experts of 3 x 8 x 6 = 144 weights.
    others = DENSE_READ - 384 + 32
    work = PassWork(MOE)
    assert work.weight_bytes(1) == pytest.approx(2 * (others + 2 * 144))
    assert work.weight_bytes(2) == pytest.approx(2 * (others + 3 * 144))  # 4 (1 - 1/4) experts
    assert work.weight_bytes(1000) == pytest.approx(2 * (others + 4 * 144))
    used = DENSE_MATRICES - 384 + 32 + 2 * 144
    assert work.operations(1, 1, 0) == 2 * used + 2 * 64 * 0.5
    shared = MOE.model_copy(update={"shared_intermediate": 5})
    more = PassWork(shared).weight_bytes(1) - work.weight_bytes(1)
    assert more == pytest.approx(2 * 3 * 8 * 5)


def test_storage_formats_by_hand() -> None:
    quantised = MOE.model_copy(update={"linear_dtype_bytes": 1.0, "expert_dtype_bytes": 0.5})
    linear = 2 * 384 + 384  # attention of both layers, feed-forward of one
    plain = 80 + 32 + 2 * 16 + 8  # output projection, router, norms stay as they are
    assert PassWork(quantised).weight_bytes(1) == pytest.approx(2 * plain + linear + 0.5 * 2 * 144)
    tied = DENSE.model_copy(update={"tied": True})
    assert PassWork(tied).weight_bytes(1) == PassWork(DENSE).weight_bytes(
        1
    )  # one table, read whole as output
    assert tied.weight_bytes == DENSE.weight_bytes - 2 * 80


@pytest.mark.parametrize(
    "kind, fp8, rate", [("none", 2e9, 1e9), ("fp8", 2e9, 2e9), ("int8", 2e9, 2e9),
                        ("fp8", None, 1e9), ("weight_only", 2e9, 1e9), ("mxfp4", 2e9, 1e9)]
)  # fmt: skip
def test_eight_bit_rate_only_where_weights_and_gpu_have_it(
    kind: str, fp8: float | None, rate: float
) -> None:
    card = CARD.model_copy(update={"fp8_flops": fp8, "bandwidth_bytes_per_s": 1e15})
    shape = DENSE.model_copy(update={"quantization": kind})
    time_s = IDEAL.bind(Placement(shape, card))(100, 100, 0)
    assert time_s == pytest.approx(PassWork(shape).operations(100, 100, 0) / rate)


def test_sliding_windows_cap_bytes_and_operations() -> None:
    sliding = DENSE.model_copy(update={"sliding_window": 10, "n_sliding_layers": 1})
    bind = IDEAL.bind(Placement(sliding, CARD))
    # One layer reads 100 cached tokens of each of 3 sequences, the other 10: 32 B a token.
    assert bind(3, 3, 300) == pytest.approx((2 * DENSE_READ + 32 * 3 * 110) / 1e6)
    assert bind(3, 3, 15) == pytest.approx((2 * DENSE_READ + 32 * 3 * 10) / 1e6)
    difference = PassWork(DENSE).operations(3, 3, 300) - PassWork(sliding).operations(3, 3, 300)
    assert difference == pytest.approx(64 * 3 * (100.5 - 10))


def test_latent_attention_reads_one_vector_and_works_on_it_for_every_head() -> None:
    mla = DENSE.model_copy(
        update={"mla": Mla(kv_lora_rank=6, qk_nope_head_dim=3, qk_rope_head_dim=2, v_head_dim=3)}
    )
    cached = [IDEAL.bind(Placement(mla, CARD, n))(1, 1, 1000) for n in (1, 2)]
    empty = [IDEAL.bind(Placement(mla, CARD, n))(1, 1, 0) for n in (1, 2)]
    # (6 + 2) elements x 2 B x 2 layers, whole on each GPU.
    assert np.subtract(cached, empty) == pytest.approx([32 * 1000 / 1e6] * 2)
    # Scores over 8 elements, values over 6, two operations each, 4 heads, 2 layers.
    difference = PassWork(mla).operations(1, 1, 1000) - PassWork(mla).operations(1, 1, 0)
    assert difference == 2 * 4 * 2 * (8 + 6) * 1000


def test_well_known_orders_of_magnitude() -> None:
    # 16.06 GB of weights, less the input embedding (1.05 GB), over 70 % of 3.35 TB/s: 6.4 ms.
    timer = RooflineStepTime().bind(Placement(model_shape("Llama-3.1-8B"), gpu("H100-SXM")))
    assert timer(1, 1, 0) == pytest.approx(15.01e9 / (0.7 * 3.35e12), rel=1e-3)
    # KV of 64 sequences of 1000 tokens: 64000 x 131072 B = 8.39 GB more.
    assert timer(64, 64, 64_000) == pytest.approx(23.40e9 / (0.7 * 3.35e12), rel=1e-3)
    # Verifying 4 drafts for one sequence is free, for 256 sequences it is not.
    assert timer(1, 5, 1000) / timer(1, 1, 1000) == pytest.approx(1.0, abs=1e-6)
    assert timer(256, 1280, 256_000) / timer(256, 256, 256_000) > 1.4


def test_over_gives_the_same_floats() -> None:
    for name in ("Qwen3-30B-A3B", "DeepSeek-V3", "gpt-oss-20b"):
        timer = RooflineStepTime().bind(Placement(model_shape(name), gpu("H200-SXM"), 8))
        n = np.arange(1, 200, 7)
        over = timer.over(n, 5 * n, 900 * n)
        fresh = RooflineStepTime().bind(Placement(model_shape(name), gpu("H200-SXM"), 8))
        assert over.tolist() == [fresh(int(x), int(5 * x), int(900 * x)) for x in n]
        assert timer.affine is None


@given(st.integers(1, 300), st.integers(1, 8), st.integers(0, 5000))
def test_more_work_never_takes_less_time(n: int, query: int, context: int) -> None:
    timer = RooflineStepTime().bind(Placement(model_shape("Qwen3-30B-A3B"), gpu("A100-80G-SXM"), 2))
    time_s = timer(n, n * query, n * context)
    assert time_s <= timer(n + 1, (n + 1) * query, (n + 1) * context)
    assert time_s <= timer(n, n * (query + 1), n * context)
    assert time_s <= timer(n, n * query, n * (context + 1))
