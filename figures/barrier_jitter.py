"""What jitter costs at a barrier, and what more sub-batches could win back.

Left: a step waits for the slowest of n equal passes (draft and target, or tensor-parallel workers);
share of throughput lost against constant times, gamma distributed. Right: throughput of M
sub-batches that circulate between drafter and verifier without a common barrier (a cyclic queue of
two exponential servers, Gordon and Newell 1967), as a share of what constant times give; M = 2 is
MineDraft.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.stage_laws import Gamma
from analysis.stages_cyclic import cyclic_throughput_deterministic, cyclic_throughput_exponential
from analysis.stages_many import barrier_loss
from figures.style import BLUE, GREEN, ORANGE, RED, new_figure, run


def compute(quick: bool = False) -> pd.DataFrame:
    """Return both panels in long form: panel, x, line, value."""
    rows = []
    for cv in np.linspace(0.02, 1.0, 8 if quick else 40):
        law = Gamma(1.0 / cv**2, cv**2)
        for n in (2, 4, 8):
            loss = barrier_loss([law] * n, [1.0] * n)
            rows.append({"panel": "loss", "x": cv, "line": n, "value": loss})
    for ratio in (0.5, 0.8, 1.0):
        for m in range(1, 9):
            share = cyclic_throughput_exponential(ratio, 1.0, m) / cyclic_throughput_deterministic(
                ratio, 1.0, m
            )
            rows.append({"panel": "cyclic", "x": m, "line": ratio, "value": float(share)})
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the loss against the CV, and the share against the number of sub-batches."""
    figure = new_figure(2, 2.5, 2)
    left, right = figure.axes[:2]
    loss = frame[frame["panel"] == "loss"]
    for (n, part), colour in zip(loss.groupby("line"), (BLUE, ORANGE, RED), strict=True):
        left.plot(part["x"], 100 * part["value"], color=colour, label=f"{n:.0f} passes")
    left.set_xlabel("standard deviation / mean of a pass", fontsize=8)
    left.set_ylabel("throughput lost at the barrier (%)", fontsize=8)
    left.legend(fontsize=7, frameon=False)
    cyclic = frame[frame["panel"] == "cyclic"]
    for (ratio, part), (colour, marker) in zip(
        cyclic.groupby("line"), ((GREEN, "s"), (ORANGE, "^"), (BLUE, "o")), strict=True
    ):
        right.plot(
            part["x"], 100 * part["value"], color=colour, marker=marker, ms=3, lw=1,
            label=f"D/V = {ratio:g}",
        )  # fmt: skip
    right.set_xlabel("sub-batches M", fontsize=8)
    right.set_ylabel("throughput, exponential /\nconstant times (%)", fontsize=8)
    right.set_ylim(60, 102)
    right.legend(fontsize=7, frameon=False, loc="lower right")
    return figure


if __name__ == "__main__":
    run("barrier_jitter", compute, draw)
