"""Every method on the built-in scenario at three loads: tokens/s over plain decoding.

The same 2, 16 or 128 requests in flight for everybody (a closed loop), each method at the best of
k = 2, 4, 8, 16. Bars: with 95 % intervals over paired replications; diamonds: per GPU; hatched: the
target's distribution is not kept. On top methods that draft with the scenario's draft model and
acceptance; below the line those with a drafter whose acceptance is published for other models and
texts (over 7 positions, the last one repeated beyond), which can't be ranked among the others.
Takes what is registered in psdsim.methods.METHODS; ablations are left out.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from figures._simulated import SEED, Point, outcomes
from figures.style import BLACK, BLUE, HERE, LABELS, ORANGE, new_figure, run
from psdsim import Scenario
from psdsim.methods import METHODS, method
from psdsim.run.basis import Basis, n_gpus
from psdsim.run.cells import Outcome
from psdsim.run.paired import ratio_interval

LOADS = (2, 16, 128)
KS = (2, 4, 8, 16)
Key = tuple[int, str]
"""Load and method."""
NAME = "methods_at_loads"
COLUMNS = [
    "load", "method", "k", "lossless", "own_acceptance", "assumed", "n_gpus", "output_throughput",
    "over_ar", "over_ar_low", "over_ar_high", "over_ar_per_gpu", "mean_tpot_ms", "reason",
]  # fmt: skip


def names() -> list[str]:
    """Return what is registered, without ablations of one mechanism."""
    return [name for name in METHODS if not name.startswith(("pearl-no-", "pearl-draft-"))]


def scenario(load: int, quick: bool) -> Scenario:
    """Return the built-in deployment with so many requests in flight."""
    waves = 2 if quick else 3
    return Scenario.builtin(
        {
            "workload": {
                "kind": "concurrency", "n_requests": max(waves * load, 16),
                "prompt_tokens": 256, "output_tokens": 48 if quick else 256, "concurrency": load,
            },
            "engine.max_num_seqs": load,
        }
    )  # fmt: skip


def _mean(runs: list[Outcome], name: str = "output_throughput") -> float:
    return sum(float(run.metrics[name]) for run in runs) / len(runs)


def _best_ks(loads: tuple[int, ...], ks: tuple[int, ...], quick: bool) -> dict[Key, int]:
    """Return each method's best k at each load, by runs of another seed."""
    keys, points = [], list[Point]()
    for load in loads:
        deployed = scenario(load, quick)
        for name in names():
            cls = method(name).schedule
            for k in [k for k in ks if k >= cls.min_k] if cls.drafts else [0]:
                keys.append((load, name, k))
                points.append((deployed, name, k, Basis.CONCURRENCY))
    best: dict[Key, tuple[float, int]] = {}
    done = outcomes(points, 1, parallel=not quick, seed=SEED + 1)
    for (load, name, k), runs in zip(keys, done, strict=True):
        value = 0.0 if isinstance(runs, str) else _mean(runs)
        best[(load, name)] = max(best.get((load, name), (-1.0, 0)), (value, k))
    return {key: k for key, (_, k) in best.items()}


def compute(quick: bool = False) -> pd.DataFrame:
    """Return `COLUMNS`; a method that can't be run at a load has a reason instead of figures."""
    loads = LOADS[1:2] if quick else LOADS
    return rows(_best_ks(loads, (4,) if quick else KS, quick), quick)


def rows(best: dict[Key, int], quick: bool) -> pd.DataFrame:
    """Simulate some methods at some loads, ``ar`` among them at each, at a k each."""
    points: list[Point] = [
        (scenario(load, quick), name, k, Basis.CONCURRENCY) for (load, name), k in best.items()
    ]
    found = dict(zip(best, outcomes(points, 2 if quick else 3, parallel=not quick), strict=True))
    return pd.DataFrame(
        [_row(load, name, k, found) for (load, name), k in best.items()], columns=COLUMNS
    )


def _row(load: int, name: str, k: int, found: dict[Key, list[Outcome] | str]) -> dict[str, object]:
    chosen, deployed = method(name), scenario(load, False)
    row: dict[str, object] = {"load": load, "method": name, "k": k, "lossless": chosen.lossless}
    runs, plain = found[(load, name)], found[(load, "ar")]
    if isinstance(runs, str) or isinstance(plain, str):
        return row | {"reason": runs if isinstance(runs, str) else plain}
    ratio = _mean(runs) / _mean(plain)
    gpus = n_gpus(name, deployed, k)
    low, high = ratio_interval(runs, plain) or (ratio, ratio)
    if name == "ar":
        low = high = 1.0
    return row | {
        "own_acceptance": chosen.own_drafter
        and chosen.adapt(deployed, k).acceptance != deployed.acceptance,
        "assumed": any(note.startswith("ASSUMED") for note in chosen.notes(deployed, k)),
        "n_gpus": gpus,
        "output_throughput": _mean(runs),
        "over_ar": ratio,
        "over_ar_low": low,
        "over_ar_high": high,
        "over_ar_per_gpu": ratio * n_gpus("ar", deployed, 0) / gpus,
        "mean_tpot_ms": _mean(runs, "mean_tpot_ms"),
    }


def draw(frame: pd.DataFrame) -> Figure:
    """Draw a panel of bars a load, in two groups, each sorted by the load in the middle."""
    loads = list(dict.fromkeys(frame["load"]))
    middle = frame[frame["load"] == loads[len(loads) // 2]].copy()
    middle["own"] = middle["own_acceptance"].eq(True)
    middle = middle.sort_values(["own", "over_ar"], ascending=[False, True])
    order = list(middle["method"])
    n_own = int(middle["own"].sum())
    figure = new_figure(2, 1.1 + 0.15 * (len(order) + 1), len(loads))
    # The group below, a gap where there is one, the group above.
    places = [float(i + (i >= n_own > 0)) for i in range(len(order))]
    for axes, load in zip(figure.axes, loads, strict=True):
        _bars(axes, frame[frame["load"] == load].set_index("method").loc[order], places)
        axes.set_title(f"{load} requests in flight", fontsize=8)
        axes.set_xlabel("tokens/s / plain decoding", fontsize=8)
        axes.set_yticks(places, [""] * len(order))
        if n_own:
            axes.axhline(n_own, color="#888888", lw=0.6)
            axes.annotate(
                "own published acceptance", (0.98, n_own), fontsize=6, color="#666666",
                xycoords=("axes fraction", "data"), ha="right", va="center",
                bbox={"fc": "white", "ec": "none", "pad": 0.5},
            )  # fmt: skip
    first = figure.axes[0]
    first.set_yticks(places, [LABELS.get(name, name) for name in order], fontsize=7)
    first.set_ylabel("method", fontsize=8)
    handles = [
        Patch(fc=BLUE, label="lossless"),
        Patch(fc=BLUE, alpha=0.45, label="baselines"),
        Patch(fc=ORANGE, hatch="/////", ec="white", label="lossy"),
        Line2D([], [], ls="", marker="D", mfc="white", mec=BLACK, ms=3.5, label="per GPU"),
        Line2D([], [], color=BLACK, lw=0.9, ls=":", label="SD"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, fontsize=7, frameon=False)
    return figure


def _bars(axes: Axes, part: pd.DataFrame, places: list[float]) -> None:
    for y, (name, row) in zip(places, part.iterrows(), strict=True):
        if pd.isna(row["over_ar"]):
            axes.annotate("can't be run", (0.02, y), fontsize=6, va="center", color="#666666")
            continue
        lossless = bool(row["lossless"])
        axes.barh(
            y, row["over_ar"], height=0.72, color=BLUE if lossless else ORANGE,
            hatch=None if lossless else "/////", edgecolor="white", lw=0.0,
            alpha=0.45 if name in ("ar", "sd") else 1.0,
        )  # fmt: skip
        error = [[row["over_ar"] - row["over_ar_low"]], [row["over_ar_high"] - row["over_ar"]]]
        axes.errorbar(row["over_ar"], y, xerr=error, color=BLACK, lw=0.7)
        axes.plot(row["over_ar_per_gpu"], y, "D", mfc="white", mec=BLACK, ms=3, mew=0.6)
    axes.axvline(1.0, color=BLACK, lw=0.9)
    axes.axvline(part.loc["sd", "over_ar"], color=BLACK, lw=0.9, ls=":")
    axes.set_ylim(-0.6, places[-1] + 0.6)
    axes.set_xlim(left=0)


def table(frame: pd.DataFrame) -> str:
    """Return a Markdown table, fastest first within each load."""
    lines = [
        "| load | method | k | tokens/s | over AR | per GPU | TPOT, ms | lossless | acceptance |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in frame.sort_values(["load", "over_ar"], ascending=[True, False]).itertuples():
        if pd.isna(row.over_ar):
            lines.append(f"| {row.load} | {row.method} | | can't be run: {row.reason} | | | | | |")
            continue
        low, high = row.over_ar_low, row.over_ar_high
        lines.append(
            f"| {row.load} | {row.method} | {row.k} | {row.output_throughput:.0f} | "
            f"{row.over_ar:.2f} [{low:.2f}, {high:.2f}] | {row.over_ar_per_gpu:.2f} | "
            f"{row.mean_tpot_ms:.2f} | {'yes' if row.lossless else 'no'} | "
            f"{'published' if row.own_acceptance else 'scenario'} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    drawn = run(NAME, compute, draw)
    place = HERE / "out" / f"{NAME}.md"
    place.write_text(table(drawn), encoding="utf-8")
    print(f"written: {place}")
