"""Time and peak memory for 10^4, 10^5 and 10^6 requests of a trace, steps streamed to Parquet.

Each size runs in a process of its own, so that its peak memory is its own. The trace is made
here (Poisson arrivals, lognormal lengths) and read back from a file like any other.

    python benchmarks/bench_many_requests.py [--sizes 10000,100000,1000000]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write_trace(path: Path, n: int) -> None:
    """Write n timed requests: 40 a second, prompts of about 500 and outputs of about 120 tokens."""
    rng = np.random.default_rng(0)
    arrival = np.cumsum(rng.exponential(1 / 40.0, n))
    prompt = np.clip(rng.lognormal(6.0, 0.7, n), 1, 4000).astype(int)
    output = np.clip(rng.lognormal(4.6, 0.7, n), 1, 1500).astype(int)
    with path.open("w", encoding="utf-8") as file:
        for t, p, o in zip(arrival, prompt, output, strict=True):
            file.write(f'{{"timestamp_s": {t:.6f}, "input_length": {p}, "output_length": {o}}}\n')


def run_one(n: int, schedule: str) -> None:
    """Simulate n requests and print a line of figures."""
    from psdsim import Scenario
    from psdsim.engine import simulate_run
    from psdsim.run.prepare import prepare

    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        write_trace(trace, n)
        scenario = Scenario.builtin(
            {
                "workload": {"kind": "trace", "path": str(trace), "format": "timed_jsonl"},
                "engine.max_num_seqs": 128,
                "engine.chunked_prefill": schedule in {"ar", "sd"},
            }
        )
        start = time.perf_counter()
        setup = prepare(scenario, schedule, 4, steps_parquet=Path(folder) / "steps.parquet")
        read_s = time.perf_counter() - start
        start = time.perf_counter()
        raw = simulate_run(setup)
        run_s = time.perf_counter() - start
        size = (Path(folder) / "steps.parquet").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{n:>9}{read_s:>10.1f}{run_s:>10.1f}{1e6 * run_s / n:>14.0f}{raw.tally.n_steps:>12}"
        f"{peak:>12.2f}{size / 2**20:>14.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--schedule", default="sd")
    parser.add_argument("--one", type=int)
    options = parser.parse_args()
    if options.one:
        run_one(options.one, options.schedule)
        return
    print(
        f"{'requests':>9}{'read s':>10}{'run s':>10}{'us/request':>14}{'steps':>12}"
        f"{'peak GiB':>12}{'parquet MiB':>14}"
    )
    for size in options.sizes.split(","):
        subprocess.run(
            [sys.executable, __file__, "--one", size, "--schedule", options.schedule], check=True
        )


if __name__ == "__main__":
    main()
