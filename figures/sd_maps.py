"""Serial SD: largest speedup and the draft length that gives it, over acceptance and draft cost.

Leviathan et al. 2023, Theorem 3.8 and Corollary 3.9: some k helps exactly where alpha > c.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.sd import best_k, speedup
from figures.style import new_figure, run


def compute(quick: bool = False) -> pd.DataFrame:
    """Return alpha, draft_cost_ratio, best k and its speedup on a grid."""
    n = 41 if quick else 121
    alpha, cost = np.meshgrid(np.linspace(0.02, 0.98, n), np.geomspace(0.01, 1.0, n))
    k = best_k(alpha, cost, max_k=32)
    return pd.DataFrame(
        {
            "alpha": alpha.ravel(),
            "draft_cost_ratio": cost.ravel(),
            "best_k": k.ravel(),
            "speedup": speedup(alpha, k, cost).ravel(),
        }
    )


def draw(frame: pd.DataFrame) -> Figure:
    """Draw both maps with the break-even line."""
    figure = new_figure(2, 2.7, 2)
    n = frame["alpha"].nunique()
    grids = {name: frame[name].to_numpy().reshape(-1, n) for name in frame.columns}
    panels = (
        ("speedup", "speedup over plain decoding", [1.001, 1.25, 1.5, 2, 3, 4, 6]),
        ("best_k", "best k (tokens)", [0.5, 1.5, 2.5, 4.5, 8.5, 16.5, 33]),
    )
    for axes, (name, label, levels) in zip(figure.axes[:2], panels, strict=True):
        filled = axes.contourf(
            grids["alpha"], grids["draft_cost_ratio"], grids[name],
            levels=levels, cmap="cividis", extend="max",
        )  # fmt: skip
        bar = figure.colorbar(filled, ax=axes, label=label)
        bar.ax.tick_params(labelsize=7)
        bar.ax.yaxis.label.set_size(8)
        edge = np.linspace(0.02, 0.98, 200)
        axes.plot(edge, edge, color="#D55E00", lw=1.5)
        axes.annotate(r"no gain above $c = \alpha$", (0.06, 0.7), color="#D55E00", fontsize=7)
        axes.set_yscale("log")
        axes.set_xlabel(r"acceptance $\alpha$", fontsize=8)
        axes.set_ylabel("draft forward / target pass", fontsize=8)
    return figure


if __name__ == "__main__":
    run("sd_maps", compute, draw)
