"""Does the interval of a fitted acceptance rate cover the rate of other prompts?

    python benchmarks/acceptance_coverage.py RUN.jsonl RUN.jsonl ...

Takes recorded runs of one pair at one draft length, each on prompts of its own (`--seed`). The
95 % interval that `psdsim calibrate` fits on each run alone is held against the rate of all other
runs together: a larger, disjoint set of prompts. That rate has an error of its own, so intervals
of the difference are counted, too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from psdsim.calibrate.acceptance import estimate_alpha
from psdsim.calibrate.runs import MeasuredRun, read_run

Floats = NDArray[np.float64]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="recorded runs of drafting schedules")
    args = parser.parse_args()
    runs = [read_run(path) for path in args.runs]
    prompts = [run.metadata.get("prompts") for run in runs]
    if len(runs) < 2 or len({run.k for run in runs}) > 1 or len(set(prompts)) < len(runs):
        print("runs of one draft length are asked for, each on other prompts", file=sys.stderr)
        return 2
    counts = [_counts(run) for run in runs]
    covered = difference = 0
    for i, own in enumerate(counts):
        fit = estimate_alpha(*own)
        rest = [np.concatenate(columns) for columns in
                zip(*(other for j, other in enumerate(counts) if j != i), strict=True)]  # fmt: skip
        others = estimate_alpha(rest[0], rest[1])
        inside = fit.low <= others.value <= fit.high
        reach = np.hypot(fit.high - fit.low, others.high - others.low) / 2
        covered += inside
        difference += abs(fit.value - others.value) <= reach
        print(f"{runs[i].file:<40} {own[0].size:3d} prompts: {fit.value:.4f}, "
              f"{fit.low:.4f} to {fit.high:.4f}; {rest[0].size} others: {others.value:.4f}"
              f"{'' if inside else '  not covered'}")  # fmt: skip
    print(f"covered: {covered} of {len(runs)} at 95 %; with the others' own error {difference}")
    return 0


def _counts(run: MeasuredRun) -> tuple[Floats, Floats]:
    """Return accepted and tested drafts of each request."""
    rounds = run.recording.rounds
    assert rounds is not None
    # A round's first rejection is its last test.
    accepted = np.array([float(np.sum(one)) for one in rounds.accepted])
    tested = np.array([
        float(np.sum(np.minimum(np.asarray(a) + 1, np.asarray(t))))
        for a, t in zip(rounds.accepted, rounds.tested, strict=True)
    ])  # fmt: skip
    return accepted, tested


if __name__ == "__main__":
    sys.exit(main())
