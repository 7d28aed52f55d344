"""Serial SD and DSI over plain decoding, over acceptance and draft cost (arXiv 2405.14105).

One request, long outputs, i.i.d. acceptance, a draft forward of c target passes. SD at a fixed
k = 5 slows decoding down where c is large (hatched); DSI verifies on further copies of the target,
so that only rejections cost a pass, and never falls behind: the limit of its Proposition 1 (a task
for each drafted token, no communication, as many copies as keep any task from waiting: dashed).
Circles: simulated, in the colour of their own speedup.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure

from analysis import dsi, sd
from figures._simulated import Point, interval, outcomes
from figures.style import RED, new_figure, run
from psdsim import Scenario
from psdsim.run.basis import Basis

K = 5
PANELS = (
    ("sd", f"SD (k = {K}) / AR", [0.4, 0.7, 1, 1.5, 2, 3, 4, 6, 9]),
    ("dsi", "DSI / AR", [0.4, 0.7, 1, 1.5, 2, 3, 4, 6, 9]),
    ("dsi_over_best", "DSI / better of AR, SD at best k", [1, 1.1, 1.2, 1.3, 1.4, 1.5, 2]),
)


def scenario(alpha: float, draft_cost_ratio: float, n_tokens: int) -> Scenario:
    """Return one request at a time, a target pass of 1 s."""
    return Scenario.builtin(
        {
            "acceptance.alpha": alpha,
            "step_time": {
                "target": {"kind": "constant", "time_s": 1.0},
                "draft": {"kind": "constant", "time_s": draft_cost_ratio},
            },
            "workload": {
                "kind": "batch", "n_requests": 8, "prompt_tokens": 1, "output_tokens": n_tokens,
            },
            "engine": {"max_num_seqs": 1, "kv_blocks": "unlimited"},
            "assumed": {},
        }
    )  # fmt: skip


def speedups(name: str, cells: list[tuple[float, float]], quick: bool) -> pd.DataFrame:
    """Return simulated tokens/s of cells (alpha, c), which are speedups: AR takes 1 s a token."""
    wanted: list[Point] = [
        (scenario(a, c, 60 if quick else 300), name, K if name == "sd" else 1, Basis.STEP_BATCH)
        for a, c in cells
    ]
    found = [interval(runs, "decode_throughput")
             for runs in outcomes(wanted, 3, parallel=not quick)]  # fmt: skip
    return pd.DataFrame(
        {
            name: [e.mean for e in found],
            f"{name}_low": [e.low for e in found],
            f"{name}_high": [e.high for e in found],
        }
    )


def points(quick: bool) -> pd.DataFrame:
    """Return simulated speedups."""
    alphas = (0.6,) if quick else (0.3, 0.6, 0.85)
    costs = (0.2,) if quick else (0.1, 0.2, 0.5)
    cells = [(a, c) for a in alphas for c in costs]
    found = [pd.DataFrame(cells, columns=["alpha", "draft_cost_ratio"])]
    found += [speedups(name, cells, quick) for name in ("sd", "dsi")]
    return pd.concat(found, axis=1).assign(kind="point")


def compute(quick: bool = False) -> pd.DataFrame:
    """Return kind, alpha, draft_cost_ratio and the three ratios: a map, and simulated points."""
    return pd.concat([grid(quick).assign(kind="map"), points(quick)], ignore_index=True)


def grid(quick: bool = False) -> pd.DataFrame:
    """Return alpha, draft_cost_ratio and the three ratios on a grid."""
    n = 31 if quick else 91
    alpha, cost = np.meshgrid(np.linspace(0.01, 0.99, n), np.geomspace(0.02, 1.0, n))
    best = np.maximum(sd.speedup(alpha, sd.best_k(alpha, cost), cost), 1.0)
    parallel = np.asarray(dsi.speedup_limit(alpha, cost, 1.0))
    return pd.DataFrame(
        {
            "alpha": alpha.ravel(),
            "draft_cost_ratio": cost.ravel(),
            "sd": sd.speedup(alpha, K, cost).ravel(),
            "dsi": parallel.ravel(),
            "dsi_over_best": (parallel / best).ravel(),
        }
    )


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the three maps; slower than plain decoding is hatched."""
    figure = new_figure(2, 2.7, 3)
    cells, marks = (frame[frame["kind"] == kind] for kind in ("map", "point"))
    n = cells["alpha"].nunique()
    names = ("alpha", "draft_cost_ratio", *(name for name, _, _ in PANELS))
    grids = {name: cells[name].to_numpy().reshape(-1, n) for name in names}
    x, y = grids["alpha"], grids["draft_cost_ratio"]
    for axes, (name, title, levels) in zip(figure.axes[:3], PANELS, strict=True):
        filled = axes.contourf(x, y, grids[name], levels=levels, cmap="cividis", extend="both")
        if (grids[name] < 1.0 - 1e-12).any():
            axes.contourf(x, y, grids[name], levels=[0, 1], colors="none", hatches=["////"])
            axes.contour(x, y, grids[name], levels=[1.0], colors=[RED], linewidths=1.4)
            axes.annotate("slower than AR", (0.06, 0.7), fontsize=7, color="white",
                          bbox={"fc": RED, "ec": "none", "pad": 1.5})  # fmt: skip
        if name in marks and f"{name}_low" in marks:
            _circles(axes, marks, name, filled)
        bar = figure.colorbar(filled, ax=axes, location="top", shrink=0.95, aspect=25)
        bar.set_label(title, fontsize=7.5)
        bar.ax.tick_params(labelsize=6.5)
        axes.set_xlabel(r"acceptance $\alpha$", fontsize=8)
        axes.set_yscale("log")
        axes.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1], [".02", ".05", ".1", ".2", ".5", "1"])
        axes.minorticks_off()
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
        axes.set_xlim(0.01, 0.99)
    figure.axes[0].set_ylabel("draft forward / target pass, c", fontsize=8)
    middle = figure.axes[1]
    for copies in (2, 5, 10, 25):
        at = 1.0 / copies
        middle.axhline(at, color="white", lw=0.7, ls="--")
        middle.annotate(f"{copies} copies", (0.03, at), fontsize=6, color="white", va="bottom")
    return figure


def _circles(axes: Axes, marks: pd.DataFrame, name: str, filled: QuadContourSet) -> None:
    colours = filled.to_rgba(marks[name])
    axes.scatter(
        marks["alpha"], marks["draft_cost_ratio"], s=22, c=colours, ec="white", lw=0.8, zorder=4
    )


if __name__ == "__main__":
    run("dsi_maps", compute, draw)
