"""What clustered rejections do to PEARL and to MineDraft.

Two-state acceptance: P(accept | accepted before) exceeds P(accept | rejected before) by the memory.

Left: the mean acceptance length of chain drafts is held, so SD and MineDraft don't notice; PEARL
gains, since it collects whole runs of acceptances, while a run of rejections costs it no more
than plain decoding. Right: the share of accepting output positions is held; chains lose, since
every round after a rejection starts badly, and PEARL gains again. So clustering narrows the gap.

Lines: closed forms; points: simulation with 95 % intervals.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import brentq

from analysis.pearl import tokens_per_step
from figures.style import COLOURS, new_figure, run
from psdsim import Scenario
from psdsim.acceptance import IidAcceptance, MarkovAcceptance
from psdsim.engine import simulate_run
from psdsim.run.prepare import prepare
from psdsim.stats import t_interval

K, ALPHA = 5, 0.75


def matched(gap: float) -> MarkovAcceptance:
    """Return the chain with after_accept - after_reject = gap and the i.i.d. mean length."""
    wanted = IidAcceptance(alpha=ALPHA).acceptance_length(K)

    def excess(after_accept: float) -> float:
        model = MarkovAcceptance(after_accept=after_accept, after_reject=after_accept - gap)
        return model.acceptance_length(K) - wanted

    a1 = float(brentq(excess, max(gap, 0.0) + 1e-6, 1.0 - 1e-6 + min(gap, 0.0)))
    return MarkovAcceptance(after_accept=a1, after_reject=a1 - gap)


def same_share(gap: float) -> MarkovAcceptance:
    """Return the chain with this memory and the i.i.d. share of accepting positions."""
    # stationary = a0 / (1 - a1 + a0) with a1 = a0 + gap
    after_reject = ALPHA * (1.0 - gap)
    return MarkovAcceptance(after_accept=after_reject + gap, after_reject=after_reject)


def _simulated(schedule: str, model: MarkovAcceptance, n_tokens: int) -> tuple[float, float, float]:
    scenario = Scenario.builtin(
        {
            "acceptance": model.model_dump(),
            "workload": {
                "kind": "batch", "n_requests": 32, "prompt_tokens": 1, "output_tokens": n_tokens,
            },
            "engine.max_num_seqs": 32,
            "engine.kv_blocks": "unlimited",
        }
    )  # fmt: skip
    values = []
    for replication in range(6):
        tally = simulate_run(prepare(scenario, schedule, K, replication=replication)).tally
        values.append(tally.n_round_tokens / tally.n_decode_seq_steps)
    e = t_interval(values)
    return e.mean, e.low, e.high


def compute(quick: bool = False) -> pd.DataFrame:
    """Return tokens per target pass for PEARL and for chain drafts over the memory."""
    rows = []
    for held, make in (("length", matched), ("share", same_share)):
        for gap in np.linspace(0.0, 0.6, 4 if quick else 13):
            model = make(float(gap))
            row = {
                "held": held,
                "memory": float(gap),
                "pearl_theory": float(tokens_per_step(model.after_accept, K, model.after_reject)),
                "chain_theory": model.acceptance_length(K),
            }
            for name, schedule in (("pearl", "pearl"), ("chain", "minedraft")):
                mean, low, high = _simulated(schedule, model, 400 if quick else 3000)
                row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
            rows.append(row)
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw tokens per target pass against the memory of acceptance, for both comparisons."""
    figure = new_figure(2, 2.5, 2)
    titles = {
        "length": rf"mean acceptance length of $\alpha$={ALPHA:g} held, k={K}",
        "share": rf"share of accepting positions {ALPHA:g} held, k={K}",
    }
    for axes, (held, title) in zip(figure.axes, titles.items(), strict=True):
        part = frame[frame["held"] == held]
        for name, schedule, label in (
            ("chain", "minedraft", "MineDraft (and SD)"),
            ("pearl", "pearl", "PEARL"),
        ):
            colour = COLOURS[schedule]
            axes.plot(part["memory"], part[f"{name}_theory"], color=colour, lw=1.2, label=label)
            low, high = part[name] - part[f"{name}_low"], part[f"{name}_high"] - part[name]
            axes.errorbar(
                part["memory"], part[name], yerr=[low, high], fmt="o", ms=2.5, color=colour, lw=0.8
            )
        axes.set_ylim(1.0, 4.6)
        axes.set_title(title, fontsize=7.5)
        axes.set_xlabel("P(accept | accepted before) - P(accept | rejected before)", fontsize=7)
        axes.set_ylabel("tokens per target pass", fontsize=8)
    figure.axes[0].legend(fontsize=7, frameon=False, loc="upper left")
    return figure


if __name__ == "__main__":
    run("clustering", compute, draw)
