"""Step times from data sheets: bytes over bandwidth against operations over peak rate.

The default efficiencies are assumed: round figures near what other simulators assume
(aiconfigurator-core 0.12.0 takes 80 % of the bandwidth, BLIS 30 to 45 % of the matrix rate). Beside
the whole passes named below, they were held against single kernels of vLLM 0.24.0 on H100, H200 and
L40S (aiconfigurator), as median errors:

- matrix products: 5 to 17 % up to 256 tokens; above, 26 to 60 %, too slow, as large products alone
  reach 80 % of the matrix rate of an H100 or H200. Raise ``compute_efficiency`` where long prefills
  decide;
- decoding attention: 5 to 18 % where a layer reads more than 100 MB of cache; small reads never
  take less than some 10 us a layer, which is for ``per_layer_s``.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from psdsim.errors import InputError
from psdsim.hardware import Gpu, ModelShape
from psdsim.hardware.fields import Efficiency, NonNegative, Positive
from psdsim.latency.base import Placement, StepTime, StepTimer
from psdsim.latency.work import PassWork


class RooflineStepTime(StepTime):
    """max(memory, compute) + tensor-parallel all-reduces + launches, all from shape and data sheet.

    Memory: weights that the pass touches (all experts that its tokens are routed to, expected
    under uniform routing) and the KV cache, each GPU reading its share. Compute: two operations
    a parameter and token, and four a head element, query token and cached token for attention.
    Communication: two all-reduces a layer of hidden * tokens activations in a ring (Williams et
    al. 2009 for the roofline; Shoeybi et al. 2019, arXiv 1909.08053, for the two all-reduces).

    The efficiencies are what decides; the defaults are typical of tuned kernels, not measured on
    any deployment. Fit them to one measured point before trusting the rest. Median errors of the
    defaults against public measurements: linear layers on one A100 or H100 (Vidur) 1 to 18 % up to
    32 tokens and 10 to 25 % up to 256, where max() is too fast, as memory and compute overlap
    imperfectly; decoding passes of Llama-3.1-8B on an RTX 4090 (LLMServingSim) 24 %, all too slow,
    and 3 % with the bandwidth fitted to one point; whole steps of Llama-2-70B without CUDA graphs
    (splitwise-sim) 18 % too fast on 2 H100 and 73 % on 8, where launches decide (`launch_s`).

    Logits are counted for every token fed, as verification needs them; a prefill, which needs
    those of its last token only, is overestimated by the share of the output projection.

    Examples
    --------
    >>> from psdsim.hardware import gpu, model_shape
    >>> timer = RooflineStepTime().bind(Placement(model_shape("Llama-3.1-8B"), gpu("H100-SXM")))
    >>> round(timer(1, 1, 0) * 1e3, 1)   # 15.0 GB of weights at 70 % of 3.35 TB/s, ms
    6.4
    """

    kind: Literal["roofline"] = Field("roofline", description="From config.json and data sheet.")
    bandwidth_efficiency: Efficiency = Field(
        0.7, description="Share of the memory bandwidth reached (assumed)."
    )
    compute_efficiency: Efficiency = Field(
        0.5, description="Share of the peak matrix rate reached (assumed)."
    )
    link_efficiency: Efficiency = Field(
        0.5, description="Share of the interconnect bandwidth reached (assumed)."
    )
    launch_s: NonNegative = Field(
        0.0, description="Fixed time of a pass: kernel launches, sampling, s."
    )
    per_layer_s: NonNegative = Field(
        0.0, description="Fixed time of a layer: eager mode needs some 1e-4 s."
    )
    kv_dtype_bytes: Positive = Field(2.0, description="Bytes per KV element: 2 bf16, 1 fp8.")

    def _bare_timer(self, placement: Placement) -> StepTimer:
        shape, gpu, n_gpus = placement.shape, placement.gpu, placement.n_gpus
        if shape is None or gpu is None:
            raise InputError(
                "a roofline needs a model and a GPU", expected="config and gpu", where="step_time"
            )
        flops = self._peak(shape, gpu) * self.compute_efficiency * n_gpus
        bandwidth = gpu.bandwidth_bytes_per_s * self.bandwidth_efficiency
        fixed = self.launch_s + shape.n_layers * self.per_layer_s
        work = PassWork(shape)

        def seconds(n_seqs: float, n_tokens: float, n_kv_tokens: float) -> float:
            context = n_kv_tokens / n_seqs
            kv_bytes = n_seqs * shape.kv_bytes(
                context, dtype_bytes=self.kv_dtype_bytes, n_gpus=n_gpus
            )
            memory = (work.weight_bytes(n_tokens) / n_gpus + kv_bytes) / bandwidth
            compute = work.operations(n_seqs, n_tokens, n_kv_tokens) / flops
            return max(memory, compute) + self._reduce_s(shape, gpu, n_gpus, n_tokens) + fixed

        return StepTimer(seconds)

    @staticmethod
    def _peak(shape: ModelShape, gpu: Gpu) -> float:
        eight_bit = shape.quantization in {"fp8", "int8"} and gpu.fp8_flops is not None
        return float(gpu.fp8_flops if eight_bit and gpu.fp8_flops else gpu.bf16_flops)

    def _reduce_s(self, shape: ModelShape, gpu: Gpu, n_gpus: int, n_tokens: float) -> float:
        if n_gpus == 1:
            return 0.0
        moved = 2.0 * (n_gpus - 1) / n_gpus * n_tokens * shape.hidden * shape.dtype_bytes
        once = gpu.link_latency_s + moved / (gpu.link_bytes_per_s * self.link_efficiency)
        return 2.0 * shape.n_layers * once
