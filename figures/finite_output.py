"""How much the end of an output costs: tokens per round for n tokens against the long run.

n / E[R_n] is below E[N], since the stop clips the last block and the request may end early in it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.finite import expected_rounds_upto
from figures.style import BLUE, GREEN, ORANGE, new_figure, run
from psdsim.acceptance import IidAcceptance


def compute(quick: bool = False) -> pd.DataFrame:
    """Return the shortfall 1 - (n / E[R_n]) / E[N] for lengths, alpha and k."""
    lengths = np.unique(np.geomspace(4, 2000, 15 if quick else 60).astype(int))
    rows = []
    for alpha, k in itertools.product((0.6, 0.8, 0.95), (3, 6)):
        model = IidAcceptance(alpha=alpha)
        rounds = expected_rounds_upto(int(lengths[-1]), np.concatenate([[0.0], model.pmf(k)]))
        effective = lengths / rounds[lengths]
        for n, value in zip(lengths, effective, strict=True):
            shortfall = 1.0 - value / model.acceptance_length(k)
            rows.append({"alpha": alpha, "k": k, "n_tokens": int(n), "shortfall": shortfall})
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the shortfall against the output length."""
    figure = new_figure(1, 2.5)
    axes = figure.axes[0]
    colours = dict(zip((0.6, 0.8, 0.95), (ORANGE, BLUE, GREEN), strict=True))
    for (alpha, k), part in frame.groupby(["alpha", "k"]):
        style = "-" if k == 3 else "--"
        axes.plot(
            part["n_tokens"], 100 * part["shortfall"], color=colours[alpha], ls=style, lw=1.2,
            label=rf"$\alpha$={alpha:g}, k={k}",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(0.03, 60)
    axes.set_xlabel("decoded tokens n", fontsize=8)
    axes.set_ylabel("tokens per round lost (%)", fontsize=8)
    axes.legend(fontsize=6, frameon=False)
    return figure


if __name__ == "__main__":
    run("finite_output", compute, draw)
