"""Two small functions that the closed forms share, written to be exact at their limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw

from analysis._checks import FloatArray, count, give, nonnegative, probability


def one_minus_power(alpha: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return 1 - alpha**n without cancellation near alpha = 1.

    Parameters
    ----------
    alpha
        Probability in [0, 1].
    n
        Whole number >= 0; broadcasts with ``alpha``.

    Examples
    --------
    >>> float(one_minus_power(0.5, 3))
    0.875
    >>> float(one_minus_power(0.0, 0))
    0.0
    """
    base, power = np.broadcast_arrays(probability("alpha", alpha), count("n", n))
    # log1p(alpha - 1) is exact where alpha is near 1; a small alpha loses nothing directly.
    near = base > 0.5
    safe = np.where(near, base, 1.0)
    exact = -np.expm1(power * np.log1p(safe - 1.0))
    return give(np.where(near, exact, 1.0 - np.where(near, 0.0, base) ** power))


def geometric_sum(alpha: ArrayLike, n: ArrayLike) -> FloatArray:
    """Return 1 + alpha + ... + alpha**(n-1), which is n at alpha = 1.

    Parameters
    ----------
    alpha
        Probability in [0, 1].
    n
        Number of terms >= 0; broadcasts with ``alpha``.

    Examples
    --------
    >>> float(geometric_sum(0.5, 3))
    1.75
    >>> float(geometric_sum(1.0, 3))
    3.0
    """
    base, terms = np.broadcast_arrays(probability("alpha", alpha), count("n", n))
    miss = 1.0 - base
    ratio = one_minus_power(base, terms) / np.where(miss > 0, miss, 1.0)
    return give(np.where(miss > 0, ratio, terms.astype(np.float64)))


def lambert_excess(x: ArrayLike) -> FloatArray:
    """Return the root t >= 0 of t - ln(1 + t) = x.

    It is ``-W(-exp(-1-x)) - 1`` on the lower branch of Lambert's W; the Newton steps make it
    exact near the branch point (t ~ sqrt(2x)) and where the exponential underflows.

    Parameters
    ----------
    x
        Real number >= 0.

    Examples
    --------
    >>> round(float(lambert_excess(1 - 0.6931471805599453)), 9)  # 1 - ln 2, so t = 1
    1.0
    """
    excess = nonnegative("x", x)
    small = excess < 600.0
    by_w = -np.real(lambertw(-np.exp(-1.0 - np.where(small, excess, 0.0)), -1)) - 1.0
    start = np.where(small, by_w, excess + np.log1p(excess))
    # The branch-point series is a better start than W where exp(-1-x) rounds to exp(-1).
    root = np.where(
        excess < 1e-6, np.sqrt(2.0 * excess) * (1.0 + np.sqrt(2.0 * excess) / 3.0), start
    )
    for _ in range(3):
        slope = root / (1.0 + root)
        step = (root - np.log1p(root) - excess) / np.where(slope > 0, slope, 1.0)
        # Below this the residual is rounding noise and the series above is already exact.
        root = np.where(excess < 1e-6, root, root - step)
    return give(root)
