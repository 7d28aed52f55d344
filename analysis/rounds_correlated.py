"""Rounds whose acceptance has memory or a shared rate: Markov chains and Beta mixtures.

Symbols as in `analysis.rounds`. A chain of rounds remembers one bit, whether the round before was
accepted in full; ``r`` and ``f`` are the rates of the first draft after a rejection and after a
full round, ``later`` those of drafts 2..k given the one before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betainc, betaincinv

from analysis._checks import FloatArray, count, give, one_count, positive, probability
from analysis._kinds import AssumptionError
from analysis.rounds import (
    acceptance_length_iid,
    acceptance_length_position,
    accepted_pmf_position,
    accepted_variance_position,
    pmf_mean,
    pmf_variance,
)
from analysis.special import geometric_sum, one_minus_power
from psdsim.errors import InputError


class NotMixingError(AssumptionError):
    """The chain of rounds stays for ever in the state it starts in: there is no one mean."""


def acceptance_length_markov_rounds(
    after_rejection: ArrayLike, after_full: ArrayLike, later: ArrayLike
) -> FloatArray:
    """Return E[N] when the first draft's rate depends on the previous round (theory note 2.2a).

    Parameters
    ----------
    after_rejection, after_full
        P(first draft accepted | previous round had a rejection / was fully accepted).
    later
        Shape (k - 1,): P(draft j accepted | draft j-1 accepted), j = 2..k; empty for k = 1.

    Examples
    --------
    >>> round(float(acceptance_length_markov_rounds(0.55, 0.85, [0.8, 0.8, 0.8])), 6)
    2.918242
    """
    r, f = probability("after_rejection", after_rejection), probability("after_full", after_full)
    reach = np.cumprod(_rates(later), axis=-1)
    all_later = reach[..., -1] if reach.shape[-1] else np.float64(1.0)
    never_ends = 1.0 - (f - r) * all_later
    if np.any(never_ends <= 0.0):
        raise InputError(
            "after_rejection is 0 and after a full round everything is accepted",
            expected="a chain that leaves both states",
        )
    full = r * all_later / never_ends
    return give(1.0 + ((1.0 - full) * r + full * f) * (1.0 + reach.sum(axis=-1)))


def acceptance_length_markov(
    after_accept: ArrayLike, after_reject: ArrayLike, k: ArrayLike
) -> FloatArray:
    """Return E[N] of serial rounds when acceptance is a Markov chain over output positions.

    A round that follows a rejection starts after a 0; one that follows a full acceptance starts
    after the bonus position, whose own bit was never tested and is 1 with ``after_accept``.
    Between two rejected rounds that is the chain of :func:`acceptance_length_markov_rounds`
    with r = a0, later = a1 and f = a1*a1 + (1-a1)*a0 (own derivation).

    Parameters
    ----------
    after_accept, after_reject
        a1 = P(bit 1 | previous bit 1) and a0 = P(bit 1 | previous bit 0).
    k
        Drafted tokens, >= 1.

    Examples
    --------
    >>> round(float(acceptance_length_markov(0.8, 0.8, 4)), 10)  # no memory: the i.i.d. value
    3.3616
    """
    a1, a0 = probability("after_accept", after_accept), probability("after_reject", after_reject)
    n = count("k", k, 1)
    after_full = a1 * a1 + (1.0 - a1) * a0
    all_later = 1.0 - one_minus_power(a1, n - 1)
    never_ends = 1.0 - (after_full - a0) * all_later
    if np.any(never_ends <= 0.0):
        raise InputError("after_accept is 1 and after_reject is 0", expected="a chain that mixes")
    full = a0 * all_later / never_ends
    return give(1.0 + ((1.0 - full) * a0 + full * after_full) * geometric_sum(a1, n))


def acceptance_length_beta(a: ArrayLike, b: ArrayLike, k: int) -> FloatArray:
    """Return E[N] with one alpha per round, alpha ~ Beta(a, b) (theory note 2.2b).

    Parameters
    ----------
    a, b
        Shape parameters, > 0.
    k
        Drafted tokens, >= 0.

    Examples
    --------
    >>> round(float(acceptance_length_beta(4.0, 1.0, 5)), 7)
    3.9825397
    """
    shape_a, shape_b = positive("a", a), positive("b", b)
    i = np.arange(one_count("k", k))
    ratio = (shape_a[..., None] + i) / (shape_a[..., None] + shape_b[..., None] + i)
    return acceptance_length_position(ratio)


def pooled_acceptance_length(lengths: ArrayLike) -> FloatArray:
    """Return tokens/rounds pooled over equally long requests: the harmonic mean (note 2.2c).

    Examples
    --------
    >>> round(float(pooled_acceptance_length([1.9375, 4.0951])), 7)
    2.6304599
    """
    return give(1.0 / np.mean(1.0 / positive("lengths", lengths)))
