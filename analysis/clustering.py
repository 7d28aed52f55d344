"""Clustered rejections: PEARL against MineDraft, and what pre-verification is worth (ours).

Acceptance is a chain over output positions: a1 = P(accept | the token before was accepted) and
a0 = P(accept | it was rejected). With a0 < a1 rejections cluster. MineDraft's and SD's tokens per
round are `analysis.rounds_correlated.acceptance_length_markov`, PEARL's per step
`analysis.pearl.tokens_per_step`; the literature read compares neither under memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis import pearl
from analysis._checks import FloatArray, between, count, give, probability
from analysis._kinds import AssumptionError
from analysis.special import geometric_sum, one_minus_power


def _reach(after_accept: ArrayLike, k: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a1, G = 1 + a1 + ... + a1^(k-1) and A = a1^k."""
    a1, n = probability("after_accept", after_accept), count("k", k, 2)
    return a1, geometric_sum(a1, n), np.asarray(1.0 - one_minus_power(a1, n))


def after_reject_at(
    after_accept: ArrayLike, k: ArrayLike, acceptance_length: ArrayLike
) -> FloatArray:
    """Return a0 that keeps a serial round's E[N] = 1 + M: M (1 - a1^(k+1)) / (G - M a1^k) (ours).

    Solved from E[N] - 1 = a0 G / (1 - a1^k (a1 - a0)), which is the chain of rounds of
    `analysis.rounds_correlated.acceptance_length_markov` in one line. Raising a1 from the i.i.d.
    point lowers a0: that is what clustering at the same acceptance length means here.

    Parameters
    ----------
    after_accept
        a1, P(accept | the token before was accepted), in [0, 1).
    k
        Drafted tokens, >= 2.
    acceptance_length
        E[N], in [1, k + 1).

    Raises
    ------
    AssumptionError
        If no a0 in [0, 1] does it.

    Examples
    --------
    >>> round(float(after_reject_at(0.8, 4, 3.3616)), 12)      # i.i.d.
    0.8
    """
    a1, full, last = _reach(after_accept, k)
    more = between("acceptance_length", acceptance_length, 1.0, 1e9) - 1.0
    rest = full - more * last
    found = more * one_minus_power(a1, count("k", k) + 1) / np.where(rest > 0, rest, 1.0)
    if np.any((rest <= 0) | (found > 1.0 + 1e-12)):
        raise AssumptionError(
            "acceptance_length is out of reach of after_accept", expected="an a0 in [0, 1]"
        )
    return give(np.minimum(found, 1.0))


def pearl_tokens_at(
    after_accept: ArrayLike, k: ArrayLike, acceptance_length: ArrayLike
) -> FloatArray:
    """Return PEARL's R at MineDraft's acceptance length 1 + M: it rises with clustering (ours).

    MineDraft's rate depends on E[N] only, so it stays. PEARL's does not:
    1/(R - 1) = [G^2/M + G + A - G A] / [(G - 1)(G + A)], A = a1^k. Both parts fall as a1 rises:
    G^2/[(G-1)(G+A)] is G/(G-1) times 1/(1 + A/G), where G and A/G increase; and the rest is
    G/[(G-1)(G+A)] - A/(G+A), where A/(G+A) increases. So at the same acceptance length longer
    runs help PEARL, as its post-verify chain has no end to a run while a round has; a1 -> 1
    gives R = 1 + M (k^2 - 1)/(k^2 + M). That rejections cluster is no reason by itself to prefer
    MineDraft; a lower a0 at the same a1 lowers both.

    Parameters
    ----------
    after_accept, k, acceptance_length
        As in `after_reject_at`.

    Examples
    --------
    >>> [round(float(pearl_tokens_at(a1, 4, 3.3616)), 4) for a1 in (0.8, 0.9, 0.99)]
    [2.1231, 2.4588, 2.8738]
    """
    return pearl.tokens_per_step(
        after_accept, k, after_reject_at(after_accept, k, acceptance_length)
    )


def pearl_tokens_at_rate(after_accept: ArrayLike, k: ArrayLike, rate: ArrayLike) -> FloatArray:
    """Return PEARL's R when a share of all positions is accepted: (1 + o) / (1 + o/G) (ours).

    o = rate / (1 - rate). Tokens between rejections are 1 + o, whatever the clustering; the
    steps between them are 1 + a0/(1 - a1^k) = 1 + o/G, as the share fixes a0 = o (1 - a1). So R
    rises with a1 here as well.

    Parameters
    ----------
    after_accept, k
        As in `after_reject_at`.
    rate
        Long-run share of accepted positions, in [0, 1).

    Examples
    --------
    >>> round(float(pearl_tokens_at_rate(0.8, 5, 0.8)), 4)      # i.i.d.
    2.2832
    """
    a1, full, _ = _reach(after_accept, k)
    share = between("rate", rate, 0.0, 1.0 - 1e-12)
    odds = share / (1.0 - share)
    if np.any(odds * (1.0 - a1) > 1.0 + 1e-12):
        raise AssumptionError("rate is out of reach of after_accept", expected="an a0 in [0, 1]")
    return give((1.0 + odds) / (1.0 + odds / full))


def pre_verify_gain(after_accept: ArrayLike, after_reject: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return PEARL's R over that without pre-verify: 1 + (1-a0) L/(L + a0), L = 1 - a1^k (ours).

    Per rejection PEARL needs 1 + a0/L steps, without pre-verify 2 + a0 a1^k/L: pre-verifying
    saves exactly 1 - a0 steps per rejection. The i.i.d. law has a0 = a1 and understates it if
    rejections cluster: at a1 = .94, k = 5 the gain is 1.3 % for a0 = .94 and 6.5 % for a0 = .75,
    the size that PEARL's own ablation reports (6 to 8 %) where i.i.d. predicts about 1 %.

    Parameters
    ----------
    after_accept, after_reject
        a1 and a0, in [0, 1].
    k
        Drafted tokens, >= 2.

    Examples
    --------
    >>> [round(float(pre_verify_gain(0.94, a0, 5)), 4) for a0 in (0.94, 0.75)]
    [1.0132, 1.0655]
    """
    a0, leave = probability("after_reject", after_reject), one_minus_power(after_accept, k)
    total = leave + a0
    if np.any(total <= 0.0):
        raise AssumptionError(
            "after_accept is 1 and after_reject 0", expected="a chain that leaves both states"
        )
    count("k", k, 2)
    return give(1.0 + (1.0 - a0) * leave / total)
