"""P(accept) of a drafted token by its position, for three drafters (DSpark, Figure 2).

Read off the plot of arXiv 2607.05147 (vector graphics, to about 0.003): Qwen3-4B, T = 1. A drafter
that sees what it drafted (Eagle3) rises over the block, as hard texts drop out; one that drafts in
parallel (DFlash) dips behind the first token; DSpark's sequential head keeps it flat. The legend
has the acceptance length that follows by the chain rule, 1 + sum of products.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.rounds import acceptance_length_position
from figures.style import BLUE, GREEN, ORANGE, new_figure, run
from psdsim.methods.drafters import DOMAINS, PROFILES

STYLES = {
    "dspark": ("DSpark", BLUE, "o"),
    "dflash": ("DFlash", ORANGE, "s"),
    "eagle3": ("Eagle3", GREEN, "^"),
}
ERROR = 0.003
"""Of reading the plot."""


def compute(quick: bool = False) -> pd.DataFrame:
    """Return domain, drafter, position, acceptance, survival, acceptance_length."""
    parts = []
    for domain, drafter in product(DOMAINS, STYLES):
        rates = PROFILES[drafter][domain]
        parts.append(
            pd.DataFrame(
                {
                    "domain": domain,
                    "drafter": drafter,
                    "position": np.arange(1, len(rates) + 1),
                    "acceptance": rates,
                    "survival": np.cumprod(rates),
                    "acceptance_length": float(acceptance_length_position(rates)),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw a panel a domain."""
    domains = list(dict.fromkeys(frame["domain"]))
    figure = new_figure(2, 2.3, len(domains))
    for axes, domain in zip(figure.axes, domains, strict=True):
        part = frame[frame["domain"] == domain]
        for drafter, rows in part.groupby("drafter", sort=False):
            name, colour, marker = STYLES[str(drafter)]
            length = rows["acceptance_length"].iloc[0]
            axes.errorbar(
                rows["position"], rows["acceptance"], yerr=ERROR, fmt=f"{marker}-", ms=3, lw=1.1,
                color=colour, label=f"{name}: {length:.2f}",
            )  # fmt: skip
        axes.set_ylim(0.3, 1.0)
        axes.set_title(domain.capitalize(), fontsize=8)
        axes.set_xticks(range(1, 8))
        axes.set_xlabel("position in the block", fontsize=8)
        axes.set_ylabel("P(accept | all before accepted)", fontsize=7.5)
        axes.legend(fontsize=6.5, frameon=False, loc="lower right", title="tokens a round",
                    title_fontsize=6.5)  # fmt: skip
    return figure


if __name__ == "__main__":
    run("dspark_profiles", compute, draw)
