"""How well is a calibrated simulator's prediction, on cells that the fit never saw?

    python benchmarks/heldout_prediction.py --output out/heldout

Profiles the pair, records plain decoding and SD at two draft lengths and two batch sizes (each
repeat on prompts of its own), calibrates on these alone, and predicts throughput and mean decode
step of `sd`, `minedraft` and `pearl` at other draft lengths and batch sizes on other prompts.
Every cell is measured several times, all cells of a repeat in random order with profile and
calibration runs among them, so that drift of a shared machine shows as noise and not as error.
Prints one row a cell, with the run-to-run noise beside the error, and writes the table as CSV
with a stamp. With the defaults 20 minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psdsim import Scenario
from psdsim.acceptance import AcceptanceModel
from psdsim.engine import simulate_run
from psdsim.records import StepKind
from psdsim.records.files import write_text
from psdsim.run.prepare import prepare
from psdsim.workload import Requests
from realrun.cli.options import devices
from realrun.executor import Job, RunResult
from realrun.jobs import make_prompts, warm_up
from realrun.pair import open_pair
from realrun.profile.describe import configs_of, describe
from realrun.profile.grid import Grid
from realrun.profile.measure import Timings
from realrun.session import RunOptions, lines
from realrun.session import run as run_once
from realrun.stamp import hardware, versions

# The corners of what is to be predicted: between them is where a fit can be trusted.
CALIBRATION = [("ar", 0, 1), ("ar", 0, 8), *(("sd", k, b) for k, b in product((1, 8), (1, 8)))]
SCHEDULES = ("sd", "minedraft", "pearl")
MIDDLE = [2, 4, 6]
PROMPT, OUTPUT = 128, 48
CALIBRATION_SEED, HELD_OUT_SEED = 1, 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="builtin:target")
    parser.add_argument("--draft", default="builtin:draft")
    parser.add_argument("--repeats", type=int, default=10, help="measurements of every cell")
    parser.add_argument("--profile-repeats", type=int, default=1, help="passes a shape and round")
    parser.add_argument(
        "--profile-rounds", type=int, default=60, help="at most; one before a calibration run"
    )
    parser.add_argument("--output-tokens", type=int, default=OUTPUT)
    parser.add_argument("--requests", type=int, default=20, help="of every run")
    parser.add_argument("--k", type=int, nargs="+", default=MIDDLE, help="held-out draft lengths")
    parser.add_argument("--batch", type=int, nargs="+", default=MIDDLE, help="held-out batches")
    parser.add_argument("--output", type=Path, required=True, help="folder")
    args = parser.parse_args()
    held_out = list(product(SCHEDULES, args.k, args.batch))
    folder: Path = args.output
    folder.mkdir(parents=True, exist_ok=True)
    first, second = devices(None, None)
    base = RunOptions("sd", 1, 1, args.target, args.draft, first, second)
    grid = Grid(contexts=(96, 224), prompts=(64, PROMPT))
    length = max(grid.max_length, PROMPT + args.output_tokens + 20)
    with open_pair(*replace(base, k=8).specs(16, length)) as pair:

        def measure(cell: tuple[str, int, int], seed: int) -> tuple[RunOptions, RunResult]:
            schedule, k, batch = cell
            options = replace(base, schedule=schedule, k=k, batch=batch, seed=seed)
            prompts = make_prompts(args.target, None, args.requests, 0, PROMPT, seed)
            lengths = np.full(len(prompts), args.output_tokens)
            job = Job(prompts, lengths, np.zeros(len(prompts)))
            run_once(options, warm_up(job, options.make_schedule().capacity), pair)
            return options, run_once(options, job, pair)

        timings = Timings(pair, grid, configs_of(base), 4)
        runs = []
        measured: dict[tuple[str, int, int], list[dict[str, float]]] = {c: [] for c in held_out}
        for repeat in range(args.repeats):
            print(f"measuring, {repeat + 1} of {args.repeats}", file=sys.stderr, flush=True)
            for fitted, cell in in_turn(held_out, repeat):
                seed = (CALIBRATION_SEED if fitted else HELD_OUT_SEED) + repeat
                if fitted and len(runs) < args.profile_rounds:
                    timings.add_round(args.profile_repeats)
                options, result = measure(cell, seed)
                name = "-".join(map(str, (*cell, repeat)))
                kind = "calibration" if fitted else "heldout"
                path = folder / f"{kind}-{name}.jsonl"
                path.write_text(lines(options, result))
                if fitted:
                    runs.append(path)
                else:
                    measured[cell].append(
                        {**figures(result.requests, result.steps), **rates(result)}
                    )
    profile = describe(base, timings.rows())
    (folder / "profile.json").write_text(json.dumps(profile, indent=1) + "\n")
    scenario_file = folder / "scenario.yaml"
    command = [str(Path(sys.executable).with_name("psdsim")), "calibrate", *map(str, runs)]
    command += [str(folder / "profile.json"), "--output", str(scenario_file)]
    subprocess.run(command, check=True)
    scenario = Scenario.load(scenario_file)
    table = pd.DataFrame(
        [
            row(cell, measured[cell], scenario, args.requests, args.output_tokens)
            for cell in held_out
        ]
    )
    stamp = {
        "target": args.target, "draft": args.draft, "repeats": args.repeats,
        "requests": args.requests, "output_tokens": args.output_tokens,
        "hardware": hardware(), "versions": versions(),
    }  # fmt: skip
    write_text(folder / "heldout.csv", table.to_csv(index=False, float_format="%.6g"))
    write_text(folder / "heldout.json", json.dumps(stamp, indent=1) + "\n")
    tell(table)
    return 0


def in_turn(
    held_out: list[tuple[str, int, int]], repeat: int
) -> list[tuple[bool, tuple[str, int, int]]]:
    """Return (is for calibration, cell) of every cell, in an order of the repeat's own.

    A shared machine is slower for half a minute and faster for the next: in a fixed order that
    would strike the same neighbours every time, and in blocks it would part calibration from test.
    """
    cells = [(True, cell) for cell in CALIBRATION] + [(False, cell) for cell in held_out]
    order = np.random.default_rng(repeat).permutation(len(cells))
    return [cells[i] for i in order]


def figures(requests: dict[str, Any], steps: dict[str, Any]) -> dict[str, float]:
    """Return output throughput (tokens/s, whole run) and mean decode step (s)."""
    decode = steps["kind"] == int(StepKind.DECODE)
    duration = (steps["end_s"] - steps["start_s"])[decode]
    total = float(np.nanmax(requests["finish_s"]))
    return {
        "throughput": float(requests["output_tokens"].sum()) / total,
        "step_s": float(duration.mean()),
        "n_steps": int(decode.sum()),
    }


def rates(result: RunResult) -> dict[str, float]:
    """Return the acceptance rate that the cell's own text has, and the share of overhead."""
    accepted = sum(map(sum, result.accepted))
    rejected = sum(
        int(a < t)
        for row_a, row_t in zip(result.accepted, result.tested, strict=True)
        for a, t in zip(row_a, row_t, strict=True)
    )
    steps = result.steps
    decode = steps["kind"] == int(StepKind.DECODE)
    busy = (steps["end_s"] - steps["start_s"])[decode].sum()
    return {
        "alpha": accepted / max(accepted + rejected, 1),
        "overhead_share": float(steps["overhead_s"][decode].sum() / busy),
    }


def simulate(
    scenario: Scenario, cell: tuple[str, int, int], n: int, n_output: int,
    acceptance: AcceptanceModel | None = None,
) -> dict[str, float]:  # fmt: skip
    """Return the simulator's figures of a cell, the mean over replications."""
    schedule, k, batch = cell
    changed = scenario.set({"engine.max_num_seqs": batch})
    if acceptance is not None:
        changed = changed.set({"acceptance": acceptance.model_dump()})
    requests = Requests(
        np.zeros(n), np.full(n, PROMPT, dtype=np.int64), np.full(n, n_output, dtype=np.int64)
    )
    found = []
    for replication in range(10):
        setup = prepare(changed, schedule, k, replication=replication, requests=requests)
        raw = simulate_run(setup)
        found.append(figures(raw.requests, raw.steps))
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


def row(
    cell: tuple[str, int, int], measured: list[dict[str, float]], scenario: Scenario, n: int,
    n_output: int,
) -> dict[str, Any]:  # fmt: skip
    """Return a cell's measurements (medians), noise, predictions and errors."""
    from psdsim.acceptance import IidAcceptance

    middle = {key: float(np.median([one[key] for one in measured])) for key in measured[0]}
    predicted = simulate(scenario, cell, n, n_output)
    own = simulate(scenario, cell, n, n_output, IidAcceptance(alpha=middle["alpha"]))
    out: dict[str, Any] = dict(zip(("schedule", "k", "batch"), cell, strict=True))
    for key in ("throughput", "step_s"):
        values = np.array([one[key] for one in measured])
        out[key] = middle[key]
        # Half the inter-quartile range of single runs, relative.
        out[f"{key}_noise"] = (
            float(np.subtract(*np.quantile(values, (0.75, 0.25)))) / 2 / middle[key]
        )
        out[f"{key}_predicted"] = predicted[key]
        out[f"{key}_error"] = predicted[key] / middle[key] - 1
        out[f"{key}_error_at_own_alpha"] = own[key] / middle[key] - 1
    out["alpha"] = middle["alpha"]
    out["overhead_share"] = middle["overhead_share"]
    return out


def tell(table: pd.DataFrame) -> None:
    """Print the table and what it comes to."""
    print("schedule   k batch | tokens/s  noise predicted  error (own alpha) | "
          "step ms  noise predicted  error | alpha overhead")  # fmt: skip
    for r in table.to_dict("records"):
        print(
            f"{r['schedule']:<9} {r['k']:2d} {r['batch']:5d} | {r['throughput']:8.1f} "
            f"{100 * r['throughput_noise']:5.1f}% {r['throughput_predicted']:8.1f} "
            f"{100 * r['throughput_error']:+6.1f}% "
            f"({100 * r['throughput_error_at_own_alpha']:+5.1f}%)"
            f" | {1e3 * r['step_s']:7.2f} {100 * r['step_s_noise']:5.1f}% "
            f"{1e3 * r['step_s_predicted']:8.2f} {100 * r['step_s_error']:+6.1f}% | "
            f"{r['alpha']:.3f} {100 * r['overhead_share']:5.1f}%"
        )
    for key, name in (("throughput", "throughput"), ("step_s", "mean decode step")):
        error = table[f"{key}_error"].abs()
        print(
            f"{name}: {len(table)} held-out cells, median |error| {100 * error.median():.1f} %, "
            f"worst {100 * error.max():.1f} %; median noise "
            f"{100 * table[f'{key}_noise'].median():.1f} %"
        )


if __name__ == "__main__":
    sys.exit(main())
