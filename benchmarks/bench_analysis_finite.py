"""Time the laws of finite outputs and of the slowest of many stages; medians over rounds.

python benchmarks/bench_analysis_finite.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from analysis.finite import expected_rounds, variance_rounds
from analysis.finite_batch import expected_max_rounds, expected_max_rounds_unequal
from analysis.finite_law import rounds_survival
from analysis.rounds import acceptance_length_iid, accepted_pmf_iid, tokens_pmf
from analysis.stage_laws import Empirical, Gamma, Normal
from analysis.stages_many import expected_max_of

ROUNDS = 15


def main() -> None:
    rng = np.random.default_rng(1)
    pmf = tokens_pmf(accepted_pmf_iid(0.8, 16))
    means, spreads = rng.uniform(15.0, 25.0, 512), rng.uniform(0.5, 4.0, 512)
    normals = [Normal(m, s) for m, s in zip(means.tolist(), spreads.tolist(), strict=True)]
    gammas = [Gamma(m, s / 4.0) for m, s in zip(means.tolist(), spreads.tolist(), strict=True)]
    measured = Empirical(tuple(rng.lognormal(3.0, 0.2, 10_000).tolist()))
    alpha, k = np.linspace(0.0, 0.99, 1000)[:, None], np.arange(1000)
    lengths = rng.integers(16, 1024, 512)
    cases: list[tuple[str, float | None, Callable[[], object]]] = [
        ("law of rounds, n = 10^4, k = 16", 0.1, lambda: rounds_survival(10_000, pmf)),
        ("law of rounds, n = 10^5, k = 16", None, lambda: rounds_survival(100_000, pmf)),
        (
            "mean and variance, n = 10^5",
            None,
            lambda: (expected_rounds(100_000, pmf), variance_rounds(100_000, pmf)),
        ),
        ("E[max rounds], 512 of 10^4 tokens", 0.2, lambda: expected_max_rounds(10_000, pmf, 512)),
        (
            "E[max rounds], 512 lengths 16..1023",
            0.2,
            lambda: expected_max_rounds_unequal(lengths, pmf),
        ),
        ("E[max], 512 equal normals", 0.2, lambda: expected_max_of([Normal(20.0, 2.0)], [512])),
        ("E[max], 512 different normals", 0.2, lambda: expected_max_of(normals)),
        ("E[max], 512 different gammas", 0.2, lambda: expected_max_of(gammas)),
        ("E[max], 512 of 10^4 measured", 0.2, lambda: expected_max_of([measured], [512])),
        ("E[N] map of 10^6 points", 2.0, lambda: acceptance_length_iid(alpha, k)),
    ]
    times: list[list[float]] = [[] for _ in cases]
    for _ in range(ROUNDS):
        # The cases take turns, so that noise of a shared machine hits all of them.
        for spent, (_, _, call) in zip(times, cases, strict=True):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
    print(f"{'case':<38}{'median ms':>11}{'min':>9}{'max':>9}{'wanted <':>10}")
    for spent, (name, wanted, _) in zip(times, cases, strict=True):
        low, middle, high = min(spent), statistics.median(spent), max(spent)
        limit = "-" if wanted is None else f"{1e3 * wanted:.0f}"
        print(f"{name:<38}{1e3 * middle:>11.2f}{1e3 * low:>9.2f}{1e3 * high:>9.2f}{limit:>10}")


if __name__ == "__main__":
    main()
