"""How often does the interval of a fitted acceptance rate cover the rate of other prompts?

    python benchmarks/acceptance_coverage.py RUN.jsonl RUN.jsonl ...

Takes recorded runs of one pair at one draft length, each on prompts of its own (`--seed`). Draws
prompts for a fit at random, many times; each time the 95 % interval that `psdsim calibrate` would
give is held against the rate of all prompts that were not drawn: a larger, disjoint set. Beside
it stands the coverage of binomial intervals, which take a prompt's positions for independent.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy import stats

from psdsim.calibrate.acceptance import estimate_alpha, sums_by_request
from psdsim.calibrate.runs import read_run

DRAWS = 4000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="recorded runs of drafting schedules")
    parser.add_argument("--fit", type=int, nargs="+", default=[10, 20, 40], help="prompts of a fit")
    args = parser.parse_args()
    runs = [read_run(path) for path in args.runs]
    prompts = [run.metadata.get("prompts") for run in runs]
    if len({run.k for run in runs}) > 1 or len(set(prompts)) < len(runs):
        print("runs of one draft length are asked for, each on other prompts", file=sys.stderr)
        return 2
    accepted, tested = np.concatenate([sums_by_request(run)[1] for run in runs]).T
    n = accepted.size
    if 2 * max(args.fit) >= n:
        print(f"{n} prompts are too few to fit on {max(args.fit)} of them", file=sys.stderr)
        return 2
    print(f"{n} prompts, alpha {accepted.sum() / tested.sum():.4f}; {DRAWS} draws, stated 95 %")
    rng = np.random.default_rng(0)
    for size in args.fit:
        covered = binomial = 0
        width = []
        for _ in range(DRAWS):
            order = rng.permutation(n)
            own, others = order[:size], order[size:]
            fit = estimate_alpha(accepted[own], tested[own])
            rate = accepted[others].sum() / tested[others].sum()
            covered += fit.low <= rate <= fit.high
            width.append(fit.high - fit.low)
            reach = 1.96 * np.sqrt(fit.value * (1.0 - fit.value) / tested[own].sum())
            binomial += abs(fit.value - rate) <= reach
        # The others' rate has an error of its own, of the same law.
        due = stats.norm.cdf(1.96 / np.sqrt(1.0 + size / (n - size))) * 2.0 - 1.0
        print(
            f"fit on {size:3d} prompts: {100 * covered / DRAWS:.1f} % cover the rate of the other "
            f"{n - size} (due: {100 * due:.1f} %), median width {np.median(width):.3f}; "
            f"binomial intervals: {100 * binomial / DRAWS:.1f} %"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
