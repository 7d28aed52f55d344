"""When to stop drafting, if each drafted token shows how likely it is to be accepted.

A token's acceptance ``a`` is drawn anew from a known discrete law and is visible once the token
is drafted. A draft costs c target passes. The best policy is a threshold on the survival
probability of what is drafted already (theory note 2.9).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis import sd
from analysis._checks import FloatArray, between, law, one_count, probability
from analysis._kinds import AssumptionError
from psdsim.errors import InputError


@dataclass(frozen=True)
class StoppingRule:
    """A threshold rule and what it achieves.

    Parameters
    ----------
    rate
        Tokens per target pass of time, in the long run.
    threshold
        Go on drafting while the survival probability is at least this.
    tokens_per_round, drafts_per_round
        Means.
    """

    rate: float
    threshold: float
    tokens_per_round: float
    drafts_per_round: float


def _law(values: ArrayLike, probabilities: ArrayLike) -> tuple[FloatArray, FloatArray]:
    a, weight = probability("values", values), law("probabilities", probabilities)
    if a.shape != weight.shape:
        raise InputError("values and probabilities differ in shape", expected="one for one")
    return a, weight


def threshold_round(
    values: ArrayLike, probabilities: ArrayLike, threshold: float, max_k: int = 256
) -> tuple[float, float]:
    """Return (mean tokens, mean drafts) of a round that drafts while survival >= threshold.

    Exact: the survival after j drafts is a product of j values of the law, so its law is carried
    from draft to draft, equal products merged. The emitted token that ends a round counts.

    Parameters
    ----------
    values, probabilities
        The law of a token's acceptance; values in [0, 1].
    threshold
        In (0, 1].
    max_k
        Drafts at most.

    Examples
    --------
    >>> threshold_round([0.5], [1.0], 0.25)     # 1, .5 and .25 pass: three drafts
    (1.875, 3.0)
    """
    a, weight = _law(values, probabilities)
    low = float(between("threshold", threshold, 0.0, 1.0, open_low=True))
    survival: FloatArray = np.ones(1)
    chance: FloatArray = np.ones(1)
    tokens, drafts = 1.0, 0.0
    for _ in range(one_count("max_k", max_k)):
        on = survival >= low * (1.0 - 1e-10)
        survival, chance = survival[on], chance[on]
        if survival.size == 0:
            break
        drafts += float(chance.sum())
        product = np.multiply.outer(survival, a).ravel()
        joint = np.multiply.outer(chance, weight).ravel()
        tokens += float(product @ joint)
        # Equal products differ in their last bits by the order of the factors.
        some = product > 0.0
        product, joint = product[some], joint[some]
        _, first, place = np.unique(
            np.round(np.log(product), 11), return_index=True, return_inverse=True
        )
        survival = product[first]
        chance = np.bincount(place, joint, first.size).astype(np.float64)
    return tokens, drafts


def power_round(alpha: float, threshold: float) -> tuple[float, float]:
    """Return (mean tokens, mean drafts) of a threshold round where a = U^(1/n), U uniform.

    In closed form: a is Beta(n, 1) with n = alpha / (1 - alpha), so that its mean is alpha, and
    -ln a is exponential with rate n. The survival of j drafts then passes a threshold s after a
    Poisson number of drafts of mean n ln(1/s), and the expected tokens are
    1 + alpha [1 + n (1 - s)] (own derivation; k has no bound).

    Parameters
    ----------
    alpha
        Mean acceptance, strictly between 0 and 1.
    threshold
        s, in (0, 1]: drafting goes on while the survival probability is at least this.

    Examples
    --------
    >>> tokens, drafts = power_round(0.8, 0.3)
    >>> round(tokens, 12), round(drafts, 6)
    (4.04, 5.815891)
    """
    a = float(between("alpha", alpha, 0.0, 1.0, open_low=True))
    s = float(between("threshold", threshold, 0.0, 1.0, open_low=True))
    if a >= 1.0:
        raise InputError(f"alpha is {alpha}", expected="below 1")
    n = a / (1.0 - a)
    return 1.0 + a * (1.0 + n * (1.0 - s)), 1.0 + n * float(np.log(1.0 / s))


def best_threshold(
    values: ArrayLike, probabilities: ArrayLike, draft_cost_ratio: float, max_k: int = 256
) -> StoppingRule:
    """Return the best of all stopping rules: draft on while p E[a] >= rate * c.

    Survival only falls, so once one more draft does not pay it never pays again, and looking one
    step ahead is optimal for a given rate. The rate is where the best round gains nothing over
    it, max E[tokens] - rate E[time] = 0, found by Dinkelbach's iteration.

    Parameters
    ----------
    values, probabilities, max_k
        As in `threshold_round`.
    draft_cost_ratio
        c, one draft / one target pass, > 0.

    Raises
    ------
    AssumptionError
        If no value is above 0: then no draft is ever accepted.

    Examples
    --------
    >>> rule = best_threshold([0.95, 0.3], [0.7, 0.3], 0.1)
    >>> round(rule.rate, 6), round(rule.threshold, 5)
    (2.440323, 0.32322)
    """
    a, weight = _law(values, probabilities)
    c = float(between("draft_cost_ratio", draft_cost_ratio, 0.0, 1e9, open_low=True))
    mean = float(a @ weight)
    if mean <= 0.0:
        raise AssumptionError("every value is 0", expected="drafts that can be accepted")
    rate, tokens, drafts = 1.0, 1.0, 0.0
    # From plain decoding up; each iterate is a policy's own rate, so it rises to the best.
    for _ in range(100):
        wanted = rate * c / mean
        if wanted > 1.0:
            tokens, drafts = 1.0, 0.0
        else:
            tokens, drafts = threshold_round(a, weight, wanted, max_k)
        better = tokens / (1.0 + c * drafts)
        if better <= rate * (1.0 + 1e-14):
            break
        rate = better
    return StoppingRule(rate, rate * c / mean, tokens, drafts)


def best_fixed(
    values: ArrayLike, probabilities: ArrayLike, draft_cost_ratio: float, max_k: int = 256
) -> tuple[int, float]:
    """Return (k, rate) of the best fixed length, which sees no values: i.i.d. at their mean.

    Parameters
    ----------
    values, probabilities, draft_cost_ratio, max_k
        As in `best_threshold`.

    Examples
    --------
    >>> k, rate = best_fixed([0.95, 0.3], [0.7, 0.3], 0.1)
    >>> k, round(rate, 8)
    (5, 2.2170956)
    """
    a, weight = _law(values, probabilities)
    mean = float(a @ weight)
    k = int(sd.best_k(mean, draft_cost_ratio, max_k=max_k))
    return k, float(sd.speedup(mean, k, draft_cost_ratio))


def oracle_rate(values: ArrayLike, probabilities: ArrayLike, draft_cost_ratio: float) -> float:
    """Return 1 / [(1 - m) + c m], m the mean: the verdicts themselves are known in advance.

    Drafting exactly to the first miss; no rule that sees only ``a`` passes it (theory note 1.3).

    Parameters
    ----------
    values, probabilities, draft_cost_ratio
        As in `best_threshold`.

    Examples
    --------
    >>> round(oracle_rate([0.95, 0.3], [0.7, 0.3], 0.1), 6)
    3.120125
    """
    a, weight = _law(values, probabilities)
    return float(sd.oracle_speedup(float(a @ weight), draft_cost_ratio))
