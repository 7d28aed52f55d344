"""Do replays of recorded runs have the runs' step counts, and their total time within its jitter?

    python benchmarks/replay_recorded.py SCENARIO.yaml RUN.jsonl RUN.jsonl ...

Replays every run (`psdsim validate --against`) and groups them by schedule, draft length and
batch. The jitter of a group is how far its single runs lie from the group's mean ratio of replayed
to measured total time: what the machine did to each, since the replay knows the run's text. A
group agrees if its mean ratio is within 2 standard deviations of a single run from 1. Exit code 1
if a count of any run differs or a group doesn't agree.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from psdsim import Scenario
from psdsim.calibrate.against import against
from psdsim.calibrate.runs import read_run

WIDEST = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", type=Path, help="calibrated, of the same pair")
    parser.add_argument("runs", type=Path, nargs="+", help="recorded runs")
    args = parser.parse_args()
    scenario = Scenario.load(args.scenario)
    ratios: dict[tuple[str, int, int], list[float]] = {}
    n_unequal = 0
    for path in args.runs:
        run = read_run(path)
        found = against(run, scenario)
        n_unequal += not found.agrees
        (total,) = [row for row in found.rows if row["quantity"] == "total time"]
        cell = run.schedule.name, run.k, int(run.metadata["max_num_seqs"])
        ratios.setdefault(cell, []).append(total["simulated"] / total["measured"])
    print("schedule    k batch runs | replayed / measured total time: mean, of a single run")
    n_far = 0
    for (schedule, k, batch), values in sorted(ratios.items()):
        mean = float(np.mean(values))
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
        far = not abs(mean - 1.0) <= WIDEST * spread
        n_far += far
        print(f"{schedule:<10} {k:2d} {batch:5d} {len(values):4d} | {mean:6.3f} +- {spread:.3f}"
              f"{'  beyond the jitter' if far else ''}")  # fmt: skip
    everything = np.concatenate([np.array(values) for values in ratios.values()])
    within = np.concatenate([np.array(values) - np.mean(values) for values in ratios.values()])
    print(f"{everything.size} runs: counts of {n_unequal} differ; total time: median ratio "
          f"{np.median(everything):.3f}, {100 * np.std(within):.1f} % between runs of a cell; "
          f"{n_far} of {len(ratios)} cells beyond the jitter")  # fmt: skip
    return int(n_unequal > 0 or n_far > 0)


if __name__ == "__main__":
    sys.exit(main())
