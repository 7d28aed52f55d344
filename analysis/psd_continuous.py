"""MineDraft's continuous theorem, recomputed: what it says and what its printed constants mean.

Drafting for a time t has tokens accepted at f(t) = 1 - exp(-a t); verification takes V, and
x = a V is the only parameter. SD needs (t + V) / f(t) at its best t, PSD max(t, V) / f(t) at
its best t, which is V. The ratio of the two, `continuous_ratio`, starts at 1, rises to exactly 2
at `peak` = 1.2564 and falls back to 1.

Two versions of the paper's text print "SD takes at least 1.59 times as long" for a V of 1.68 (or
at least 1.68), and 1.61 with 2.23. 1.67835 is the root y of (1 + y) exp(-y) = 1/2, and 1.5958 is
1 + 1/y. So:

* at x = 1.68 the ratio is 1.98: "at least 1.59" is true there, and loose;
* read for every x >= 1.68, it is false: the ratio is below 1.59 for x > 5.2111 (and below 1.61
  for x > 4.967) and has no lower bound above 1;
* y is neither the peak nor an end of a range: it is the drafting time a t at which SD does best
  when x = 1 + y = 2.678.

No function here uses 1.59, 1.61 or "37 %" as a constant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import lambertw

from analysis._checks import FloatArray, between, give, positive
from analysis.special import lambert_excess


def best_drafting_sd(x: ArrayLike) -> FloatArray:
    """Return s = a t, SD's best drafting time: the root of exp(s) = 1 + s + x (theory note 5.4).

    Parameters
    ----------
    x
        a V, > 0.

    Examples
    --------
    >>> round(float(best_drafting_sd(0.7182818284590452)), 9)   # e = 1 + 1 + x
    1.0
    """
    value = positive("x", x)
    # With w = 1 + s + x: w - ln w = 1 + x.
    return give(lambert_excess(value) - value)


def continuous_ratio(x: ArrayLike) -> FloatArray:
    """Return R(x) = exp(s) (1 - exp(-x)) / x, SD time / PSD time, each at its best (note 5.4).

    In (1, 2]; 2 at `peak`, where SD's own best drafting time is V; it goes to 1 on both sides,
    like 1 + (1 + ln x)/x for large x.

    Parameters
    ----------
    x
        Acceptance rate times verify time, > 0.

    Examples
    --------
    >>> round(float(continuous_ratio(1.2564312086)), 9)
    2.0
    """
    value = positive("x", x)
    # exp(s) = 1 + s + x, which does not overflow.
    longest = 1.0 + lambert_excess(value)
    return give(-np.expm1(-value) * longest / value)


def peak() -> float:
    """Return x0, the root of exp(x) = 1 + 2x, where R is 2.

    x0 = -1/2 - W(-exp(-1/2) / 2), lower branch.

    Examples
    --------
    >>> round(peak(), 7)
    1.2564312
    """
    return float(-np.real(lambertw(-0.5 * np.exp(-0.5), -1)) - 0.5)


def range_at_least(ratio: float) -> tuple[float, float]:
    """Return (low, high): R(x) >= ratio exactly for low <= x <= high.

    Parameters
    ----------
    ratio
        In (1, 2]; from 1.001 on, as the range grows without limit towards 1.

    Examples
    --------
    >>> [round(v, 4) for v in range_at_least(1.59)], [round(v, 3) for v in range_at_least(1.61)]
    ([0.1878, 5.2111], [0.203, 4.967])
    """
    wanted = float(between("ratio", ratio, 1.001, 2.0))
    top = peak()
    if wanted == 2.0:
        return top, top

    def short_of(x: float) -> float:
        return float(continuous_ratio(x)) - wanted

    # R(x) - 1 is about sqrt(2x) below and (1 + ln x)/x above: these ends are outside any range.
    return float(brentq(short_of, 1e-9, top)), float(brentq(short_of, top, 1e6))


def printed_constant() -> float:
    """Return y = -W(-1/(2e)) - 1 = 1.67835, which solves (1 + y) exp(-y) = 1/2.

    It is the "1.68" of the printed theorem (lower branch of W). At a t = y the tangent to f
    starts from 1/2; this is SD's optimum for x = 1 + y, not a threshold of R.

    Examples
    --------
    >>> y = printed_constant()
    >>> round(y, 5), round(float(best_drafting_sd(1.0 + y)) - y, 12)
    (1.67835, 0.0)
    """
    return float(-np.real(lambertw(-0.5 / np.e, -1)) - 1.0)


def printed_ratio() -> float:
    """Return 1 + 1/y = 1.5958 for y of `printed_constant`: the likely origin of "1.59".

    A number that was printed, not a bound: R(x) is below it for every x above 5.1385.

    Examples
    --------
    >>> round(printed_ratio(), 4)
    1.5958
    """
    return 1.0 + 1.0 / printed_constant()
