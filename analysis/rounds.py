"""Law of one draft-and-verify round: accepted drafts L in 0..k, emitted tokens N = L + 1.

Symbols: ``alpha`` is P(a drafted token is accepted | all before it in the round were), ``k`` the
number of drafted tokens. N counts the corrected or bonus token, so E[N] is the acceptance length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, count, give, law, one_count, probability, real
from analysis.special import geometric_sum, one_minus_power
from psdsim.errors import InputError


def _rates(rates: ArrayLike) -> FloatArray:
    found = probability("rates", rates)
    if found.ndim == 0:
        raise InputError("rates is a single number", expected="one rate per draft position")
    return found


def accepted_pmf_position(rates: ArrayLike) -> FloatArray:
    """Return P(L = j), j = 0..k, for position-dependent conditional rates.

    P(L >= j) is the product of the first j rates (theory note 2.1).

    Parameters
    ----------
    rates
        Shape (..., k): P(draft j accepted | drafts before it accepted), in [0, 1].

    Returns
    -------
    Array of shape (..., k + 1) that sums to 1 along the last axis.

    Examples
    --------
    >>> accepted_pmf_position([0.5, 0.5]).tolist()
    [0.5, 0.25, 0.25]
    """
    found = _rates(rates)
    reach = np.concatenate([np.ones((*found.shape[:-1], 1)), np.cumprod(found, axis=-1)], axis=-1)
    miss = np.concatenate([1.0 - found, np.ones((*found.shape[:-1], 1))], axis=-1)
    return give(reach * miss)


def accepted_pmf_iid(alpha: ArrayLike, k: int) -> FloatArray:
    """Return P(L = j), j = 0..k: the truncated geometric law (theory note 1.2).

    Parameters
    ----------
    alpha
        Acceptance probability in [0, 1], any shape.
    k
        Drafted tokens, >= 0.

    Returns
    -------
    Array of shape ``alpha.shape + (k + 1,)``.

    Examples
    --------
    >>> accepted_pmf_iid(0.5, 2).tolist()
    [0.5, 0.25, 0.25]
    """
    found, n = probability("alpha", alpha), one_count("k", k)
    return accepted_pmf_position(np.repeat(found[..., None], n, axis=-1))


def pmf_mean(pmf: ArrayLike) -> FloatArray:
    """Return the mean of a law on 0, 1, 2, ... along the last axis.

    Parameters
    ----------
    pmf
        Shape (..., n): P(0), P(1), ...

    Examples
    --------
    >>> float(pmf_mean([0.5, 0.25, 0.25]))
    0.75
    """
    found = probability("pmf", pmf)
    return give(found @ np.arange(found.shape[-1]))


def pmf_variance(pmf: ArrayLike) -> FloatArray:
    """Return the variance of a law on 0, 1, 2, ... along the last axis, from centred values.

    Examples
    --------
    >>> float(pmf_variance([0.5, 0.0, 0.5]))
    1.0
    """
    found = probability("pmf", pmf)
    away = np.arange(found.shape[-1]) - np.asarray(pmf_mean(found))[..., None]
    return give((found * away**2).sum(axis=-1))


def tokens_pmf(accepted_pmf: ArrayLike) -> FloatArray:
    """Return the law of N = L + 1 from that of L: one place up, P(N = 0) = 0.

    Parameters
    ----------
    accepted_pmf
        Shape (k + 1,): P(L = j).

    Examples
    --------
    >>> tokens_pmf([0.5, 0.25, 0.25]).tolist()
    [0.0, 0.5, 0.25, 0.25]
    """
    return np.concatenate([[0.0], law("accepted_pmf", accepted_pmf)])


def accepted_pgf(z: ArrayLike, accepted_pmf: ArrayLike) -> FloatArray:
    """Return E[z**L] = sum of P(L = j) z^j for any law of L, by Horner's rule.

    Parameters
    ----------
    z
        Real argument, any shape.
    accepted_pmf
        Shape (k + 1,): P(L = j), of whichever acceptance model.

    Examples
    --------
    >>> float(accepted_pgf(2.0, [0.5, 0.25, 0.25]))
    2.0
    """
    found = law("accepted_pmf", accepted_pmf)
    return give(np.polynomial.polynomial.polyval(real("z", z), found))


def acceptance_length_iid(alpha: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return E[N] = (1 - alpha**(k+1)) / (1 - alpha) (Leviathan et al. 2023, eq. 1).

    Parameters
    ----------
    alpha
        Acceptance probability in [0, 1].
    k
        Drafted tokens, >= 0; broadcasts with ``alpha``.

    Examples
    --------
    >>> round(float(acceptance_length_iid(0.8, 4)), 10)
    3.3616
    """
    return geometric_sum(alpha, count("k", k) + 1)


def acceptance_length_position(rates: ArrayLike) -> FloatArray:
    """Return E[N] = 1 + sum over j of the product of the first j rates (theory note 2.1).

    Examples
    --------
    >>> round(float(acceptance_length_position([0.9, 0.8, 0.7, 0.6])), 10)
    3.4264
    """
    return give(1.0 + np.cumprod(_rates(rates), axis=-1).sum(axis=-1))


def accepted_variance_position(rates: ArrayLike) -> FloatArray:
    """Return Var[L] = Var[N] = sum (2j-1) P(L >= j) - E[L]**2 (theory note 2.1).

    Examples
    --------
    >>> round(float(accepted_variance_position([0.9, 0.8, 0.7, 0.6])), 6)
    1.809383
    """
    reach = np.cumprod(_rates(rates), axis=-1)
    odd = 2.0 * np.arange(1, reach.shape[-1] + 1) - 1.0
    return give((odd * reach).sum(axis=-1) - reach.sum(axis=-1) ** 2)


def accepted_variance_iid(alpha: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return Var[L] = Var[N] of the truncated geometric law (theory note 1.2).

    The closed form [a - (2k+1)(1-a)a^(k+1) - a^(2k+2)]/(1-a)^2 cancels near a = 1, so the sum
    it comes from is used: sum of (2j-1) a^j, minus the squared mean.

    Examples
    --------
    >>> round(float(accepted_variance_iid(0.8, 4)), 8)
    2.57004544
    """
    found, n = np.broadcast_arrays(probability("alpha", alpha), count("k", k))
    j = np.arange(1, int(n.max(initial=0)) + 1)
    reach = np.where(j <= n[..., None], found[..., None] ** j, 0.0)
    return give(((2.0 * j - 1.0) * reach).sum(axis=-1) - reach.sum(axis=-1) ** 2)


def accepted_pgf_iid(z: ArrayLike, alpha: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return E[z**L] = (1-a)(1-(az)^k)/(1-az) + (az)^k (theory note 1.2).

    Parameters
    ----------
    z
        Real argument, 0 <= alpha * z <= 1.
    alpha, k
        As in :func:`accepted_pmf_iid`; all three broadcast.

    Examples
    --------
    >>> float(accepted_pgf_iid(1.0, 0.8, 4))
    1.0
    """
    found = probability("alpha", alpha)
    inner = probability("alpha * z", found * real("z", z))
    n = count("k", k)
    return give((1.0 - found) * geometric_sum(inner, n) + (1.0 - one_minus_power(inner, n)))


def wasted_drafts_iid(alpha: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return k - E[L], drafted tokens thrown away per serial round (theory note 1.4).

    Examples
    --------
    >>> round(float(wasted_drafts_iid(0.8, 4)), 10)
    1.6384
    """
    return give(count("k", k) + 1.0 - acceptance_length_iid(alpha, k))


def batch_min_length_iid(alpha: ArrayLike, k: ArrayLike, n_seqs: ArrayLike) -> FloatArray:
    """Return E[min over a batch of N] = (1-a^(B(k+1)))/(1-a^B) (theory note 2.4).

    This is what a rectangular batch, cut to its slowest member, emits per request.

    Parameters
    ----------
    alpha, k
        As above.
    n_seqs
        Requests B in the batch, >= 1.

    Examples
    --------
    >>> round(float(batch_min_length_iid(0.8, 4, 2)), 7)
    2.4795162
    """
    batch = count("n_seqs", n_seqs, 1)
    return geometric_sum(probability("alpha", alpha) ** batch, count("k", k) + 1)
