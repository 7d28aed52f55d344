"""Accepted drafts a round on real text, before and after distillation, and what i.i.d. would give.

Built-in pair, SD at k = 8, greedy, held-out source code; bars with 95 % intervals (Wilson) over
rounds. Points: the geometric law with the same alpha = accepted / judged. Measured by
benchmarks/record_builtin.py.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import binomtest

from figures.style import BLACK, BLUE, HERE, ORANGE, new_figure, run
from psdsim.acceptance import IidAcceptance, alpha_from_histogram

NAMES = {"builtin:draft": ("trained on code", ORANGE), "builtin:distilled": ("distilled", BLUE)}


def compute(quick: bool = False) -> pd.DataFrame:
    """Return draft, accepted, share, low, high, iid, alpha, length."""
    counts = pd.read_csv(HERE / "measured" / "acceptance.csv")
    rows = []
    for draft, part in counts.groupby("draft", sort=False):
        rounds = part.sort_values("accepted")["rounds"].to_numpy()
        k, total = rounds.size - 1, int(rounds.sum())
        alpha = alpha_from_histogram(rounds)
        law = IidAcceptance(alpha=alpha).pmf(k)
        length = 1 + float(rounds @ np.arange(k + 1)) / total
        for accepted, n in enumerate(rounds.tolist()):
            interval = binomtest(n, total).proportion_ci(0.95, method="wilson")
            rows.append(
                {
                    "draft": draft, "accepted": accepted, "share": n / total, "low": interval.low,
                    "high": interval.high, "iid": law[accepted], "alpha": alpha, "length": length,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw two bars for each number of accepted drafts."""
    figure = new_figure(1, 2.6)
    axes = figure.axes[0]
    for i, (draft, part) in enumerate(frame.groupby("draft", sort=False)):
        name, colour = NAMES[str(draft)]
        x = part["accepted"] + 0.4 * (i - 0.5)
        error = [part["share"] - part["low"], part["high"] - part["share"]]
        first = part.iloc[0]
        axes.bar(
            x, part["share"], width=0.38, color=colour, yerr=error, error_kw={"lw": 0.7},
            label=f"{name}: alpha {first['alpha']:.3f}, length {first['length']:.2f}",
        )  # fmt: skip
        axes.plot(
            x, part["iid"], "o", color=BLACK, ms=2.5, lw=0,
            label="i.i.d. with that alpha" if i else None,
        )  # fmt: skip
    axes.set_xticks(sorted(frame["accepted"].unique()))
    axes.set_xlabel("accepted drafts of a round (k = 8)", fontsize=8)
    axes.set_ylabel("share of rounds", fontsize=8)
    axes.legend(fontsize=6.5, frameon=False, loc="upper center")
    return figure


if __name__ == "__main__":
    run("realrun_acceptance", compute, draw)
