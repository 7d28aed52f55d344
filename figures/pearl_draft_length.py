"""PEARL's Table 5: tokens/s over the draft length, published and predicted, for three pairs.

Predicted from other tables of the paper, nothing fitted: step times from Table 10, alpha from the
mean run of accepted tokens in Table 7. Lines: closed form of long outputs; marks: simulation of the
paper's setting with 95 % intervals over its prompts; crosses: published (A100, batch 1, greedy).
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from figures.style import BLACK, COLOURS, new_figure, run
from repro import pearl, pearl_inputs


def compute(quick: bool = False) -> pd.DataFrame:
    """Return pair, k, formula, simulated, low, high, published (tokens/s), speed_ratio, alpha."""
    rows = []
    for p in pearl_inputs.pairs():
        published, alpha = p.data["table5"], p.alpha
        if published is None or alpha is None:
            continue
        for k in range(2, 9):
            value, (low, high) = pearl.speedup(p, "pearl", k, alpha, pearl.size_of(quick))
            formula = pearl_inputs.speedup(p, "pearl", k, alpha, alpha)
            rows.append(
                {
                    "pair": p.name, "k": k, "formula": formula / p.target_s,
                    "simulated": value / p.target_s, "low": low / p.target_s,
                    "high": high / p.target_s, "published": published.get(k),
                    "plain": 1.0 / p.target_s, "speed_ratio": p.speed_ratio, "alpha": alpha,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw a panel a pair."""
    names = list(dict.fromkeys(frame["pair"]))
    figure = new_figure(2, 2.5, len(names))
    for axes, name in zip(figure.axes, names, strict=True):
        part = frame[frame["pair"] == name]
        k, y, first = part["k"], part["simulated"], part.iloc[0]
        axes.plot(k, part["formula"], color=COLOURS["pearl"], lw=1.2, label="closed form")
        axes.errorbar(
            k, y, yerr=[y - part["low"], part["high"] - y], fmt="o", ms=3, lw=0.9,
            color=COLOURS["pearl"], label="simulated",
        )  # fmt: skip
        axes.plot(k, part["published"], "x", ms=5, mew=1.3, color=BLACK, label="published")
        axes.axhline(first["plain"], color="#888888", lw=0.8, ls=":")
        axes.annotate("AR", (8, first["plain"]), fontsize=6.5, color="#666666", va="bottom")
        axes.axvline(first["speed_ratio"], color="#888888", lw=0.8, ls="--")
        axes.set_ylim(0, 1.15 * max(part["formula"].max(), part["published"].max()))
        axes.annotate(
            f"target / draft pass {first['speed_ratio']:.2f}\n" rf"$\alpha$ {first['alpha']:.3f}",
            (0.97, 0.04), fontsize=6.5, xycoords="axes fraction", color="#666666", ha="right",
            bbox={"fc": "white", "ec": "none", "pad": 1.0},
        )  # fmt: skip
        axes.set_title(name, fontsize=7.5)
        axes.set_xlabel("drafted tokens k", fontsize=8)
        axes.set_ylabel("tokens/s", fontsize=8)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=7, frameon=False)
    return figure


if __name__ == "__main__":
    run("pearl_draft_length", compute, draw)
