"""MineDraft's setting played by the simulator: many requests at once, a batch of 16 a step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from psdsim import Scenario
from psdsim.engine import simulate_run
from psdsim.hardware import ModelShape, gpu, model_shape
from psdsim.latency import Placement, RooflineStepTime
from psdsim.run.prepare import prepare
from repro.play import SEED


@cache
def published() -> dict[str, Any]:
    """Return `data/minedraft.yaml`."""
    path = Path(__file__).parent / "data" / "minedraft.yaml"
    data: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return data


@dataclass(frozen=True)
class Phases:
    """What a round of one batch takes, s: one draft forward, one target pass, fixed costs."""

    draft_s: float
    target_s: float
    overhead_s: float = 0.0
    sync_s: float = 0.0

    def gain(self, k: int) -> float:
        """Return MineDraft's throughput over SD's, less 1: same batch a step, long run."""
        serial = self.overhead_s + k * self.draft_s + self.target_s
        longer = max(k * self.draft_s, self.target_s)
        return serial / (self.overhead_s + longer + self.sync_s) - 1.0


def shape(name: str) -> ModelShape:
    """Return a model's shape: a built-in one, or the one in the inputs file."""
    found = published()["assumed"]["shapes"][name]
    return model_shape(found) if isinstance(found, str) else ModelShape(name=name, **found)


@cache
def roofline_phases(pair: str, k: int, batch: int, gpu_name: str = "") -> Phases:
    """Return a pair's times from data sheets, eager mode, four target GPUs and a draft GPU.

    `gpu_name`: another GPU than the assumed one.
    """
    given, setting = published()["assumed"], published()["setting"]
    timer = RooflineStepTime(per_layer_s=given["per_layer_s"])
    card = gpu(gpu_name or given["gpu"])
    target = timer.bind(Placement(shape(given["target"][pair]), card, setting["n_target_gpus"]))
    draft = timer.bind(Placement(shape(given["draft"][pair]), card, setting["n_draft_gpus"]))
    cached = batch * given["context"]
    return Phases(
        draft_s=draft(batch, batch, cached), target_s=target(batch, batch * (k + 1), cached),
        overhead_s=given["step_overhead_s"], sync_s=given["sync_s"],
    )  # fmt: skip


@dataclass(frozen=True)
class Whole:
    """A whole run: tokens/s from the first arrival to the last token, mean latency of a request."""

    throughput: float
    e2el_s: float


@cache
def play_whole(
    schedule: str, k: int, phases: Phases, batch: int, n_requests: int, replication: int
) -> Whole:
    """Simulate all requests arriving at once; a prefill takes as long as a pass of each model."""
    setting, given = published()["setting"], published()["assumed"]
    scenario = Scenario.builtin(
        {
            "acceptance": {"kind": "iid", "alpha": given["alpha"]},
            "step_time": {
                "target": {"kind": "constant", "time_s": phases.target_s},
                "draft": {"kind": "constant", "time_s": phases.draft_s},
                "step_overhead_s": phases.overhead_s,
                "sync_s": phases.sync_s,
            },
            "workload": {
                "kind": "batch",
                "n_requests": n_requests,
                "prompt_tokens": 256,
                "output_tokens": setting["output_tokens"],
            },
            "engine": {"max_num_seqs": batch, "kv_blocks": "unlimited"},
            "assumed": {},
        }
    )
    setup = prepare(scenario, schedule, k, seed=SEED, replication=replication, record_steps=False)
    columns = simulate_run(setup).requests
    elapsed = float(columns["finish_s"].max() - columns["arrival_s"].min())
    latency = columns["finish_s"] - columns["arrival_s"]
    return Whole(float(columns["output_tokens"].sum()) / elapsed, float(latency.mean()))
