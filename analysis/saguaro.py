"""SSD (Saguaro): drafting for the likely outcomes of a verification while it runs.

Times are relative to one verification. ``hit`` is the probability that the outcome was among the
prepared ones; ``draft_time`` (T_p) the primary speculator's time, ``backup_time`` (T_b) what is
drafted in after a miss. Theorem and corollary numbers are the paper's (theory note 3.4).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import (
    FloatArray,
    between,
    count,
    give,
    nonnegative,
    one_count,
    positive,
    probability,
)
from analysis._kinds import AssumptionError, Bound
from analysis.rounds import accepted_pmf_iid


def speedup(
    hit: ArrayLike,
    tokens_hit: ArrayLike,
    tokens_miss: ArrayLike,
    draft_time: ArrayLike,
    backup_time: ArrayLike,
    n_seqs: ArrayLike = 1,
) -> FloatArray:
    """Return [p E_hit + (1-p) E_miss] / [P max(1, T_p) + (1-P)(1 + T_b)], P = p^b (Thm 7, Cor 16).

    Over plain decoding. A batch waits for the backup as soon as one member misses.

    Parameters
    ----------
    hit
        p, in [0, 1].
    tokens_hit, tokens_miss
        E_hit and E_miss, tokens per round after a hit and after a miss, >= 1.
    draft_time, backup_time
        T_p and T_b, verifications, >= 0.
    n_seqs
        b >= 1.

    Examples
    --------
    >>> round(float(speedup(0.85, 3.3616, 1.0, 0.5, 0.0)), 5)
    3.00736
    >>> speedup(0.85, 3.3616, 3.3616, 0.4, 0.4, [1, 4, 16]).round(7).tolist()
    [3.1713208, 2.8220341, 2.4531862]
    """
    p = probability("hit", hit)
    tokens = _tokens(p, tokens_hit, tokens_miss)
    all_hit = p ** count("n_seqs", n_seqs, 1)
    hidden = np.maximum(1.0, nonnegative("draft_time", draft_time))
    exposed = 1.0 + nonnegative("backup_time", backup_time)
    return give(tokens / (all_hit * hidden + (1.0 - all_hit) * exposed))


def _tokens(p: FloatArray, tokens_hit: ArrayLike, tokens_miss: ArrayLike) -> FloatArray:
    hit = between("tokens_hit", tokens_hit, 1.0, 1e9)
    return np.asarray(p * hit + (1.0 - p) * between("tokens_miss", tokens_miss, 1.0, 1e9))


def stationary_hit_rate(hit_after_primary: ArrayLike, hit_after_backup: ArrayLike) -> FloatArray:
    """Return p = p_b / (1 + p_b - p_p), the share of hits in the long run.

    Parameters
    ----------
    hit_after_primary, hit_after_backup
        P(hit | the drafts verified came from the primary / from the backup), in [0, 1].

    Raises
    ------
    AssumptionError
        Where hits and misses both last for ever, so that the start decides.

    Examples
    --------
    >>> round(float(stationary_hit_rate(0.9, 0.6)), 8)
    0.85714286
    """
    primary = probability("hit_after_primary", hit_after_primary)
    backup = probability("hit_after_backup", hit_after_backup)
    moves = 1.0 + backup - primary
    if np.any(moves <= 0.0):
        raise AssumptionError(
            "hit_after_primary is 1 and hit_after_backup 0", expected="a chain that leaves both"
        )
    return give(backup / moves)


def ratio_to_sd_bound(
    hit: ArrayLike,
    tokens_hit: ArrayLike,
    tokens_sd: ArrayLike,
    sd_draft_time: ArrayLike,
    draft_time: ArrayLike,
    backup_time: ArrayLike,
    kind: Literal["upper", "lower"],
) -> Bound:
    """Return (1 + T_SD)(E_hit / E_SD), SSD over SD at most; times p, at least (Cor 9).

    Parameters
    ----------
    hit, tokens_hit
        As in `speedup`.
    tokens_sd, sd_draft_time
        E_SD, tokens per SD round, >= 1; T_SD, its drafting time, verifications.
    draft_time, backup_time
        T_p < 1 and T_b = 0, which the corollary assumes.
    kind
        Which side.

    Raises
    ------
    AssumptionError
        If T_p >= 1 or T_b > 0.

    Examples
    --------
    >>> bounds = [ratio_to_sd_bound(0.85, 3.3616, 3.3616, 0.4, 0.5, 0.0, side)
    ...           for side in ("lower", "upper")]
    >>> [round(float(b.value), 9) for b in bounds]
    [1.19, 1.4]
    """
    if np.any(nonnegative("draft_time", draft_time) >= 1.0):
        raise AssumptionError("draft_time is 1 or more", expected="drafting that a hit hides, < 1")
    if np.any(nonnegative("backup_time", backup_time) > 0.0):
        raise AssumptionError("backup_time is above 0", expected="a backup that costs nothing")
    upper = (1.0 + nonnegative("sd_draft_time", sd_draft_time)) * (
        between("tokens_hit", tokens_hit, 1.0, 1e9) / between("tokens_sd", tokens_sd, 1.0, 1e9)
    )
    value = upper if kind == "upper" else upper * probability("hit", hit)
    return Bound(give(value), kind)


def backup_switch_batch(
    hit: ArrayLike, tokens_hit: ArrayLike, tokens_miss: ArrayLike, draft_time: ArrayLike
) -> FloatArray:
    """Return b*, the batch above which the fast backup beats the primary as its own (Thm 17).

    log(1 + 1/T_p - E_hit / (T_p [p E_hit + (1-p) E_miss])) / log p, for 0 < T_p <= 1, a backup
    that takes no time, and the same E after a miss as after a hit if the primary is the backup.
    Infinite where the primary is the better one for any batch.

    Parameters
    ----------
    hit, tokens_hit, tokens_miss, draft_time
        As in `speedup`; 0 < hit < 1 and 0 < draft_time <= 1.

    Examples
    --------
    >>> round(float(backup_switch_batch(0.85, 3.3616, 1.0, 0.4)), 7)
    2.1463142
    """
    p = between("hit", hit, 0.0, 1.0 - 1e-12, open_low=True)
    t = between("draft_time", draft_time, 0.0, 1.0, open_low=True)
    tokens = _tokens(p, tokens_hit, tokens_miss)
    inner = 1.0 + 1.0 / t - np.asarray(tokens_hit, dtype=np.float64) / (t * tokens)
    found = np.log(np.where(inner > 0, inner, 1.0)) / np.log(p)
    return give(np.where(inner > 0, found, np.inf))


def fan_outs(alpha: float, k: int, budget: float, exponent: float) -> FloatArray:
    """Return F_0..F_k, how many bonus tokens to prepare after j accepted drafts (Thm 12).

    For misses 1 - p(F) = F^-r: F_j = F_0 a^(j/(1+r)), and F_k = F_0 a^(k/(1+r)) (1-a)^(-1/(1+r))
    as full acceptance is more likely; F_0 makes them sum to the budget. Real numbers: rounding is
    the caller's.

    Parameters
    ----------
    alpha
        a, in (0, 1).
    k
        Drafted tokens, >= 1.
    budget
        B, outcomes that can be prepared, > 0.
    exponent
        r > 0.

    Examples
    --------
    >>> found = fan_outs(0.5, 1, 3.0, 1.0)      # weights 1 and sqrt(.5) / sqrt(.5)
    >>> found.round(9).tolist()
    [1.5, 1.5]
    """
    a = float(between("alpha", alpha, 0.0, 1.0 - 1e-12, open_low=True))
    n, power = one_count("k", k, 1), 1.0 / (1.0 + float(positive("exponent", exponent)))
    weights = a ** (np.arange(n + 1) * power)
    weights[-1] *= (1.0 - a) ** -power
    return give(float(positive("budget", budget)) * weights / weights.sum())


def hit_rate(alpha: float, fan_out: ArrayLike, exponent: float) -> float:
    """Return sum of P(L = j) (1 - F_j^-r), the hit rate of given fan-outs.

    Parameters
    ----------
    alpha, exponent
        As in `fan_outs`.
    fan_out
        Shape (k + 1,): F_j >= 1, the range in which the power law is a probability.

    Examples
    --------
    >>> hit_rate(0.5, [2.0, 2.0], 1.0)
    0.5
    """
    found = between("fan_out", fan_out, 1.0, 1e18)
    if found.ndim != 1 or found.size == 0:
        raise AssumptionError("fan_out is no list", expected="one number per accepted length")
    miss = found ** -float(positive("exponent", exponent))
    return float(accepted_pmf_iid(alpha, found.size - 1) @ (1.0 - miss))
