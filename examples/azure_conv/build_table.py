"""Build a step-time table of a whole model from LLMServingSim's per-layer measurements.

LLMServingSim (casys-kaist/LLMServingSim, MIT) measures single layers with CUDA events:
``dense.csv`` (layer, tokens, time_us), ``per_sequence.csv`` (lm_head, sampler) and
``attention.csv``. A decode or verification pass over n sequences with q rows each is

    n_layers * (dense layers at n q tokens + decode attention) + final norm + lm_head + sampler

Decode attention is fitted as a + b n + c n context, since its grid has holes; the fit's error is
printed. Prompt passes get an affine law fitted to the same sums at 16 to 2048 tokens.

    python build_table.py FOLDER_WITH_THE_CSV_FILES rtx4090_llama3.1-8b.csv
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

N_LAYERS = 32
LAYER_COUNT = {"layernorm": 2, "embedding": 0, "final_layernorm": 0}  # else once a layer
SEQS = (1, 2, 4, 8, 16, 32, 64, 128)
QUERY = (1, 2, 3, 4, 5, 6, 7, 9)
CONTEXT = (0, 1024, 4096, 16384)


def read(folder: Path, ending: str) -> list[dict[str, str]]:
    (path,) = folder.glob(f"RTX4090*{ending}.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def curves(rows: list[dict[str, str]], key: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        points[row["layer"]].append((float(row[key]), float(row["time_us"])))
    return {
        name: tuple(np.array(sorted(values)).T)  # type: ignore[misc]
        for name, values in points.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    dense = curves(read(options.folder, "dense"), "tokens")
    per_seq = curves(read(options.folder, "per_sequence"), "sequences")
    decode = np.array(
        [
            [float(r["n_decode"]), float(r["kv_decode"]), float(r["time_us"])]
            for r in read(options.folder, "attention*")
            if r["prefill_chunk"] == "0"
        ]
    )
    n, kv, time_us = decode.T
    design = np.stack([np.ones_like(n), n, n * kv], axis=1)
    attention, _ = nnls(design / time_us[:, None], np.ones_like(time_us))
    error = np.abs(design @ attention / time_us - 1)
    print(f"decode attention: median error {np.median(error):.1%}, worst {error.max():.1%}")

    def dense_us(tokens: float) -> float:
        total = 0.0
        for name, (x, y) in dense.items():
            total += LAYER_COUNT.get(name, 1) * N_LAYERS * float(np.interp(tokens, x, y))
        return total + sum(
            float(np.interp(tokens, *dense[name])) for name in ("embedding", "final_layernorm")
        )

    def head_us(seqs: float) -> float:
        return sum(float(np.interp(seqs, *curve)) for curve in per_seq.values())

    with options.output.open("w", newline="") as file:
        file.write("# Llama-3.1-8B bf16 on one RTX 4090, vLLM 0.19.0 kernels, CUDA 12.8 (eager)\n")
        file.write("# made by build_table.py from LLMServingSim@5daddb21 profiler/perf (MIT)\n")
        writer = csv.writer(file)
        writer.writerow(["n_seqs", "query_length", "context", "time_ms"])
        for seqs in SEQS:
            for query in QUERY:
                for context in CONTEXT:
                    attend = attention @ [1.0, seqs, seqs * (context + query / 2)]
                    # Rows of lm_head are all verified positions.
                    total = dense_us(seqs * query) + N_LAYERS * attend + head_us(seqs * query)
                    writer.writerow([seqs, query, context, f"{total / 1e3:.4f}"])
    tokens = np.array([16, 32, 64, 128, 256, 512, 1024, 2048], dtype=float)
    prompt = np.array([dense_us(t) + head_us(1) for t in tokens])
    design = np.stack([np.ones_like(tokens), tokens], axis=1)
    law, _ = nnls(design / prompt[:, None], np.ones_like(prompt))
    error = np.abs(design @ law / prompt - 1)
    print(
        f"prefill (attention left out): base_s {law[0] / 1e6:.5f}, per_token_s {law[1] / 1e6:.3e}; "
        f"median error {np.median(error):.1%}, worst {error.max():.1%}"
    )


if __name__ == "__main__":
    main()
