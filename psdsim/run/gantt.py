"""A timeline as a picture: a lane per device and group, time from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psdsim.records import Span
from psdsim.run.perfetto import idle_spans

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, distinguishable with any colour vision; hatches tell groups apart.
_FACE = {
    "prefill": "#999999",
    "draft": "#E69F00",
    "verify": "#0072B2",
    "sync": "#D55E00",
    "overhead": "#000000",
    "idle": "#FFFFFF",
}
_HATCH = ("", "////")


def gantt(spans: list[Span], *, title: str, start_s: float, end_s: float, n_groups: int) -> Figure:
    """Draw the spans of one replica between two times.

    Parameters
    ----------
    spans
        What devices did.
    title
        Title of the picture.
    start_s, end_s
        Time window, s.
    n_groups
        Groups of the schedule; with several, each gets a lane under its device.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    inside = [s for s in spans if s.replica == 0 and s.end_s > start_s and s.start_s < end_s]
    lanes: list[tuple[str, str, int]] = []
    for device in ("target", "draft"):
        if not any(s.device == device for s in inside):
            continue
        lanes.append((device, device, -1))
        if n_groups > 1:
            lanes += [(f"{device}, sub-batch {g}", device, g) for g in range(n_groups)]
    figure = Figure(figsize=(10, 1.3 + 0.55 * len(lanes)), layout="constrained")
    axes = figure.subplots()
    for row, (_, device, group) in enumerate(lanes):
        bars = [s for s in inside if s.device == device and (group < 0 or s.group == group)]
        if group < 0:
            bars = bars + idle_spans(inside, device)
        for span in bars:
            left = max(span.start_s, start_s)
            width = min(span.end_s, end_s) - left
            hatch = _HATCH[span.group % 2] if span.group >= 0 and n_groups > 1 else ""
            axes.broken_barh(
                [((left - start_s) * 1e3, width * 1e3)],
                (row - 0.38, 0.76),
                facecolor=_FACE[span.kind],
                edgecolor="#444444" if span.kind == "idle" else "white",
                linestyle=":" if span.kind == "idle" else "-",
                hatch=hatch,
                linewidth=0.6,
            )
    axes.set_yticks(range(len(lanes)), [name for name, _, _ in lanes])
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_xlim(0, (end_s - start_s) * 1e3)
    axes.set_xlabel(f"time since {start_s * 1e3:.1f} ms of the run (ms)")
    axes.set_title(title, loc="left", fontsize=10)
    used = [kind for kind in _FACE if kind == "idle" or any(s.kind == kind for s in inside)]
    handles = [
        Patch(
            facecolor=_FACE[kind],
            edgecolor="#444444",
            linestyle=":" if kind == "idle" else "-",
            label=kind,
        )
        for kind in used
    ]
    if n_groups > 1:
        handles.append(
            Patch(facecolor="white", edgecolor="#444444", hatch="////", label="sub-batch 1")
        )
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
