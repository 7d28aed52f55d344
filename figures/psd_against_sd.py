"""MineDraft against serial SD: what two sub-batches gain, and what of it a fair count leaves.

Affine passes: V = 1 + b m, D = k (d0 + d1 m) in units of the fixed part of a target pass. Same
step batch: both verify m requests a step. Equal concurrency: MineDraft's halves hold m/2 each, so
its gain is what half a batch saves. Per GPU: five GPUs against four.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.psd import speedup_at_equal_concurrency, speedup_over_sd, speedup_per_gpu
from figures.style import BLUE, GREEN, ORANGE, RED, new_figure, run


def compute(quick: bool = False) -> pd.DataFrame:
    """Return the three ratios over D/V and the share of a pass that grows with the batch."""
    n = 31 if quick else 121
    ratio, share = np.meshgrid(np.linspace(0.05, 2.5, n), np.linspace(0.0, 1.0, n))
    draft, verify = ratio, np.ones_like(ratio)
    half = 1.0 - share / 2.0  # time of half a batch / time of the whole batch
    return pd.DataFrame(
        {
            "draft_over_verify": ratio.ravel(),
            "growing_share": share.ravel(),
            "same_step_batch": speedup_over_sd(draft, verify).ravel(),
            "per_gpu": speedup_per_gpu(draft, verify, 4, 1).ravel(),
            "equal_concurrency": speedup_at_equal_concurrency(
                draft, verify, draft * half, verify * half
            ).ravel(),
        }
    )


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the ratios against D/V, and the map at equal concurrency with its boundary."""
    figure = new_figure(2, 2.7, 2)
    left, right = figure.axes[:2]
    flat = frame[frame["growing_share"] == 0.0]
    full = frame[frame["growing_share"] == 1.0]
    x = flat["draft_over_verify"]
    left.plot(x, flat["same_step_batch"], color=BLUE, lw=2.5, label="same step batch")
    left.plot(x, flat["per_gpu"], color=GREEN, ls="--", label="per GPU (5 against 4)")
    left.plot(
        x, full["equal_concurrency"], color=ORANGE, ls="-.", label="same n, passes grow with m"
    )
    left.plot(x, flat["equal_concurrency"], color=ORANGE, ls=":", label="same n, passes don't grow")
    left.axhline(1.0, color="#888888", lw=0.8)
    left.set_xlabel("drafting phase / target pass, D/V", fontsize=8)
    left.set_ylabel("MineDraft / SD throughput", fontsize=8)
    left.set_ylim(0.4, 2.9)
    left.legend(fontsize=6, frameon=False, loc="upper right")
    n = frame["draft_over_verify"].nunique()
    grids = {name: frame[name].to_numpy().reshape(-1, n) for name in frame.columns}
    args = (grids["draft_over_verify"], grids["growing_share"], grids["equal_concurrency"])
    filled = right.contourf(*args, levels=np.linspace(0.5, 2.0, 7), cmap="cividis")
    bar = figure.colorbar(filled, ax=right, label="MineDraft / SD at equal concurrency")
    bar.ax.tick_params(labelsize=7)
    bar.ax.yaxis.label.set_size(7)
    right.contour(*args, levels=[1.0], colors=[RED], linewidths=1.2)
    right.annotate("wins above the line", (0.9, 0.9), color="#FFFFFF", fontsize=7)
    right.set_xlabel("drafting phase / target pass, D/V", fontsize=8)
    right.set_ylabel("share of a pass that grows with m", fontsize=8)
    return figure


if __name__ == "__main__":
    run("psd_against_sd", compute, draw)
