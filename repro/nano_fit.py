"""nano-PEARL's H200 grid: step times from the plain-decoding column and two PEARL columns.

Per target model: a decode pass of b rows takes A + G b, a data set's prompts add their prefill,
and a further row of a request costs v. Per draft model: a forward takes d0 + d1 b. The draft
length is nano-PEARL's own rule, the rounded ratio of the two speeds; which lengths the published
rows used was not found. Prefill is spread over what the benchmark ran: 200 tokens of plain
decoding, 100 steps of PEARL.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import Bounds, differential_evolution

from analysis.pearl import pre_verify_share, tokens_per_step

FILE = Path(__file__).parent / "data" / "nano_pearl_h200.csv"
BATCHES = (1, 8, 16, 32)
AR_TOKENS, PEARL_STEPS = 200, 100
Floats = NDArray[np.float64]


@cache
def grid() -> pd.DataFrame:
    """Return the published grid: one row a pair, data set and batch size."""
    return pd.read_csv(FILE)


@dataclass(frozen=True, eq=False)
class Cells:
    """Some rows of the grid as arrays."""

    drafts: list[str]
    sets: list[str]
    batch: Floats
    alpha: Floats

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Cells:
        """Read rows; MAT counts the corrected token, so its inverse is 1 - alpha."""
        mat = rows["mat"].to_numpy(np.float64)
        batch = rows["batch"].to_numpy(np.float64)
        return cls(list(rows["draft"]), list(rows["data_set"]), batch, 1.0 - 1.0 / mat)


@dataclass(frozen=True)
class Times:
    """Step times of one target with its drafts, ms.

    `base` and `slopes` (per data set, prefill included) are the plain-decoding column's; `per_row`
    is a decode row's own share of the slope, `per_draft_row` v, `sync` a step's fixed cost.
    """

    target: str
    base: float
    slopes: dict[str, float]
    per_draft_row: float
    sync: float
    drafts: dict[str, tuple[float, float]]

    @property
    def per_row(self) -> float:
        """Slope of the data set with the shortest prompts, whose prefill is taken as nil."""
        return min(self.slopes.values())

    def ar_step(self, data_set: str, batch: int) -> float:
        """Return a step of plain decoding, its prefill share included."""
        return self.base + self.slopes[data_set] * batch

    def prefill_share(self, data_set: str, batch: int) -> float:
        """Return a PEARL step's share of the prefill."""
        return (self.slopes[data_set] - self.per_row) * batch * AR_TOKENS / PEARL_STEPS

    def gamma(self, draft: str, batch: int) -> int:
        """Return the draft length of nano-PEARL's rule."""
        fixed, slope = self.drafts[draft]
        return int(_gamma(self.base + self.per_row * batch, np.array(fixed + slope * batch)))

    def speeds(self, cells: Cells) -> Floats:
        """Return PEARL's tokens/s in the closed form."""
        pairs = np.array([self.drafts[d] for d in cells.drafts])
        slopes = np.array([self.slopes[s] for s in cells.sets])
        batch, alpha = cells.batch, cells.alpha
        plain = self.base + self.per_row * batch
        forward = pairs[:, 0] + pairs[:, 1] * batch
        k = _gamma(plain, forward)
        pre = pre_verify_share(alpha, k)
        more = batch * (1.0 - pre) * (k - 1)
        step = np.maximum(k * forward, plain + self.per_draft_row * more) + self.sync
        step = step + (slopes - self.per_row) * batch * AR_TOKENS / PEARL_STEPS
        found: Floats = 1000.0 * batch * tokens_per_step(alpha, k) / step
        return found


def _gamma(plain: float | Floats, forward: Floats) -> NDArray[np.int64]:
    """Return the rounded ratio of the two models' speeds, at least 1."""
    return np.maximum(np.rint(plain / forward), 1.0).astype(np.int64)


@cache
def fitted(target: str, columns: tuple[int, ...]) -> Times:
    """Return the step times fitted on the plain-decoding column and on some PEARL columns."""
    rows = grid()[grid()["target"] == target]
    base, slopes = _plain(rows)
    drafts = list(dict.fromkeys(rows["draft"]))
    known = rows[rows["batch"].isin(columns)]
    cells = Cells.of(known)
    wanted = np.log(known["pearl_tok_s"].to_numpy(np.float64))

    def times(x: Floats) -> Times:
        pairs = {d: (float(x[2 + i]), float(x[2 + n + i])) for i, d in enumerate(drafts)}
        return Times(target, base, slopes, float(x[0]), float(x[1]), pairs)

    def loss(x: Floats) -> float:
        return float(((np.log(times(x).speeds(cells)) - wanted) ** 2).mean())

    smallest = min(slopes.values())
    n = len(drafts)
    bounds = Bounds(
        [0.0, 0.0] + [base / 30] * n + [0.0] * n, [smallest, 4.0] + [base / 3] * n + [0.15] * n
    )
    best = differential_evolution(
        loss, bounds, rng=np.random.default_rng(1), popsize=10, maxiter=80, tol=1e-6, polish=False
    )
    return times(best.x)


def _plain(rows: pd.DataFrame) -> tuple[float, dict[str, float]]:
    """Return (A, slope per data set) of A + slope x batch, by relative least squares."""
    sets = list(dict.fromkeys(rows["data_set"]))
    batch = rows["batch"].to_numpy(np.float64)
    step = 1000.0 * batch / rows["ar_tok_s"].to_numpy(np.float64)
    design = np.zeros((len(rows), 1 + len(sets)))
    design[:, 0] = 1.0
    design[np.arange(len(rows)), [1 + sets.index(s) for s in rows["data_set"]]] = batch
    found = np.linalg.lstsq(design / step[:, None], np.ones(len(rows)), rcond=None)[0]
    return float(found[0]), dict(zip(sets, found[1:].tolist(), strict=True))
