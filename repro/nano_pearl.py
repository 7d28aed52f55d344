"""nano-PEARL's H200 grid: MAT against batch, speedup against batch, predicted speeds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from analysis.pearl import tokens_per_step
from psdsim.stats import t_interval
from repro.claims import Claim, judged, missing
from repro.nano_fit import AR_TOKENS, BATCHES, PEARL_STEPS, Floats, fitted, grid
from repro.nano_play import play_cell

METHOD = "nano-pearl"
_claim = partial(judged, METHOD)
_missing = partial(missing, METHOD)
AHEAD, BETWEEN = (1, 8), (1, 32)
"""PEARL columns (batch sizes) that the step times are fitted on: first two, or the two ends."""
MEDIAN, MAT, SPEED = 0.10, 0.05, 0.10
_ROW = ["draft", "target", "data_set"]
_GAMMA = "gamma by nano-PEARL's rule, as the rows' own was not found"


def published() -> dict[str, Any]:
    """Return `data/nano_pearl.yaml`."""
    path = Path(__file__).parent / "data" / "nano_pearl.yaml"
    data: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return data


def claims(quick: bool = False) -> list[Claim]:
    """Return every claim; `quick` simulates fewer replications."""
    n = 3 if quick else 12
    data = published()
    return [
        plain_column(data), *predicted(AHEAD, n, data), *predicted(BETWEEN, n, data),
        *mat_over_batch(n, data), falling(n, data), *one_step(data),
        *(_missing(row["id"], row["text"], source=row["source"], evidence=row["evidence"],
                   reason=row["reason"]) for row in data["not_computed"]),
    ]  # fmt: skip


def _play(
    rows: pd.DataFrame, columns: tuple[int, ...], n: int, mat: Floats
) -> tuple[Floats, Floats]:
    """Return simulated tokens/s and tokens between rejections, shape (rows, n) each."""
    speed, between = np.zeros((len(rows), n)), np.zeros((len(rows), n))
    keys = rows[["target", "draft", "data_set", "batch"]].itertuples(index=False, name=None)
    for i, (target, draft, data_set, batch) in enumerate(keys):
        for r in range(n):
            cell = play_cell(target, draft, data_set, int(batch), float(mat[i]), columns, r)
            speed[i, r], between[i, r] = cell.speed, cell.mat
    return speed, between


def _ar_speed(rows: pd.DataFrame, columns: tuple[int, ...]) -> Floats:
    return np.array(
        [
            1000.0 * b / fitted(t, columns).ar_step(s, b)
            for t, s, b in rows[["target", "data_set", "batch"]].itertuples(index=False, name=None)
        ]
    )


def plain_column(data: dict[str, Any]) -> Claim:
    """A straight line in the batch for each target and data set."""
    rows = grid()
    error = float(np.median(np.abs(_ar_speed(rows, AHEAD) / rows["ar_tok_s"] - 1.0)))
    return _claim(
        "plain", "plain decoding: median error of A + slope x batch, 96 cells",
        source=data["source"], evidence=data["evidence"], theirs=0.0, ours=error,
        tolerance=MEDIAN, unit="%", absolute=True, solved="this column",
    )  # fmt: skip


def predicted(columns: tuple[int, ...], n: int, data: dict[str, Any]) -> list[Claim]:
    """PEARL's tokens/s in the two columns that nothing was fitted on."""
    rows = grid()[~grid()["batch"].isin(columns)].reset_index(drop=True)
    speed, _ = _play(rows, columns, n, rows["mat"].to_numpy(np.float64))
    theirs = rows["pearl_tok_s"].to_numpy(np.float64)
    errors = speed.mean(axis=1) / theirs - 1.0
    each = t_interval(np.median(np.abs(speed / theirs[:, None] - 1.0), axis=0))
    median = float(np.median(np.abs(errors)))
    worst = rows.iloc[int(np.abs(errors).argmax())]
    fit, held = (" and ".join(map(str, b)) for b in (columns, sorted(set(rows["batch"]))))
    name = "ahead" if columns == AHEAD else "between"
    note = (
        f"{_GAMMA}; {np.mean(np.abs(errors) <= SPEED):.0%} of the cells within {SPEED:.0%}; worst "
        f"{errors[np.abs(errors).argmax()]:+.0%}: {worst['draft']}, {worst['data_set']}, batch "
        f"{worst['batch']}; the interval is of single runs of {PEARL_STEPS} steps"
    )
    found = [
        _claim(
            f"speeds-{name}",
            f"median error of PEARL's tokens/s at batch {held}, fitted at {fit}, {len(rows)} cells",
            source=data["source"], evidence=data["evidence"], theirs=0.0, ours=median,
            interval=(each.low, each.high), tolerance=MEDIAN, unit="%", absolute=True, asked=True,
            reason=note,
        )
    ]  # fmt: skip
    ar = _ar_speed(rows, columns)
    for batch in sorted(set(rows["batch"])):
        at = (rows["batch"] == batch).to_numpy()
        logs = np.log(speed[at] / ar[at, None]).mean(axis=0)
        e = t_interval(logs)
        found.append(
            _claim(
                f"speedup-{name}-batch{batch}",
                f"geometric mean speedup of 24 rows at batch {batch}, fitted at {fit}",
                source=data["source"], evidence=data["evidence"],
                theirs=float(np.exp(np.log(rows.loc[at, "speedup"]).mean())),
                ours=float(np.exp(e.mean)), interval=(float(np.exp(e.low)), float(np.exp(e.high))),
                tolerance=SPEED, unit="x", reason=_GAMMA,
            )
        )  # fmt: skip
    return found


def _wide(values: str) -> Floats:
    """Return a column as (rows of the grid, batch sizes)."""
    wide = grid().pivot_table(index=_ROW, columns="batch", values=values, sort=False)
    found: Floats = wide[list(BATCHES)].to_numpy(np.float64)
    return found


def mat_over_batch(n: int, data: dict[str, Any]) -> list[Claim]:
    """MAT at larger batches against that at batch 1, theirs and simulated from batch 1's."""
    theirs = _wide("mat")
    measured = theirs[:, 1:] / theirs[:, :1]
    rows = grid()
    own = rows.merge(rows[rows["batch"] == 1][[*_ROW, "mat"]], on=_ROW, suffixes=("", "_1"))
    own = own[own["batch"] > 1].reset_index(drop=True)
    mat_1 = own["mat_1"].to_numpy(np.float64)
    _, between = _play(own, AHEAD, n, mat_1)
    e = t_interval((between / mat_1[:, None]).mean(axis=0))
    apart = np.abs(measured - 1.0)
    note = f"{np.mean(apart <= 0.1):.0%} of the {apart.size} within 10 %; widest {apart.max():.0%}"
    return [
        _claim(
            "mat-constant", "mean of MAT at batch 8, 16, 32 over MAT at batch 1, 24 rows",
            source=data["source"], evidence=data["evidence"], theirs=float(measured.mean()),
            ours=e.mean, interval=(e.low, e.high), tolerance=MAT, asked=True, reason=note,
        ),
        _claim(
            "mat-apart", "median distance of their MAT at batch 8, 16, 32 from that at batch 1",
            source=data["source"], evidence=data["evidence"], theirs=float(np.median(apart)),
            ours=0.0, tolerance=MAT, unit="%", absolute=True, reason=note,
        ),
    ]  # fmt: skip


def falling(n: int, data: dict[str, Any]) -> Claim:
    """In how many of the steps from one batch size to the next the speedup falls."""
    theirs = int(np.count_nonzero(np.diff(_wide("speedup"), axis=1) < 0))
    rows = grid()
    speed, _ = _play(rows, AHEAD, n, rows["mat"].to_numpy(np.float64))
    ours = rows.assign(ours=speed.mean(axis=1) / _ar_speed(rows, AHEAD))
    wide = ours.pivot_table(index=_ROW, columns="batch", values="ours", sort=False)
    falls = np.diff(wide[list(BATCHES)].to_numpy(np.float64), axis=1) < 0
    return _claim(
        "speedup-falls",
        f"steps to the next batch size at which the speedup falls, of {falls.size}",
        source=data["source"], evidence=data["evidence"], theirs=float(theirs),
        ours=float(np.count_nonzero(falls)), tolerance=0.05, asked=True, reason=_GAMMA,
    )  # fmt: skip


def one_step(data: dict[str, Any]) -> list[Claim]:
    """Tokens and time of a step in the one cell for which they were derived."""
    row = data["step"]
    times = fitted(row["target"], AHEAD)
    k = times.gamma(row["draft"], row["batch"])
    cells = grid()
    for column in ("draft", "target", "data_set", "batch"):
        cells = cells[cells[column] == row[column]]
    alpha = 1.0 - 1.0 / float(cells["mat"].iloc[0])
    tokens = float(tokens_per_step(alpha, k))
    speed = float(cells["pearl_tok_s"].iloc[0])
    where = f"{row['draft']} and {row['target']}, {row['data_set']}, batch {row['batch']}"
    source = f"{data['source']}, derived"
    return [
        _claim(
            "step-tokens", f"tokens per PEARL step, {where} (k={k} by the rule)", source=source,
            evidence=row["evidence"], theirs=row["tokens"], ours=tokens, tolerance=0.05,
            reason=_GAMMA,
        ),
        _claim(
            "step-time", f"time of a PEARL step, {where}: our tokens / their speed", source=source,
            evidence=row["evidence"], theirs=row["step_ms"], ours=1000.0 * tokens / speed,
            tolerance=0.05, unit="ms", reason=_GAMMA,
        ),
        _claim(
            "step-plain", f"time of a plain step, {where}, over {AR_TOKENS} tokens", source=source,
            evidence=row["evidence"], theirs=row["ar_step_ms"],
            ours=times.ar_step(row["data_set"], row["batch"]), tolerance=0.05, unit="ms",
            solved="the plain-decoding column",
        ),
    ]  # fmt: skip
