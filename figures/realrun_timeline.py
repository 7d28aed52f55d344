"""A measured timeline beside the simulator's replay of the same run.

MineDraft at k = 4 with two sub-batches of 4 requests, built-in pair on two CPU cores; the simulator
has the run's accepted drafts and the calibrated step times. Both start at their first drafting
phase. Measured by benchmarks/record_builtin.py.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from figures.style import BLUE, HERE, ORANGE, new_figure, run

N_PASSES = 16
"""Passes of each device that are shown."""
LANES = [
    ("measured", "target"),
    ("measured", "draft"),
    ("simulated", "target"),
    ("simulated", "draft"),
]


def compute(quick: bool = False) -> pd.DataFrame:
    """Return source, device, group, start_ms, end_ms of the first passes behind the prefill."""
    spans = pd.read_csv(HERE / "measured" / "timeline.csv")
    spans = spans[spans["kind"] != "prefill"]
    parts = []
    for source, part in spans.groupby("source", sort=False):
        zero = part.loc[part["kind"] == "draft", "start_s"].min()
        for device, passes in part.groupby("device", sort=False):
            first = passes.sort_values("start_s").head(N_PASSES)
            parts.append(
                pd.DataFrame(
                    {
                        "source": source,
                        "device": device,
                        "group": first["group"],
                        "start_ms": 1e3 * (first["start_s"] - zero),
                        "end_ms": 1e3 * (first["end_s"] - zero),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw four lanes, coloured by sub-batch."""
    figure = new_figure(2, 2.0)
    axes = figure.axes[0]
    colours = {0: BLUE, 1: ORANGE}
    for row in frame.itertuples():
        lane = LANES.index((row.source, row.device))
        axes.broken_barh(
            [(row.start_ms, row.end_ms - row.start_ms)], (-lane - 0.4, 0.8),
            facecolors=colours[int(row.group)], edgecolor="white", lw=0.3,
        )  # fmt: skip
    axes.set_yticks([-i for i in range(len(LANES))])
    axes.set_yticklabels([f"{source}: {device}" for source, device in LANES])
    axes.set_xlim(0, frame["end_ms"].max() * 1.02)
    axes.set_xlabel("time since the first drafting phase (ms)", fontsize=8)
    axes.set_ylabel("device", fontsize=8)
    handles = [Patch(color=colour, label=f"sub-batch {group}") for group, colour in colours.items()]
    axes.legend(
        handles=handles, fontsize=7, frameon=False, ncols=2, loc="lower right",
        bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0,
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    run("realrun_timeline", compute, draw)
