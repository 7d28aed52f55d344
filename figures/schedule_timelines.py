"""Timelines of schedules side by side: the same requests, the same text, one time axis.

Built-in scenario, four requests in flight at k = 4 (MineDraft: two halves of two), from the end of
the prompts' prefill. A number on a target pass is the tokens that it confirmed, all requests
together; on the right, all of them by the end of the axis.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from figures.style import BLUE, LABELS, ORANGE, RED, SKY, YELLOW, new_figure, run
from psdsim import Scenario, simulate
from psdsim.run.basis import Basis

NAMES = ("ar", "sd", "minedraft", "pearl", "card", "dsi")
"""Those of them that there are."""
N_SEQS, K, SHOWN_MS = 4, 4, 120.0
FACES = {("verify", 0): BLUE, ("verify", 1): SKY, ("draft", 0): ORANGE, ("draft", 1): YELLOW,
         ("sync", 0): RED, ("overhead", 0): "#555555"}  # fmt: skip


def scenario() -> Scenario:
    """Return the built-in deployment with four requests in flight."""
    return Scenario.builtin(
        {
            "workload": {
                "kind": "batch", "n_requests": N_SEQS, "prompt_tokens": 64, "output_tokens": 96,
            },
            "engine.max_num_seqs": N_SEQS,
        }
    )  # fmt: skip


def compute(quick: bool = False) -> pd.DataFrame:
    """Return method, device, kind, group, start_ms, end_ms, tokens confirmed, GPUs in use."""
    rows = []
    for name in NAMES:
        result = simulate(scenario(), name, K, basis=Basis.CONCURRENCY, seed=2, timeline=True)
        steps = result.steps
        zero = steps.loc[steps["kind"] == "prefill", "end_s"].max()
        confirmed = {round(s.end_s, 9): int(s.n_emitted_tokens) for s in steps.itertuples()}
        left = sorted(confirmed.items())
        for span in sorted(result.spans, key=lambda s: (s.end_s, s.device)):
            start, end = 1e3 * (span.start_s - zero), 1e3 * (span.end_s - zero)
            if span.kind in ("prefill", "idle") or start < 0 or start >= SHOWN_MS:
                continue
            tokens = 0
            if span.kind == "verify":
                # A pass's verdict is in the step that ends with it, or with the barrier behind it.
                while left and left[0][0] < round(span.end_s, 9):
                    left.pop(0)
                tokens = left[0][1] if left else 0
            rows.append(
                {
                    "method": name, "device": span.device, "kind": span.kind,
                    "group": max(span.group, 0), "start_ms": start, "end_ms": end,
                    "n_tokens": tokens, "n_gpus": result.n_gpus,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw a lane per device under each other, and the tokens confirmed."""
    lanes = list(dict.fromkeys(zip(frame["method"], frame["device"], strict=True)))
    order = {name: i for i, name in enumerate(NAMES)}
    lanes.sort(key=lambda lane: (order[lane[0]], lane[1] == "draft", lane[1]))
    heights, y, before = {}, 0.0, ""
    for lane in lanes:
        y += 0.0 if not before else 1.0 if lane[0] == before else 1.5
        heights[lane], before = y, lane[0]
    figure = new_figure(2, 0.75 + 0.24 * (y + 1))
    axes = figure.axes[0]
    for row in frame.itertuples():
        at = heights[(row.method, row.device)]
        end = min(row.end_ms, SHOWN_MS)
        axes.broken_barh(
            [(row.start_ms, end - row.start_ms)], (at - 0.4, 0.8),
            facecolors=FACES[(row.kind, row.group if row.kind in ("verify", "draft") else 0)],
            edgecolor="white", lw=0.3,
        )  # fmt: skip
        if row.n_tokens and row.end_ms <= SHOWN_MS:
            axes.annotate(
                str(row.n_tokens), ((row.start_ms + end) / 2, at), fontsize=5.5, ha="center",
                va="center", color="white" if row.group == 0 else "black",
            )  # fmt: skip
    for name in dict.fromkeys(name for name, _ in lanes):
        own = frame[(frame["method"] == name) & (frame["end_ms"] <= SHOWN_MS)]
        top = min(at for (other, _), at in heights.items() if other == name)
        axes.annotate(
            f"{own['n_tokens'].sum()} tokens\n{own['n_gpus'].iloc[0]} GPUs", (SHOWN_MS * 1.01, top),
            fontsize=6.5, va="center",
            annotation_clip=False,
        )  # fmt: skip
    axes.set_yticks(
        list(heights.values()),
        [f"{LABELS.get(name, name)}: {device}" for name, device in heights],
        fontsize=7,
    )
    axes.set_ylim(y + 0.6, -0.6)
    axes.set_xlim(0, SHOWN_MS)
    axes.set_xlabel("time since the prefill (ms)", fontsize=8)
    axes.set_ylabel("device", fontsize=8)
    names = {"verify": "target pass", "draft": "drafting", "sync": "handover",
             "overhead": "engine overhead"}  # fmt: skip
    used = set(zip(frame["kind"], frame["group"], strict=True))
    handles = [
        Patch(color=face, label=names[kind] + (", second half" if group else ""))
        for (kind, group), face in FACES.items()
        if group == 0 or (kind, group) in used
    ]
    axes.legend(
        handles=handles, fontsize=6.5, frameon=False, ncols=len(handles), loc="lower left",
        bbox_to_anchor=(-0.1, 1.0), borderaxespad=0.0, handlelength=1.2, columnspacing=1.0,
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    run("schedule_timelines", compute, draw)
