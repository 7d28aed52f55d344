"""How to split the tokens that one target pass can verify over the requests of a batch.

TETRIS maximises the expected tokens of the step, GoodSpeed the product of the requests' rates.
Both objectives are sums of concave functions of the lengths, so taking the best next token
``capacity`` times is optimal (theory note 2.7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, IntArray, count, give, one_count, probability
from analysis.rounds import acceptance_length_iid
from psdsim.errors import InputError


def _survival(rates: ArrayLike) -> FloatArray:
    found = probability("rates", rates)
    if found.ndim != 2 or found.shape[0] == 0:
        raise InputError(
            f"rates has shape {found.shape}", expected="one row per request, one rate per draft"
        )
    return np.asarray(np.cumprod(found, axis=1))


def _largest(gains: FloatArray, capacity: int) -> IntArray:
    """Return per row how many of the ``capacity`` largest gains it has; rows don't increase."""
    n, k = gains.shape
    draft, request = np.tile(np.arange(k), n), np.repeat(np.arange(n), k)
    # Of equal gains the earlier draft comes first, so a row is never entered in its middle.
    order = np.lexsort((request, draft, -gains.ravel()))[: min(capacity, n * k)]
    return np.bincount(request[order], minlength=n).astype(np.int64)


def tetris_lengths(rates: ArrayLike, capacity: int) -> IntArray:
    """Return the drafts to verify of each request for the most expected tokens (TETRIS).

    The ``capacity`` largest survival probabilities; as a row of cumulative products does not
    increase, they are prefixes.

    Parameters
    ----------
    rates
        Shape (requests, k): P(draft j accepted | drafts before it accepted), or the draft's own
        probabilities in its place, in [0, 1].
    capacity
        Drafted tokens verified in the step, over all requests, >= 0.

    Returns
    -------
    Shape (requests,); it sums to min(capacity, requests * k).

    Examples
    --------
    >>> tetris_lengths([[0.9] * 6, [0.5] * 6], 6).tolist()
    [6, 0]
    >>> tetris_lengths([[0.9] * 5, [0.6] * 5], 6).tolist()
    [5, 1]
    """
    return _largest(_survival(rates), one_count("capacity", capacity))


def tetris_value(rates: ArrayLike, lengths: ArrayLike) -> float:
    """Return sum over requests of sum over j <= k_i of the survival probability.

    Expected accepted drafts of the step; the corrected or bonus tokens come on top.

    Parameters
    ----------
    rates
        As in `tetris_lengths`.
    lengths
        k_i, shape (requests,), at most k.

    Examples
    --------
    >>> round(tetris_value([[0.9] * 6, [0.5] * 6], [6, 0]), 6)
    4.217031
    """
    reach = _survival(rates)
    n = count("lengths", lengths)
    if n.shape != reach.shape[:1] or np.any(n > reach.shape[1]):
        raise InputError(f"lengths is {n.tolist()}", expected="one length up to k per request")
    return float(reach[np.arange(reach.shape[1]) < n[:, None]].sum())


def goodspeed_lengths(alpha: ArrayLike, capacity: int) -> IntArray:
    """Return the split of ``capacity`` drafts that maximises sum of log E[N_i] (GoodSpeed).

    Proportional fairness; log E[N] is concave in the length, so the largest gains are taken.

    Parameters
    ----------
    alpha
        Shape (requests,): i.i.d. acceptance of each.
    capacity
        Drafted tokens over all requests, >= 0.

    Examples
    --------
    >>> goodspeed_lengths([0.9, 0.5], 6).tolist()
    [4, 2]
    """
    a, total = probability("alpha", alpha), one_count("capacity", capacity)
    if a.ndim != 1 or a.size == 0:
        raise InputError(f"alpha has shape {a.shape}", expected="one rate per request")
    mean = np.asarray(acceptance_length_iid(a[:, None], np.arange(total + 1)))
    return _largest(np.diff(np.log(mean), axis=1), total)


def goodspeed_value(alpha: ArrayLike, lengths: ArrayLike) -> FloatArray:
    """Return sum of log E[N_i] over the last axis, natural logarithm.

    Parameters
    ----------
    alpha, lengths
        Per request; they broadcast.

    Examples
    --------
    >>> round(float(goodspeed_value([0.9, 0.5], [4, 2])), 8)
    1.96940692
    """
    return give(np.log(acceptance_length_iid(alpha, lengths)).sum(axis=-1))
