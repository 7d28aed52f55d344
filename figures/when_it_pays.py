"""Where SD and MineDraft stop paying: which of AR, SD and MineDraft is fastest, and where.

Built-in scenario with the target's step times from a roofline (Qwen3-32B on four H100, the default
ASSUMED efficiencies); each at its best k of 1..16. Regions from the closed forms; circles are
simulated, in the colour of what won there, white where the lead is within its 95 % interval. Top:
the same requests verified a step, so MineDraft holds twice as many. Bottom: the same in flight.
Left: as it is, MineDraft with a fifth GPU; right: per GPU. Lines: best over AR.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from analysis import psd, sd
from analysis.rounds import acceptance_length_iid
from figures._simulated import Point, interval, outcomes
from figures.style import BLACK, COLOURS, new_figure, run
from psdsim import Scenario
from psdsim.run.basis import Basis, n_gpus
from psdsim.run.prepare import costs

NAMES = ("ar", "sd", "minedraft")
TEXT = {"ar": "AR", "sd": "SD", "minedraft": "MineDraft"}
PALE = ("#BDBDBD", "#F7D08A", "#9CC7E3")
KS = np.arange(1, 17)
PANELS = tuple((basis, per_gpu) for basis in ("step-batch", "concurrency") for per_gpu in (0, 1))
Floats = NDArray[np.float64]


def scenario(load: int = 16, alpha: float = 0.77) -> Scenario:
    """Return the built-in deployment on a roofline, with a batch of a few waves."""
    return Scenario.builtin(
        {
            "step_time.target": {"kind": "roofline"},
            "acceptance.alpha": alpha,
            "workload.n_requests": 4 * load,
            "engine.max_num_seqs": load,
            "engine.max_num_batched_tokens": 32768,
        }
    )


def speeds(load: float, alpha: Floats, basis: str) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return tokens/s at the best k, and that k, of each schedule over some alphas."""
    deployed = scenario()
    times = costs(deployed, True)
    assert times.draft is not None
    work = deployed.workload
    context = float(work.prompt_tokens + work.output_tokens / 2)  # type: ignore[union-attr,operator]
    overhead, sync = times.step_overhead_s, times.sync_s

    def phases(m: float) -> tuple[Floats, Floats]:
        forward = times.draft(m, m, m * context)  # type: ignore[misc]
        verify = [times.target(m, m * (k + 1.0), m * context) for k in KS.tolist()]
        return KS * forward, np.array(verify)

    tokens = np.asarray(acceptance_length_iid(alpha[:, None], KS))
    plain = load / (overhead + times.target(load, load, load * context))
    draft_s, verify_s = phases(load)
    serial = load * tokens / sd.step_time(draft_s, verify_s, overhead)
    half = load if basis == "step-batch" else load / 2
    draft_s, verify_s = phases(half)
    overlapped = half * tokens / psd.step_time(draft_s, verify_s, overhead, sync)
    best = {"ar": np.full(alpha.size, plain), "sd": serial.max(1), "minedraft": overlapped.max(1)}
    k = {"ar": np.zeros(alpha.size), "sd": KS[serial.argmax(1)],
         "minedraft": KS[overlapped.argmax(1)]}  # fmt: skip
    return best, k


def gpu_counts(per_gpu: int) -> Floats:
    """Return what each schedule's speed is divided by: its GPUs, or 1."""
    gpus = np.array([n_gpus(name, scenario(), 4) for name in NAMES], dtype=np.float64)
    return gpus if per_gpu else np.ones(3)


def compute(quick: bool = False) -> pd.DataFrame:
    """Return kind (map or point), basis, per_gpu, load, alpha, winner (index), gain over AR."""
    n = 17 if quick else 49
    alphas = np.linspace(0.3, 0.96, n)
    rows = []
    for basis, per_gpu in PANELS:
        gpus = gpu_counts(per_gpu)
        for load in np.geomspace(2, 512, n):
            best, _ = speeds(float(load), alphas, basis)
            table = np.array([best[name] for name in NAMES]) / gpus[:, None]
            gain = table.max(0) / table[0]
            for alpha, winner, over in zip(alphas, table.argmax(0), gain, strict=True):
                rows.append(("map", basis, per_gpu, load, alpha, winner, over, True))
    columns = ["kind", "basis", "per_gpu", "load", "alpha", "winner", "gain", "decided"]
    return pd.DataFrame(rows + _points(quick), columns=columns)


def _points(quick: bool) -> list[tuple[object, ...]]:
    """Return who wins in simulations at each schedule's best k."""
    loads = (8,) if quick else (4, 32, 128, 384)
    alphas = np.array([0.8] if quick else [0.4, 0.6, 0.77, 0.9])
    keys, points = [], list[Point]()
    for basis in ("step-batch", "concurrency"):
        for load in loads:
            _, ks = speeds(float(load), alphas, basis)
            for i, alpha in enumerate(alphas.tolist()):
                keys.append((basis, load, alpha))
                deployed = scenario(load, alpha)
                points += [(deployed, name, int(ks[name][i]), Basis(basis)) for name in NAMES]
    runs = outcomes(points, 3, parallel=not quick)
    rows: list[tuple[object, ...]] = []
    for i, (basis, load, alpha) in enumerate(keys):
        own = [interval(run, "decode_throughput") for run in runs[3 * i : 3 * i + 3]]
        for per_gpu in (0, 1):
            gpus = gpu_counts(per_gpu)
            mean = np.array([e.mean for e in own]) / gpus
            half = np.array([e.high - e.mean for e in own]) / gpus
            first, second = np.argsort(mean)[::-1][:2]
            lead = mean[first] - mean[second]
            decided = bool(lead > np.hypot(half[first], half[second]))
            rows.append(
                ("point", basis, per_gpu, load, alpha, first, mean[first] / mean[0], decided)
            )
    return rows


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the four maps."""
    figure = new_figure(2, 4.9, 1)
    figure.clear()
    grid = figure.subplots(2, 2, sharey=True)
    for axes, (basis, per_gpu) in zip(grid.ravel(), PANELS, strict=True):
        part = frame[(frame["basis"] == basis) & (frame["per_gpu"] == per_gpu)]
        _map(axes, part)
        what = "requests verified a step, m" if basis == "step-batch" else "requests in flight, n"
        axes.set_xlabel(what, fontsize=8)
        axes.set_ylabel(r"acceptance $\alpha$", fontsize=8)
        held = "same m" if basis == "step-batch" else "same n"
        axes.set_title(f"{held}, {'per GPU' if per_gpu else 'absolute'}", fontsize=8)
        axes.tick_params(labelsize=7)
    handles = [
        *(Patch(color=c, label=f"{TEXT[name]} is fastest")
          for c, name in zip(PALE, NAMES, strict=True)),
        Line2D([], [], color=BLACK, lw=0.7, label="best / AR"),
        Line2D([], [], ls="", marker="o", mec=BLACK, mfc="#999999", ms=4, label="simulated"),
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper center", ncols=5, fontsize=7, frameon=False)
    return figure


def _map(axes: Axes, part: pd.DataFrame) -> None:
    cells = part[part["kind"] == "map"]
    n = cells["alpha"].nunique()
    x, y, winner, gain = (
        cells[name].to_numpy(dtype=np.float64).reshape(-1, n)
        for name in ("load", "alpha", "winner", "gain")
    )
    # Before the contours: their labels break the lines in the axes' own scale.
    axes.set_xscale("log", base=2)
    norm = BoundaryNorm([-0.5, 0.5, 1.5, 2.5], 3)
    axes.pcolormesh(x, y, winner, cmap=ListedColormap(PALE), norm=norm, shading="nearest",
                    rasterized=True)  # fmt: skip
    levels = (1.25, 1.5, 2, 3, 4)
    lines = axes.contour(x, y, gain, levels=levels, colors=BLACK, linewidths=0.7)
    places = [_label(level, x, y, gain) for level in levels]
    axes.clabel(
        lines, fmt="%gx", fontsize=6, inline_spacing=2, manual=[p for p in places if p is not None]
    )
    ticks = [2, 8, 32, 128, 512]
    axes.set_xticks(ticks, [str(t) for t in ticks])
    points = part[part["kind"] == "point"]
    for row in points.itertuples():
        colour = COLOURS[NAMES[int(row.winner)]] if row.decided else "white"
        axes.plot(row.load, row.alpha, "o", mfc=colour, mec=BLACK, ms=4.5, mew=0.7)


def _label(level: float, x: Floats, y: Floats, gain: Floats) -> tuple[float, float] | None:
    """Return where a line is labelled: at a load of 12, or where it crosses alpha = 0.5."""
    row = int(np.abs(x[:, 0] - 12.0).argmin())
    if gain[row].min() < level < gain[row].max():
        return float(x[row, 0]), float(y[row, np.abs(gain[row] - level).argmin()])
    column = int(np.abs(y[0] - 0.5).argmin())
    down = gain[:, column]
    if down.min() < level < down.max():
        return float(x[np.abs(down - level).argmin(), 0]), float(y[0, column])
    return None


if __name__ == "__main__":
    run("when_it_pays", compute, draw)
