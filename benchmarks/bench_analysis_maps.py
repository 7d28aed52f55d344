"""Closed-form maps of a million points over (alpha, cost ratio); wanted: below 2 s each.

python benchmarks/bench_analysis_maps.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from analysis import pearl, psd, sd
from analysis.psd_continuous import continuous_ratio

SIDE = 1000
ROUNDS = 3
WANTED_S = 2.0


def main() -> None:
    alpha = np.linspace(0.01, 0.99, SIDE)[:, None]
    cost = np.linspace(0.01, 1.0, SIDE)[None, :]
    x = np.geomspace(1e-3, 1e3, SIDE * SIDE)
    maps: dict[str, Callable[[], object]] = {
        "SD speedup, k = 4": lambda: sd.speedup(alpha, 4, cost),
        "SD best k, integer": lambda: sd.best_k(alpha, cost),
        "SD best k, Lambert W": lambda: sd.best_k_continuous(alpha, cost),
        "PSD best k": lambda: psd.best_k(alpha, cost),
        "PSD / SD at best k": lambda: psd.ratio_at_best_k(alpha, cost),
        "PEARL speedup, k = 5": lambda: pearl.speedup(alpha, 5, cost),
        "PEARL best k": lambda: pearl.best_k(alpha, cost),
        "MineDraft's R(x)": lambda: continuous_ratio(x),
    }
    print(f"{'map of 10^6 points':<24}{'median s':>10}{'max s':>10}{'wanted s':>10}")
    for name, make in maps.items():
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            found = make()
            times.append(time.perf_counter() - start)
            assert np.size(found) == SIDE * SIDE
        print(f"{name:<24}{statistics.median(times):>10.3f}{max(times):>10.3f}{WANTED_S:>10.1f}")


if __name__ == "__main__":
    main()
