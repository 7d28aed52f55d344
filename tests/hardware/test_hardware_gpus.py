"""GPUs by name: figures against data sheets, spelling, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from psdsim.errors import InputError
from psdsim.hardware import Gpu, gpu, gpu_names


def test_gpus_against_their_data_sheets() -> None:
    # Dense rates and bandwidths as NVIDIA's data sheets print them (sparse figures halved).
    sheets = {  # TB/s, bf16 TFLOP/s, fp8 TFLOP/s, GB
        "H100-SXM": (3.35, 989.0, 1979.0, 80), "H200-SXM": (4.8, 989.0, 1979.0, 141),
        "A100-80G-SXM": (2.039, 312.0, None, 80), "A100-40G": (1.555, 312.0, None, 40),
        "L4": (0.3, 121.0, 242.5, 24), "L40S": (0.864, 362.0, 733.0, 48),
        "A10": (0.6, 125.0, None, 24), "RTX-4090": (1.008, 165.2, 330.3, 24),
    }  # fmt: skip
    for name, (bandwidth, bf16, fp8, memory) in sheets.items():
        card = gpu(name)
        assert card.bandwidth_bytes_per_s == pytest.approx(bandwidth * 1e12, rel=1e-3)
        assert card.bf16_flops == pytest.approx(bf16 * 1e12, rel=2e-3)
        assert (card.fp8_flops is None) == (fp8 is None)
        if fp8 is not None:
            assert card.fp8_flops == pytest.approx(fp8 * 1e12, rel=3e-3)
        assert memory * 1e9 <= card.memory_bytes <= memory * 2**30


def test_every_gpu_has_a_source_and_makes_sense() -> None:
    for name in gpu_names():
        card = gpu(name)
        assert card.name == name
        assert len(card.source) > 10
        # A card moves its whole memory in 0.01 to 0.1 s, and has 30 to 500 operations a byte.
        assert 0.01 < card.memory_bytes / card.bandwidth_bytes_per_s < 0.1
        assert 30 < card.bf16_flops / card.bandwidth_bytes_per_s < 500
        if card.fp8_flops is not None:
            assert card.fp8_flops == pytest.approx(2 * card.bf16_flops, rel=0.02)
        assert card.link_bytes_per_s < card.bandwidth_bytes_per_s


def test_gpu_names_forgive_spelling() -> None:
    for spelled in ("h100-sxm", "H100 SXM", "h100_sxm", " H100-SXM "):
        assert gpu(spelled) is gpu("H100-SXM")
    assert gpu("H200").name == "H200-SXM"
    assert gpu("RTX A6000").name == "A6000"
    with pytest.raises(
        InputError, match=r"^a.yaml: gpu: unknown GPU 'H1000'.*expected one of H100"
    ):
        gpu("H1000", where="a.yaml: gpu")


@pytest.mark.parametrize(
    "changed, message",
    [({"bandwidth_bytes_per_s": 0.0}, "greater than 0"), ({"memory_bytes": True}, "truth value"),
     ({"tflops": 1.0}, "Extra inputs"), ({"bf16_flops": float("inf")}, "finite")],
)  # fmt: skip
def test_impossible_gpus_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Gpu(**{**gpu("L4").model_dump(), **changed})
