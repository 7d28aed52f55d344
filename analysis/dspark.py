"""DSpark: which drafted tokens to verify, given confidences and a measured speed curve.

One pass over B tokens runs ``steps_per_s[B]`` times a second; a request r with l_r drafts
verified gives 1 + sum of its survival probabilities (arXiv 2607.05147; DSpark, section 3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, IntArray, count, positive, probability
from psdsim.errors import InputError


def _inputs(survival: ArrayLike, steps_per_s: ArrayLike) -> tuple[FloatArray, FloatArray]:
    reach = probability("survival", survival)
    if reach.ndim != 2 or reach.shape[0] == 0:
        raise InputError(
            f"survival has shape {reach.shape}", expected="one row per request, one column a draft"
        )
    if np.any(np.diff(reach, axis=1) > 0):
        raise InputError("survival increases along a row", expected="cumulative products")
    speed = positive("steps_per_s", steps_per_s)
    needed = reach.shape[0] + reach.size
    if speed.ndim != 1 or speed.size < needed:
        raise InputError(
            f"steps_per_s has {speed.size} entries", expected=f"one for each of 1..{needed} tokens"
        )
    return reach, speed


def theta(lengths: ArrayLike, survival: ArrayLike, steps_per_s: ArrayLike) -> float:
    """Return tau * SPS(B), expected tokens/s: tau = sum of 1 + survival, B = sum of 1 + l_r.

    Parameters
    ----------
    lengths
        l_r, shape (requests,), drafts verified of each.
    survival
        a_{r,j}, shape (requests, drafts): P(the first j drafts are accepted), not increasing.
    steps_per_s
        SPS(1), SPS(2), ...: entry i is for B = i + 1 tokens; > 0, long enough for all of them.

    Examples
    --------
    >>> round(theta([1], [[0.8, 0.8]], [1.0, 0.5, 0.45]), 12)
    0.9
    """
    reach, speed = _inputs(survival, steps_per_s)
    n = count("lengths", lengths)
    if n.shape != reach.shape[:1] or np.any(n > reach.shape[1]):
        raise InputError(f"lengths is {n.tolist()}", expected="one length up to k per request")
    tokens = n.size + reach[np.arange(reach.shape[1]) < n[:, None]].sum()
    return float(tokens * speed[n.size + int(n.sum()) - 1])


def _path(reach: FloatArray, speed: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the requests in the order in which their drafts are added, and theta after each."""
    n, k = reach.shape
    draft, request = np.tile(np.arange(k), n), np.repeat(np.arange(n), k)
    order = np.lexsort((request, draft, -reach.ravel()))
    tokens = n + np.append(0.0, np.cumsum(reach.ravel()[order]))
    return request[order].astype(np.int64), tokens * speed[n - 1 : n + order.size]


def prefix_schedule(survival: ArrayLike, steps_per_s: ArrayLike) -> IntArray:
    """Return l_r by the greedy scheduler: add the likeliest draft while theta rises.

    It stops at the first draft that does not raise theta. That is optimal if theta has one peak
    along the path, and keeps the choice from depending on drafts further on, which losslessness
    needs (the paper's appendix A).

    Parameters
    ----------
    survival, steps_per_s
        As in `theta`.

    Examples
    --------
    >>> prefix_schedule([[0.8, 0.8]], [1.0, 0.5, 0.45]).tolist()   # 1 -> .9: stop
    [0]
    >>> prefix_schedule([[0.9, 0.8], [0.5, 0.1]], [1.0, 1.0, 1.0, 0.7, 0.6, 0.5]).tolist()
    [1, 0]
    """
    reach, speed = _inputs(survival, steps_per_s)
    request, values = _path(reach, speed)
    falls = np.flatnonzero(np.diff(values) <= 0.0)
    taken = int(falls[0]) if falls.size else request.size
    return np.bincount(request[:taken], minlength=reach.shape[0]).astype(np.int64)


def global_schedule(survival: ArrayLike, steps_per_s: ArrayLike) -> IntArray:
    """Return l_r at the highest theta of the whole path, for jagged speed curves.

    For a given B the likeliest drafts are the best, so this is the optimum. With confidences of
    the same step it looks ahead and is not lossless; production uses older confidences.

    Parameters
    ----------
    survival, steps_per_s
        As in `theta`.

    Examples
    --------
    >>> global_schedule([[0.8, 0.8]], [1.0, 0.5, 0.45]).tolist()   # 1, .9, 2.6 x .45
    [2]
    """
    reach, speed = _inputs(survival, steps_per_s)
    request, values = _path(reach, speed)
    taken = int(np.argmax(values))
    return np.bincount(request[:taken], minlength=reach.shape[0]).astype(np.int64)
