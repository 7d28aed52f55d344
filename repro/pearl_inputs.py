"""PEARL's published figures, and the inputs that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from scipy.optimize import brentq

from analysis import pearl, rounds, rounds_correlated
from analysis.schedules import steady_state
from psdsim.acceptance import IidAcceptance, MarkovAcceptance

HERE = Path(__file__).parent


@cache
def published() -> dict[str, Any]:
    """Return `data/pearl.yaml`."""
    data: dict[str, Any] = yaml.safe_load((HERE / "data" / "pearl.yaml").read_text("utf-8"))
    return data


@dataclass(frozen=True)
class Pair:
    """A draft and a target model, with what was published about the two."""

    key: str
    name: str
    draft_s: float
    target_s: float
    gamma: int
    data: dict[str, Any]

    @property
    def alpha(self) -> float | None:
        """P(accept) from Table 7's mean run of accepted drafts, a/(1-a); None: not found."""
        mat = self.data["pearl_mat"]
        return None if mat is None else float(mat / (1.0 + mat))

    @property
    def speed_ratio(self) -> float:
        """One target pass over one draft forward."""
        return self.target_s / self.draft_s


@cache
def pairs() -> tuple[Pair, ...]:
    """Return the pairs of Table 1."""
    data = published()
    speeds = data["speeds"]
    return tuple(
        Pair(key, row["name"], 1 / speeds[row["draft"]], 1 / speeds[row["target"]],
             int(row["gamma"]), row)
        for key, row in data["pairs"].items()
    )  # fmt: skip


def pair(key: str) -> Pair:
    """Return one pair."""
    return next(p for p in pairs() if p.key == key)


def alpha_from_sd_runs(p: Pair) -> float:
    """Return the alpha at which serial decoding needs Table 11's target runs for full outputs."""
    setting = published()["setting"]
    tokens = setting["n_prompts"] * (setting["max_new_tokens"] - 1) / p.data["table11"]["sd"][1]
    return float(
        brentq(lambda a: float(rounds.acceptance_length_iid(a, p.gamma)) - tokens, 0.01, 0.9999)
    )


def speedup(p: Pair, schedule: str, k: int, alpha: float, after_reject: float) -> float:
    """Return the closed form of a schedule's speed over plain decoding, one request at a time."""
    model = (
        IidAcceptance(alpha=alpha)
        if after_reject == alpha
        else MarkovAcceptance(after_accept=alpha, after_reject=after_reject)
    )
    steady = steady_state(
        schedule, n_seqs_per_step=1, acceptance=model, k=k,
        draft_time_s=k * p.draft_s, verify_time_s=p.target_s,
    )  # fmt: skip
    return steady.output_throughput * p.target_s


def two_state(p: Pair) -> tuple[float, float]:
    """Return (a1, a0): the measured mean run, and Table 4's loss without pre-verify.

    A run of accepted drafts between rejections has the mean a0/(1 - a1), which Table 7 gives.
    """
    mat, row = p.data["pearl_mat"], p.data["table4"]

    def excess(a0: float) -> float:
        a1 = 1.0 - a0 / mat
        full = speedup(p, "pearl", p.gamma, a1, a0)
        without = speedup(p, "pearl-no-pre-verify", p.gamma, a1, a0)
        return without / full - float(row["no_pre"] / row["full"])

    a0 = float(brentq(excess, 0.02, 0.999 * mat / (1.0 + mat)))
    return 1.0 - a0 / mat, a0


def alpha_from_full(p: Pair) -> float:
    """Return the i.i.d. alpha at which PEARL reaches the "full" row of Table 4."""
    full = p.data["table4"]["full"]
    return float(brentq(lambda a: speedup(p, "pearl", p.gamma, a, a) - full, 0.05, 0.9999))


def two_state_from_rows(p: Pair) -> tuple[float, float]:
    """Return (a1, a0) from Table 4's "full" and "no pre-verify" rows, where no run is known."""
    row: dict[str, float] = p.data["table4"]

    def after_accept(a0: float) -> float:
        return float(
            brentq(lambda a: speedup(p, "pearl", p.gamma, a, a0) - row["full"], 0.05, 1 - 1e-9)
        )

    def excess(a0: float) -> float:
        return speedup(p, "pearl-no-pre-verify", p.gamma, after_accept(a0), a0) - row["no_pre"]

    a0 = float(brentq(excess, 0.3, alpha_from_full(p)))
    return after_accept(a0), a0


def sd_mean_accepted(k: int, alpha: float, after_reject: float) -> float:
    """Return accepted drafts per round of serial decoding, the bonus token left out."""
    if alpha == after_reject:
        return float(rounds.acceptance_length_iid(alpha, k)) - 1.0
    return float(rounds_correlated.acceptance_length_markov(alpha, after_reject, k)) - 1.0


def best_gamma(p: Pair, alpha: float) -> int:
    """Return PEARL's best draft length in the closed form."""
    return int(pearl.best_k(alpha, p.draft_s / p.target_s))
