"""Runs as a measurement would leave them, simulated with figures that are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from psdsim import Scenario, simulate
from psdsim.records.jsonl import to_lines

CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 256, "tie_word_embeddings": True,
}  # fmt: skip


def target_s(n: float, query: float, context: float) -> float:
    """Return the profiled seconds of a target pass: linear in each, so interpolation is exact."""
    return 0.002 + 0.0001 * n * query + 1e-7 * n * context


def draft_s(n: float, query: float, context: float) -> float:
    """Return the profiled seconds of a draft forward."""
    return 0.0004 + 0.00002 * n * query + 2e-8 * n * context


GRID = [(n, q, c) for n in (1, 8) for q in (1, 8) for c in (0, 512)]


def profile(path: Path, *, busy: tuple[float, float] | None = None, **changes: Any) -> Path:
    """Write a profile of those times; busy passes take these factors longer."""
    rows = []
    for phase in ("decode", "prefill"):
        for n, q, c in GRID:
            if phase == "prefill" and c:
                continue
            for model, time in (("target", target_s), ("draft", draft_s)):
                if model == "draft" and phase == "decode" and q > 1:
                    continue
                row = {"model": model, "phase": phase, "n_seqs": n, "query_length": q,
                       "context": c, "median_s": time(n, q, c), "p25_s": 0.0, "p75_s": 1.0,
                       "n": 30}  # fmt: skip
                rows.append(row | {"busy": False})
                if busy is not None and phase == "decode":
                    factor = busy[model == "draft"]
                    rows.append(row | {"busy": True, "median_s": row["median_s"] * factor})
    model = {"config": CONFIG, "dtype": "float32", "n_parameters": 1}
    data = {
        "tool": "realrun profile", "version": "0.1", "hardware": {"cpu": "a CPU"},
        "versions": {"torch": "2"},
        "models": {
            "target": {"name": "big", "device": "cpu:0", **model},
            "draft": {"name": "small", "kind": "model", "device": "cpu:1", **model},
        },
        "rows": rows,
    } | changes  # fmt: skip
    path.write_text(json.dumps(data))
    return path


def truth(**changes: Any) -> Scenario:
    """Return the scenario that the runs follow: the profile's times and what is put around them."""
    table = [[n, q, c, target_s(n, q, c)] for n, q, c in GRID]
    drafts = [[n, q, c, draft_s(n, q, c)] for n, q, c in GRID]
    base = {
        "target": {"config": "Qwen/Qwen3-0.6B", "gpu": "measured", "n_gpus": 1},
        "draft": {"config": "Qwen/Qwen3-0.6B", "gpu": "measured", "n_gpus": 1, "serial_on": "own"},
        "acceptance": {"kind": "iid", "alpha": 0.7},
        "step_time": {
            "target": {"kind": "table", "rows": table},
            "draft": {
                "kind": "table",
                "rows": [row for row in drafts if row[1] == 1],
            },
            "draft_prefill": {"kind": "table", "rows": drafts},
            "step_overhead_s": 0.0005,
            "step_overhead_per_seq_s": 0.00002,
            "draft_start_s": 0.0003,
            "jitter_cv": 0.1,
            "draft_jitter_cv": 0.2,
        },
        "workload": {"kind": "batch", "n_requests": 24, "prompt_tokens": 8, "output_tokens": 60},
        "engine": {"max_num_seqs": 4, "kv_blocks": "unlimited"},
        "assumed": {},
    }  # fmt: skip
    return Scenario.builtin(base | changes)


def scaled(scenario: Scenario, target: float, draft: float) -> Scenario:
    """Return the scenario with all passes of each model slower by a factor."""
    data = scenario.to_dict()["step_time"]
    for name, factor in (("target", target), ("draft", draft), ("draft_prefill", draft)):
        data[name]["rows"] = [[*row[:3], row[3] * factor] for row in data[name]["rows"]]
    return scenario.set({"step_time": data})


def measure(
    path: Path, scenario: Scenario, schedule: str, k: int, seed: int = 0, **metadata: Any
) -> Path:
    """Simulate a run and write it as measured: pass times are those that passed on the clock."""
    run = simulate(scenario, schedule, k, seed=seed, timeline=True, record_rounds=True)
    steps = dict(run.raw.steps)
    for column, kind in (("draft_time_s", "draft"), ("verify_time_s", "verify")):
        spans = [s for s in run.spans if s.kind == kind]
        place = np.searchsorted(steps["start_s"], [s.start_s for s in spans], side="right") - 1
        decode = steps["kind"] > 0
        steps[column] = np.where(decode, 0.0, steps[column])
        np.add.at(steps[column], place, [s.end_s - s.start_s for s in spans])
    data = {
        "tool": "realrun", "version": "0.1", "commit": "0" * 40, "schedule": schedule, "k": k,
        "max_num_seqs": scenario.engine.max_num_seqs, "capacity": run.capacity, "seed": seed,
        "n_requests": len(run.requests), "acceptance": "measured",
        "bonus": not schedule.startswith("pearl"), "partial": False,
    } | metadata  # fmt: skip
    lines = to_lines(data, steps, run.raw.requests, run.raw.rounds)
    path.write_text("\n".join(lines) + "\n")
    return path
