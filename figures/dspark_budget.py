"""How many tokens of a request DSpark's scheduler verifies as requests become more.

Left: traffic of one kind at a time, with DSpark's acceptance by position (Figure 2 of arXiv
2607.05147) and blocks of 7. Lines: the greedy scheduler on confidences that know the mean of a
position; marks, where the method is there: simulated, its confidences with an AUC of 0.85 of single
tokens. Grey: published for DeepSeek-V4 (Figure 8, read off the plot; blocks of 5, another model,
speed curve not published), to compare shapes, not values. Right: the three kinds mixed, expected
tokens/s over verifying all 7 of everyone.

ASSUMED, the engine's speed: the built-in target as a roofline (Qwen3-32B on four H100), its
overhead, and drafting in 14 % of a target pass (5 draft layers beside 36) and its head's 7 steps.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.dspark import global_schedule, prefix_schedule, theta
from figures._simulated import SEED
from figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, new_figure, run
from psdsim import Scenario, simulate
from psdsim.methods.drafters import DOMAINS, PROFILES
from psdsim.methods.dspark import DSparkMethod
from psdsim.run.basis import Basis
from psdsim.run.prepare import costs
from psdsim.stats import batch_means_rate

COLOURS = dict(zip(DOMAINS, (BLUE, GREEN, ORANGE), strict=True))
BLOCK = 7
PUBLISHED = {
    "Flash": ((20, 4.95), (56, 4.55), (92, 4.20), (128, 3.91), (176, 3.60), (204, 3.48)),
    "Pro": ((5, 5.41), (30, 4.95), (56, 4.57), (81, 4.23), (112, 3.92), (157, 3.62), (192, 3.52)),
}
"""Requests, mean tokens verified a request (drafts and the anchor)."""
Floats = NDArray[np.float64]


def scenario(n_seqs: int, n_waves: int = 3) -> Scenario:
    """Return the built-in deployment on a roofline with so many requests in flight."""
    return Scenario.builtin(
        {
            "step_time.target": {"kind": "roofline"},
            "workload": {
                "kind": "concurrency", "n_requests": n_waves * n_seqs, "prompt_tokens": 256,
                "output_tokens": 256, "concurrency": n_seqs,
            },
            "engine.max_num_seqs": n_seqs,
        }
    )  # fmt: skip


def steps_per_s(n_seqs: int) -> Floats:
    """Return the speed curve for 1..n_seqs * 8 tokens in a pass, drafting and overhead in it."""
    deployed, method = scenario(n_seqs), DSparkMethod({"whole_step": 1})
    fixed_s = method.options(method.adapt(deployed, BLOCK), BLOCK)["fixed_s"]
    target = costs(deployed, False).target
    context = 256 + 256 / 2
    tokens = range(1, n_seqs * (BLOCK + 1) + 1)
    return np.array([1.0 / (fixed_s + target(n_seqs, t, n_seqs * context)) for t in tokens])


def survival(domains: list[str]) -> Floats:
    """Return P(the first j drafts are accepted), one row a request."""
    return np.array([np.cumprod(PROFILES["dspark"][domain]) for domain in domains])


def simulated(domain: str, n_seqs: int, n_waves: int = 3) -> tuple[float, float, float]:
    """Return the mean budget in full batches with its 95 % interval (batch means)."""
    name = f"dspark:profile={DOMAINS.index(domain) + 1}:whole_step=1"
    result = simulate(
        scenario(n_seqs, n_waves), name, BLOCK, seed=SEED, basis=Basis.CONCURRENCY
    )  # fmt: skip
    steps = result.raw.steps
    full = steps["n_verify_seqs"] == n_seqs
    e = batch_means_rate(steps["n_verified_tokens"][full], steps["n_verify_seqs"][full])
    return 1.0 + e.mean, 1.0 + e.low, 1.0 + e.high


def compute(quick: bool = False) -> pd.DataFrame:
    """Return kind (formula or simulated), n_seqs, budgets by domain, gains of mixed traffic."""
    some = (6, 48, 192) if quick else (3, 6, 12, 18, 24, 36, 48, 66, 96, 120, 144, 168, 192, 240)
    rows: list[dict[str, object]] = [formula(n) for n in some]
    for n in (12,) if quick else (6, 24, 48, 96, 192):
        row: dict[str, object] = {"kind": "simulated", "n_seqs": n}
        for domain in DOMAINS:
            mean, low, high = simulated(domain, n, 1 if quick else 3)
            row |= {domain: mean, f"{domain}_low": low, f"{domain}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)


def formula(n: int) -> dict[str, object]:
    """Return what the greedy scheduler does with n requests."""
    speed = steps_per_s(n)
    row: dict[str, object] = {"kind": "formula", "n_seqs": n}
    for domain in DOMAINS:
        lengths = prefix_schedule(survival([domain] * n), speed)
        row[domain] = 1.0 + float(lengths.mean())
    mixed = survival([DOMAINS[i % len(DOMAINS)] for i in range(n)])
    full = theta([BLOCK] * n, mixed, speed)
    fixed = [theta([k] * n, mixed, speed) / full for k in range(BLOCK + 1)]
    return row | {
        "scheduled": theta(prefix_schedule(mixed, speed), mixed, speed) / full,
        "searched": theta(global_schedule(mixed, speed), mixed, speed) / full,
        "best_fixed": max(fixed),
        "best_fixed_k": int(np.argmax(fixed)),
        "none": fixed[0],
    }


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the budgets, and what they gain."""
    figure = new_figure(2, 2.6, 2)
    left, right = figure.axes
    for (name, points), marker in zip(PUBLISHED.items(), "xd", strict=True):
        x, y = zip(*points, strict=True)
        left.plot(x, y, marker, ms=3.5, color="#888888", label=f"published, V4-{name}")
    lines, marks = (frame[frame["kind"] == kind] for kind in ("formula", "simulated"))
    n = lines["n_seqs"]
    for domain, colour in COLOURS.items():
        left.plot(n, lines[domain], color=colour, lw=1.2, label=domain)
        if len(marks):
            y = marks[domain]
            left.errorbar(
                marks["n_seqs"], y, yerr=[y - marks[f"{domain}_low"], marks[f"{domain}_high"] - y],
                fmt="o", ms=3.5, color=colour, lw=0.9,
            )  # fmt: skip
    if len(marks):
        left.plot([], [], "o", ms=3.5, color=BLACK, label="simulated")
    left.set_ylim(0.8, 8.4)
    left.set_ylabel("tokens verified a request", fontsize=8)
    left.legend(fontsize=6.5, frameon=False, ncols=2, loc="upper right")
    right.plot(n, lines["scheduled"], color=BLUE, lw=1.6, label="scheduled (greedy)")
    right.plot(n, lines["searched"], color=PURPLE, lw=1.0, ls="--", label="scheduled (search)")
    right.plot(n, lines["best_fixed"], color=ORANGE, lw=1.2, ls="-.",
               label="best single length")  # fmt: skip
    right.plot(n, lines["none"], color=BLACK, lw=1.0, ls=":", label="no draft verified")
    right.axhline(1.0, color="#888888", lw=0.8)
    right.set_ylabel(f"tokens/s over verifying all {BLOCK}", fontsize=8)
    right.legend(fontsize=6.5, frameon=False, loc="lower right")
    for axes in (left, right):
        axes.set_xlabel("requests decoded together", fontsize=8)
    return figure


if __name__ == "__main__":
    run("dspark_budget", compute, draw)
