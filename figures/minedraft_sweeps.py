"""MineDraft against SD over draft length, batch and draft model: throughput, TPOT, E2EL.

Built-in target (Qwen3-32B on four H100), a closed loop of 2m clients: SD verifies m requests a step
while m wait, MineDraft (a fifth GPU) holds all of them in two halves of m, as published. Marks are
simulated, with 95 % intervals over replications.

ASSUMED, per draft model. Acceptance: alpha = 1 - 1/MAT of nano-PEARL's H200 grid at batch 1 on
HumanEval, MAT 4.42 (0.6B) and 5.12 (1.7B); for the 4B none was found: 0.83, a guess along that
line. One forward: bf16 weights at 70 % of an H100's 3.35 TB/s, and 53 us a layer, with which the
0.6B takes the built-in scenario's 2 ms. Triangles: the largest gains that MineDraft's paper prints
for the three (70.3, 75.7 and 75.1 %; at which k and batch was not found).
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures._simulated import Point, interval, outcomes
from figures.style import BLACK, BLUE, GREEN, RED, new_figure, run
from psdsim import Scenario
from psdsim.run.basis import Basis

K, BATCH = 4, 16
"""Where the other of the two is swept."""
Cell = tuple[str, str, str, int, int]
"""What is swept, draft model, schedule, k, batch."""
FIGURES = (
    ("output_throughput", "tokens/s", 1.0),
    ("mean_tpot_ms", "TPOT (ms)", 1.0),
    ("mean_e2el_ms", "E2EL (s)", 1e-3),
)


@dataclass(frozen=True)
class Draft:
    """A draft model: its acceptance and one forward; both assumed."""

    alpha: float
    forward_s: float
    colour: str
    published_gain: float


DRAFTS = {
    "0.6B": Draft(0.774, 2.0e-3, BLUE, 1.7032),
    "1.7B": Draft(0.805, 3.0e-3, GREEN, 1.7568),
    "4B": Draft(0.83, 5.3e-3, RED, 1.7512),
}


def scenario(draft: Draft, batch: int, quick: bool) -> Scenario:
    """Return the deployment: 2m clients, steady for a few rounds of requests each."""
    # The draft's shape decides nothing here: its times are stated and memory never binds.
    return Scenario.builtin(
        {
            "acceptance.alpha": draft.alpha,
            "step_time.draft.base_s": draft.forward_s,
            "workload": {
                "kind": "concurrency", "n_requests": max(2 * batch * (2 if quick else 8), 24),
                "prompt_tokens": 256, "output_tokens": 64 if quick else 256,
                "concurrency": 2 * batch,
            },
            "engine.max_num_seqs": batch,
            "engine.kv_blocks": "unlimited",
        }
    )  # fmt: skip


def cells(quick: bool) -> list[Cell]:
    """Return every (over, draft, schedule, k, batch)."""
    ks = (1, 4, 8) if quick else tuple(range(1, 9))
    batches = (1, 16, 64) if quick else (1, 2, 4, 8, 16, 32, 64, 128)
    found: list[Cell] = []
    for over, swept in (("k", [(k, BATCH) for k in ks]), ("batch", [(K, m) for m in batches])):
        for k, batch in swept:
            found += [(over, d, s, k, batch) for d in DRAFTS for s in ("sd", "minedraft")]
            found.append((over, "none", "ar", k, batch))
    return found


def rows(wanted: list[Cell], quick: bool) -> pd.DataFrame:
    """Simulate some cells."""
    points: list[Point] = [
        (scenario(DRAFTS.get(draft, DRAFTS["0.6B"]), batch, quick), schedule, k, Basis.STEP_BATCH)
        for _, draft, schedule, k, batch in wanted
    ]
    found = []
    for cell, runs in zip(wanted, outcomes(points, 3, parallel=not quick), strict=True):
        row = dict(zip(("over", "draft", "schedule", "k", "batch"), cell, strict=True))
        for figure, _, scale in FIGURES:
            e = interval(runs, figure, scale)
            row |= {figure: e.mean, f"{figure}_low": e.low, f"{figure}_high": e.high}
        found.append(row)
    return pd.DataFrame(found)


def compute(quick: bool = False) -> pd.DataFrame:
    """Return over, draft, schedule, k, batch and each figure with its interval."""
    return rows(cells(quick), quick)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw a row of panels over k and one over the batch."""
    figure = new_figure(2, 4.4, 1)
    figure.clear()
    grid = figure.subplots(2, 4)
    for axes_row, over, label in zip(
        grid, ("k", "batch"), ("drafted tokens k", "batch of a pass, m"), strict=True
    ):
        part = frame[frame["over"] == over]
        _gain(axes_row[0], part, over)
        for axes, (name, unit, _) in zip(axes_row[1:], FIGURES, strict=True):
            _lines(axes, part, over, name)
            axes.set_ylabel(unit, fontsize=8)
        for axes in axes_row:
            axes.set_xlabel(label, fontsize=7.5)
            axes.tick_params(labelsize=7)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
            if over == "batch":
                axes.set_xscale("log", base=2)
                axes.set_xticks([1, 8, 64], ["1", "8", "64"])
    grid[1, 1].set_yscale("log")
    grid[1, 1].set_ylim(50, None)
    grid[0, 0].set_title(f"m = {BATCH}", fontsize=8, loc="left")
    grid[1, 0].set_title(f"k = {K}", fontsize=8, loc="left")
    figure.legend(handles=_legend(), loc="outside upper center", ncols=4, fontsize=7, frameon=False)
    return figure


def _lines(axes: Axes, part: pd.DataFrame, over: str, name: str) -> None:
    for (draft, schedule), cells in part.groupby(["draft", "schedule"], sort=False):
        x, y = cells[over], cells[name]
        if schedule == "ar":
            axes.plot(x, y, color=BLACK, lw=0.9, ls=":")
            continue
        axes.errorbar(
            x, y, yerr=[y - cells[f"{name}_low"], cells[f"{name}_high"] - y],
            color=DRAFTS[str(draft)].colour, lw=1.1, ms=3,
            fmt="o-" if schedule == "minedraft" else "s--",
            mfc="white" if schedule == "sd" else None,
        )  # fmt: skip
    axes.set_ylim(0, 1.08 * part[f"{name}_high"].max())


def _gain(axes: Axes, part: pd.DataFrame, over: str) -> None:
    """Draw the ratio of throughputs, with the gain that pays for the fifth GPU."""
    for name, draft in DRAFTS.items():
        own = part[part["draft"] == name]
        sd, mine = (own[own["schedule"] == s] for s in ("sd", "minedraft"))
        ratio = mine["output_throughput"].to_numpy() / sd["output_throughput"].to_numpy()
        axes.plot(sd[over], ratio, "o-", color=draft.colour, lw=1.1, ms=3)
        axes.plot(
            1.02, draft.published_gain, "<", color=draft.colour, ms=4, clip_on=False,
            transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    axes.axhline(1.25, color="#888888", lw=0.8, ls="-.")
    axes.set_ylabel("MineDraft / SD, tokens/s", fontsize=8)
    axes.set_ylim(0.95, 2.0)


def _legend() -> list[Line2D]:
    handles = [
        Line2D([], [], color=d.colour, lw=2, label=rf"{name}, $\alpha$={d.alpha:g}")
        for name, d in DRAFTS.items()
    ]
    return [
        *handles,
        Line2D([], [], color="#555555", marker="o", ms=3, label="MineDraft"),
        Line2D([], [], color="#555555", marker="s", ms=3, mfc="white", ls="--", label="SD"),
        Line2D([], [], color=BLACK, ls=":", label="AR"),
        Line2D([], [], color="#888888", lw=0.8, ls="-.", label="5 GPUs / 4"),
        Line2D([], [], color="#555555", ls="", marker="<", ms=4, label="largest published"),
    ]


if __name__ == "__main__":
    run("minedraft_sweeps", compute, draw)
