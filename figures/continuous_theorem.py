"""MineDraft's continuous model, recomputed: R(x) = SD time / PSD time, x = a V.

Accepted work in drafting time t is 1 - exp(-a t). R peaks at exactly 2 and tends to 1 on both
sides; the printed 1.59 and 1.61 hold on a range of x, not for all x above 1.68 or 2.23.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import brentq

from analysis.psd import continuous_ratio
from figures.style import BLUE, GREEN, RED, new_figure, run

PRINTED = {1.59: 1.68, 1.61: 2.23}
"""Claimed bound and the x from which it is claimed, by version of the theorem."""


def ranges() -> dict[float, tuple[float, float]]:
    """Return where R(x) is at least each printed bound."""
    peak = 1.2564312086

    def crossing(bound: float, low: float, high: float) -> float:
        return float(brentq(lambda x: float(continuous_ratio(x)) - bound, low, high))

    return {bound: (crossing(bound, 1e-3, peak), crossing(bound, peak, 100.0)) for bound in PRINTED}


def compute(quick: bool = False) -> pd.DataFrame:
    """Return x and R(x)."""
    x = np.geomspace(0.02, 100.0, 60 if quick else 400)
    return pd.DataFrame({"x": x, "ratio": continuous_ratio(x)})


def draw(frame: pd.DataFrame) -> Figure:
    """Draw R(x) with its maximum and the ranges of the printed bounds."""
    figure = new_figure(1, 2.5)
    axes = figure.axes[0]
    axes.plot(frame["x"], frame["ratio"], color=BLUE)
    axes.plot([1.2564312], [2.0], marker="o", ms=4, color=BLUE)
    axes.annotate("2 at x = 1.256", (1.35, 2.01), fontsize=7, va="bottom")
    for (bound, (low, high)), colour in zip(ranges().items(), (RED, GREEN), strict=True):
        axes.hlines(bound, low, high, color=colour, lw=1.5)
        axes.annotate(
            f"{bound} holds from {low:.3f} to {high:.2f}",
            (7.0, 1.7 if bound > 1.6 else 1.62),
            fontsize=6.5,
            color=colour,
        )
    axes.set_xscale("log")
    axes.set_ylim(1.0, 2.12)
    axes.set_xlabel("x = acceptance efficiency x verify time", fontsize=8)
    axes.set_ylabel("R = SD time / PSD time", fontsize=8)
    return figure


if __name__ == "__main__":
    run("continuous_theorem", compute, draw)
