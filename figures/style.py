"""What all figures share: size, colours that any eye tells apart, and how they are run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

HERE = Path(__file__).parent
COLUMN_IN = 3.4
"""Width of one column of a paper, inches."""

# Okabe and Ito's palette.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
COLOURS = {"ar": BLACK, "sd": ORANGE, "minedraft": BLUE, "pearl": GREEN}
"""A schedule has one colour in every figure."""
LABELS = {
    "ar": "AR", "sd": "SD", "minedraft": "MineDraft", "pearl": "PEARL", "card": "CARD",
    "dsi": "DSI", "dspark": "DSpark", "diversed": "DIVERSED", "distillspec": "DistillSpec",
    "ngram": "n-gram", "medusa-like": "Medusa-like", "diffuspec": "DiffuSpec", "eagle": "EAGLE",
    "smartspec": "SmartSpec", "specdec++": "SpecDec++", "pacer": "PACER", "tetris": "TETRIS",
    "minedraft+tetris": "MineDraft+TETRIS", "pearl-adaptive": "PEARL adaptive",
    "pearl-rc": "PEARL-RC", "reflective": "Reflective", "tabed": "TABED", "peft-bd": "PEFT-BD",
    "specdiff2": "SpecDiff-2", "poe-bridge": "PoE-Bridge",
}  # fmt: skip
"""What schedules and methods are called in pictures; the rest by their names."""


def new_figure(n_columns: int = 1, height_in: float = 2.6, n_panels: int = 1) -> Figure:
    """Return a figure as wide as a paper's column (or two), with its axes side by side."""
    figure = Figure(figsize=(COLUMN_IN * n_columns, height_in), layout="constrained", dpi=200)
    figure.subplots(1, n_panels)
    for axes in figure.axes:
        axes.tick_params(labelsize=7)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return figure


def run(
    name: str, compute: Callable[[bool], pd.DataFrame], draw: Callable[[pd.DataFrame], Figure]
) -> pd.DataFrame:
    """Compute (or read what was computed), draw, save; return what was drawn.

    ``--redraw`` takes the stored CSV; ``--quick`` computes a coarse version and stores nothing.
    """
    parser = argparse.ArgumentParser(prog=f"python -m figures.{name}")
    parser.add_argument("--redraw", action="store_true", help="use the stored data")
    parser.add_argument("--quick", action="store_true", help="coarse, to look at")
    options = parser.parse_args()
    data = HERE / "data" / f"{name}.csv"
    if options.redraw:
        frame = pd.read_csv(data)
    else:
        frame = compute(options.quick)
        if not options.quick:
            data.parent.mkdir(exist_ok=True)
            frame.to_csv(data, index=False, float_format="%.9g")
    picture = HERE / "out" / f"{name}.png"
    picture.parent.mkdir(exist_ok=True)
    draw(frame).savefig(picture)
    print(f"written: {picture}")
    return frame
