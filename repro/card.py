"""CARD: misses and accepted drafts by tree width, fitted at the two ends, predicted between.

Three numbers a data set: alpha of the best path, the decay of misses in the width (W^-d), the share
of the depth behind a second choice. All are solved from the narrowest and the widest tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from analysis.card import DepthChain, depth_chain, hit_probability, tokens_per_period
from psdsim import Scenario
from psdsim.engine import simulate_run
from psdsim.run.prepare import prepare
from repro.claims import Claim, judged
from repro.play import SEED, Interval, ratio
from repro.seeds_inputs import not_computed, published

METHOD = "card"
_claim = partial(judged, METHOD)
ACCEPTED, MISS, SHARE = 0.05, 0.15, 0.05
"""Tolerances: accepted drafts, miss rates, shares of the histogram (points)."""
ONE_ALPHA = "one alpha for all requests and widths"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """What the two ends of the sweep give."""

    alpha: float
    decay: float
    branch: float

    def at(self, width: int) -> DepthChain:
        """Return the steady state with trees of this width."""
        row = published()["card"]
        hit = float(hit_probability(width, self.decay))
        return depth_chain(self.alpha, row["levels"], hit, self.branch, row["max_depth"])

    @property
    def text(self) -> str:
        """The three numbers."""
        return f"alpha {self.alpha:.3f}, decay {self.decay:.3f}, branch {self.branch:.2f}"


@cache
def fitted(name: str) -> Fit:
    """Fit a data set's accepted drafts and miss rates at its narrowest and its widest tree."""
    row = published()["card"]
    one = row["sets"][name]
    ends = [(row["widths"][i], one["accepted"][i], one["miss"][i]) for i in (0, -1)]

    def fit(x: Floats) -> Fit:
        inside = 1.0 / (1.0 + np.exp(-x))
        return Fit(float(inside[0]), float(2.0 * inside[1]), float(inside[2]))

    def loss(x: Floats) -> float:
        total = 0.0
        for width, accepted, miss in ends:
            steady = fit(x).at(width)
            total += (steady.tokens_per_period - 1.0 - accepted) ** 2 / accepted**2
            total += np.log(max(steady.miss_rate, 1e-9) / miss) ** 2
        return total

    start = np.array([1.5, -1.0, 0.5])
    simplex = start + np.vstack([np.zeros(3), np.diag([1.0, 1.0, 1.5])])
    found = minimize(loss, start, method="Nelder-Mead",
                     options={"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-8,
                              "maxiter": 300})  # fmt: skip
    return fit(found.x)


def simulated(found: Fit, width: int, quick: bool) -> tuple[float, Interval]:
    """Return accepted drafts a pass of the method `card`."""
    row = published()["card"]
    n = 16 if quick else 64
    scenario = Scenario.builtin(
        {
            "acceptance": {"kind": "iid", "alpha": found.alpha},
            "workload": {"kind": "batch", "n_requests": n, "prompt_tokens": 1,
                         "output_tokens": 1001},
            "engine": {"max_num_seqs": n, "kv_blocks": "unlimited"},
            "assumed": {},
        }
    )  # fmt: skip
    knobs = f"nodes={width}:decay={found.decay:.6f}:branch={found.branch:.6f}"
    knobs += f":depth={row['max_depth']}"
    setup = prepare(scenario, f"card:{knobs}", row["levels"], seed=SEED, record_steps=False)
    columns = simulate_run(setup).requests
    return ratio(
        columns["n_accepted_tokens"].astype(np.float64), columns["n_rounds"].astype(np.float64)
    )


def claims(quick: bool = False) -> list[Claim]:
    """Return every claim; `quick` simulates fewer requests."""
    row = published()["card"]
    found = [c for name in row["sets"] for c in one_set(name, quick)]
    cap = float(tokens_per_period(row["levels"]).value)
    means = [a + 1.0 for one in row["sets"].values() for a in one["accepted"]]
    return [
        *found,
        _claim(
            "cap", f"sweeps whose tokens a pass stay below the {cap:g} levels an exchange",
            source=row["source"], evidence=row["evidence"], theirs=float(len(means)),
            ours=float(sum(m <= cap for m in means)), tolerance=0.0, absolute=True, asked=True,
        ),
        *not_computed(METHOD),
    ]  # fmt: skip


def one_set(name: str, quick: bool) -> list[Claim]:
    """Return the claims of one data set."""
    row = published()["card"]
    one: dict[str, Any] = row["sets"][name]
    title, found = one["name"], fitted(name)
    judge = partial(_claim, source=row["source"], evidence=row["evidence"])
    solved = f"widths {row['widths'][0]} and {row['widths'][-1]}: {found.text}"
    steady = {w: found.at(w) for w in row["widths"]}
    inner = slice(1, -1)
    pairs = {
        "miss": ("miss rate", MISS, one["miss"], [x.miss_rate for x in steady.values()]),
        "accepted": ("accepted drafts a pass", ACCEPTED, one["accepted"],
                     [x.tokens_per_period - 1.0 for x in steady.values()]),
    }  # fmt: skip
    claims = []
    for key, (what, tolerance, theirs, ours) in pairs.items():
        off = np.array(ours)[inner] / np.array(theirs)[inner] - 1.0
        claims.append(
            judge(
                f"{name}-{key}", f"median error of the {what} at the {off.size} widths between, "
                f"{title}", theirs=0.0, ours=float(np.median(np.abs(off))), tolerance=tolerance,
                unit="%", absolute=True, solved=solved,
                reason=f"errors {off.min():+.0%} to {off.max():+.0%}; {ONE_ALPHA}",
            )
        )  # fmt: skip
    widest = row["widths"][len(row["widths"]) // 2]
    value, interval = simulated(found, widest, quick)
    claims.append(
        judge(
            f"{name}-simulated-{widest}",
            f"accepted drafts a pass, {title}, {widest} nodes a level, method `card` played",
            theirs=one["accepted"][row["widths"].index(widest)], ours=value, interval=interval,
            tolerance=ACCEPTED, solved=solved, reason=ONE_ALPHA,
        )
    )  # fmt: skip
    pmf = np.mean([s.accepted_pmf for s in steady.values()], axis=0)
    counts = np.array(one["histogram"], dtype=np.float64)
    shares = counts / one["passes"]
    spike = row["levels"] - 1
    falls = int(np.count_nonzero(np.diff(one["miss"]) < 0))
    ours_fall = np.count_nonzero(np.diff([s.miss_rate for s in steady.values()]) < 0)
    return [
        judge(
            f"{name}-mode", f"most frequent number of accepted drafts, {title}",
            theirs=float(counts.argmax()), ours=float(pmf.argmax()), tolerance=0.0, absolute=True,
            solved=solved, asked=True,
        ),
        *(
            judge(
                f"{name}-share-{n}", f"passes that accept {n} drafts, {title}, all widths",
                theirs=float(shares[n]), ours=float(pmf[n]), tolerance=SHARE, unit="%",
                absolute=True, solved=solved,
                reason=ONE_ALPHA,
            )
            for n in (0, 1, spike)
        ),
        judge(
            f"{name}-per-pass", f"tokens a target pass, {title}, all widths",
            theirs=one["per_pass"], ours=1.0 + float(pmf @ np.arange(pmf.size)),
            tolerance=ACCEPTED, solved=solved, reason=ONE_ALPHA,
        ),
        judge(
            f"{name}-falls", f"steps to the next width at which the miss rate falls, {title}",
            theirs=float(falls), ours=float(ours_fall), tolerance=0.3, solved=solved, asked=True,
            reason="the steps up are within the noise of the published rates",
        ),
        *claims,
    ]  # fmt: skip
