"""Records of the built-in pair that the figures draw: acceptance, a timeline, its simulation.

    python benchmarks/record_builtin.py --scenario heldout/scenario.yaml --output figures/measured

The scenario comes from `benchmarks/heldout_prediction.py`. Acceptance is counted on prompts that no
fit has seen, for the draft and the distilled draft; the timeline is MineDraft's, measured, beside
the simulator's replay of the same run.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from psdsim import Scenario
from psdsim.engine import simulate_run
from psdsim.records import Span
from psdsim.records.files import write_text
from psdsim.run.prepare import prepare
from psdsim.workload import Requests
from realrun.cli.options import devices
from realrun.executor import Job, RunResult
from realrun.jobs import make_prompts, warm_up
from realrun.pair import open_pair
from realrun.session import RunOptions
from realrun.session import run as run_once
from realrun.stamp import hardware, versions

PROMPT, OUTPUT, K = 128, 96, 8
SEED = 5000
TIMELINE = ("minedraft", 4, 4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=256)
    parser.add_argument("--output", type=Path, required=True, help="folder")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    rows = []
    where = devices(None, None)
    for draft in ("builtin:draft", "builtin:distilled"):
        options = RunOptions("sd", K, 8, "builtin:target", draft, *where, seed=SEED)
        result = run(options, args.requests)
        rows += acceptance_rows(draft, result)
        print(draft, acceptance_line(result), flush=True)
    write_text(args.output / "acceptance.csv", pd.DataFrame(rows).to_csv(index=False))
    schedule, k, batch = TIMELINE
    pair = ("builtin:target", "builtin:draft")
    options = RunOptions(schedule, k, batch, *pair, *where, seed=SEED)
    measured = run(options, 16)
    simulated = replay(measured, Scenario.load(args.scenario), batch)
    frames = [
        pd.DataFrame(spans, columns=["device", "group", "kind", "start_s", "end_s"]).assign(
            source=source
        )
        for source, spans in (("measured", rows_of(measured.spans)), ("simulated", simulated))
    ]
    table = pd.concat(frames)
    write_text(args.output / "timeline.csv", table.to_csv(index=False, float_format="%.7g"))
    stamp = {"hardware": hardware(), "versions": versions(), "k": K, "requests": args.requests}
    write_text(args.output / "record.json", json.dumps(stamp, indent=1) + "\n")
    return 0


def run(options: RunOptions, n: int) -> RunResult:
    """Run once on held-out prompts, behind a warm-up."""
    prompts = make_prompts(options.target, None, n, 0, PROMPT, options.seed)
    job = Job(prompts, np.full(n, OUTPUT), np.zeros(n))
    capacity = options.make_schedule().capacity
    with open_pair(*options.specs(capacity, job.max_length + K + 2)) as pair:
        run_once(options, warm_up(job, capacity), pair)
        return run_once(replace(options), job, pair)


def acceptance_rows(draft: str, result: RunResult) -> list[dict[str, object]]:
    """Return rounds by accepted drafts; a round is counted whole, before the stop clips it."""
    counts = np.bincount(np.concatenate(result.accepted), minlength=K + 1)
    return [{"draft": draft, "accepted": i, "rounds": int(n)} for i, n in enumerate(counts)]


def acceptance_line(result: RunResult) -> str:
    """Return alpha (accepted / judged) and the acceptance length in words."""
    accepted = np.concatenate(result.accepted)
    judged = accepted.sum() + np.count_nonzero(accepted < K)
    return f"alpha {accepted.sum() / judged:.4f}, acceptance length {accepted.mean() + 1:.3f}"


def replay(measured: RunResult, scenario: Scenario, batch: int) -> list[tuple[object, ...]]:
    """Return the spans of the simulator's replay of a measured run."""
    columns = measured.requests
    requests = Requests(
        columns["arrival_s"], columns["prompt_tokens"], columns["output_tokens"], open_loop=False
    )
    k = measured.schedule.k
    rounds = [list(map(int, one)) for one in measured.accepted]
    changed = scenario.set(
        {
            "engine.max_num_seqs": batch,
            "acceptance": {"kind": "replay", "k": k, "rounds": rounds},
        }
    )
    setup = prepare(changed, measured.schedule.name, k, requests=requests, record_spans=True)
    return rows_of(simulate_run(setup).spans)


def rows_of(spans: list[Span]) -> list[tuple[object, ...]]:
    """Return (device, group, kind, start_s, end_s) of passes."""
    kept = [s for s in spans if s.kind in ("prefill", "draft", "verify")]
    return [(s.device, s.group, s.kind, s.start_s, s.end_s) for s in kept]


if __name__ == "__main__":
    sys.exit(main())
