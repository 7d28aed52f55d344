"""Predicted against measured, on cells that the calibration never saw.

Built-in pair on two CPU cores; one point a cell (schedule, draft length, batch size), horizontal
bars: quartiles of repeated measurements. Lines: equality and 12 % beside it. Measured by
benchmarks/heldout_prediction.py.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.style import BLACK, COLOURS, HERE, new_figure, run

PANELS = (("throughput", 1.0, "throughput (tokens/s)"), ("step_s", 1e3, "mean decode step (ms)"))
MARKERS = {"sd": "s", "minedraft": "o", "pearl": "^"}
BAND = 0.12


def compute(quick: bool = False) -> pd.DataFrame:
    """Return panel, schedule, k, batch, measured, noise, predicted."""
    table = pd.read_csv(HERE / "measured" / "heldout.csv")
    parts = []
    for panel, scale, _ in PANELS:
        part = table[["schedule", "k", "batch"]].copy()
        part.insert(0, "panel", panel)
        part["measured"] = table[panel] * scale
        part["noise"] = table[f"{panel}_noise"]
        part["predicted"] = table[f"{panel}_predicted"] * scale
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw both panels."""
    figure = new_figure(2, 2.7, 2)
    for axes, (panel, _, label) in zip(figure.axes, PANELS, strict=True):
        _panel(axes, frame[frame["panel"] == panel], label)
    figure.axes[0].legend(fontsize=7, frameon=False, loc="upper left")
    return figure


def _panel(axes: Axes, part: pd.DataFrame, label: str) -> None:
    low = 0.85 * min(part["measured"].min(), part["predicted"].min())
    high = 1.15 * max(part["measured"].max(), part["predicted"].max())
    ends = np.array([low, high])
    axes.fill_between(ends, ends * (1 - BAND), ends * (1 + BAND), color="0.9", lw=0)
    axes.plot(ends, ends, color=BLACK, lw=0.8)
    for schedule, cells in part.groupby("schedule", sort=False):
        axes.errorbar(
            cells["measured"], cells["predicted"], xerr=cells["measured"] * cells["noise"],
            fmt=MARKERS[str(schedule)], color=COLOURS[str(schedule)], ms=4, lw=0.8, mfc="none",
            label=str(schedule),
        )  # fmt: skip
    error = (part["predicted"] / part["measured"] - 1).abs()
    words = f"|error|: median {100 * error.median():.1f} %, worst {100 * error.max():.1f} %"
    axes.text(
        0.97, 0.05, words,
        transform=axes.transAxes, ha="right", fontsize=7,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_xlabel(f"measured {label}", fontsize=8)
    axes.set_ylabel(f"predicted {label}", fontsize=8)
    ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if low < t < high]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(_fixed(ticks))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")


def _fixed(ticks: list[int]) -> object:
    from matplotlib.ticker import FixedLocator

    return FixedLocator(ticks)


if __name__ == "__main__":
    run("realrun_prediction", compute, draw)
