"""Engine steps per second on one core: 4096 requests of 256 tokens at batch 16, all at once.

Request and step records are kept. Schedules take turns within each round, so that noise of
a shared machine hits all of them; the median over rounds is what counts.

    python benchmarks/bench_steps_per_second.py
"""

from __future__ import annotations

import statistics
import time

from psdsim import Scenario
from psdsim.engine import simulate_run
from psdsim.run.prepare import prepare

CASES = (("ar", 0), ("sd", 5), ("minedraft", 5), ("pearl", 5))
TARGET = {"ar": 60_000, "sd": 40_000}
ROUNDS = 5


def main() -> None:
    scenario = Scenario.builtin(
        {"workload.n_requests": 4096, "workload.output_tokens": 256, "engine.max_num_seqs": 16}
    )
    rates: dict[str, list[float]] = {name: [] for name, _ in CASES}
    for _ in range(ROUNDS):
        for name, k in CASES:
            setup = prepare(scenario, name, k)
            start = time.perf_counter()
            raw = simulate_run(setup)
            elapsed = time.perf_counter() - start
            assert raw.steps["kind"].size == raw.tally.n_steps
            rates[name].append(raw.tally.n_steps / elapsed)
    print(f"{'schedule':<12}{'median steps/s':>16}{'min':>10}{'max':>10}{'wanted':>10}")
    for name, values in rates.items():
        median = statistics.median(values)
        wanted = f"{TARGET[name]}" if name in TARGET else "-"
        print(f"{name:<12}{median:>16.0f}{min(values):>10.0f}{max(values):>10.0f}{wanted:>10}")


if __name__ == "__main__":
    main()
