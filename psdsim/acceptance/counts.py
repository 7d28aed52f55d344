"""From counts of rounds by accepted drafts to rates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from psdsim.acceptance.fields import check_draft_length
from psdsim.acceptance.law import FloatArray
from psdsim.errors import InputError

MOST_ROUNDS = 2**53
"""Rounds in a histogram beyond which a float no longer holds every count."""


def _counts(counts: Sequence[int] | npt.ArrayLike) -> FloatArray:
    try:
        given = np.asarray(counts)
    except ValueError:  # rows of unequal length
        given = np.zeros(0)
    whole = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iu"
    # As floats, because a sum of large whole numbers would wrap around.
    values = given.astype(np.float64) if whole else np.zeros(1)
    if values.min() < 0.0 or not 0.0 < values.sum() <= MOST_ROUNDS:
        raise InputError(
            f"the histogram of accepted drafts is {counts!r}",
            expected="whole counts of at least 0 for 0, 1, ..., k accepted drafts, not all 0",
        )
    return values


def unconditional_from_histogram(counts: Sequence[int] | npt.ArrayLike) -> FloatArray:
    """Return P(the first i drafts all accepted) from counts of rounds by accepted drafts.

    Loses the order of the rounds (their correlation) and how many rounds there were.

    Parameters
    ----------
    counts
        Shape (k+1,), whole: rounds with 0, 1, ..., k accepted drafts.

    Returns
    -------
    numpy.ndarray
        Shape (k,), non-increasing.

    Examples
    --------
    >>> unconditional_from_histogram([5, 1, 2, 2]).tolist()
    [0.5, 0.4, 0.2]
    """
    values = _counts(counts)
    at_least = np.cumsum(values[::-1])[::-1]
    return np.asarray(at_least[1:] / at_least[0], dtype=np.float64)


def alpha_from_histogram(counts: Sequence[int] | npt.ArrayLike) -> float:
    """Return accepted / (accepted + rejections), the i.i.d. maximum-likelihood estimate.

    A fully accepted round has no rejection, so the estimate isn't biased by the cut at k. Loses
    position dependence and correlation. Its standard error is sqrt(alpha (1 - alpha) / tests).

    Parameters
    ----------
    counts
        Shape (k+1,), k >= 1, whole: rounds with 0, 1, ..., k accepted drafts.

    Examples
    --------
    >>> alpha_from_histogram([5, 1, 2, 2])   # 11 accepted, 8 rejections
    0.5789473684210527
    """
    values = _counts(counts)
    check_draft_length(values.size - 1, least=1)
    accepted = float(np.arange(values.size) @ values)
    return accepted / (accepted + float(values[:-1].sum()))
