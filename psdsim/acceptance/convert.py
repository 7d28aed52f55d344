"""Conversions between the acceptance figures in circulation; each says what it loses.

`alpha` is always the per-test rate: accepted / (accepted + rejections), the probability that
a draft is accepted given that all before it in its round were. The i.i.d. relations are
Leviathan et al. 2023, Eq. 1: E[L] = alpha + alpha^2 + ... + alpha^k.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from psdsim.acceptance.fields import check_draft_length
from psdsim.acceptance.law import FloatArray
from psdsim.errors import InputError


def number_in(value: object, name: str, low: float, high: float) -> float:
    """Return the number, or raise InputError if it is outside [low, high]."""
    kinds = int | float | np.integer | np.floating
    number = float(value) if isinstance(value, kinds) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number) or not low <= number <= high:
        upper = f" and at most {high:g}" if math.isfinite(high) else ""
        raise InputError(f"{name} is {value!r}", expected=f"a number of at least {low:g}{upper}")
    return number


def _rates(rates: npt.ArrayLike) -> FloatArray:
    try:
        given = np.asarray(rates)
    except ValueError:  # rows of unequal length
        given = np.zeros((0, 0))
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iuf"):
        raise InputError(
            "the per-position rates are not a flat list of numbers",
            expected="one probability a position",
        )
    values = given.astype(np.float64)
    if not np.all((values >= 0.0) & (values <= 1.0)):
        raise InputError(
            f"the per-position rates are {values.tolist()}", expected="each between 0 and 1"
        )
    return values


def acceptance_length_from_alpha(alpha: float, k: int) -> float:
    """Return the mean tokens emitted per round of k drafts, bonus included (i.i.d.).

    Assumes every draft is accepted with the same probability, independently.

    Parameters
    ----------
    alpha
        Per-test acceptance rate, in [0, 1].
    k
        Drafted tokens per round, >= 0.

    Returns
    -------
    float
        In [1, k+1] tokens. Leviathan Eq. 1, summed so that alpha = 1 needs no special case.

    Examples
    --------
    >>> round(acceptance_length_from_alpha(0.8, 4), 6)
    3.3616
    """
    check_draft_length(k)
    alpha = number_in(alpha, "alpha", 0.0, 1.0)
    return float(np.sum(alpha ** np.arange(k + 1)))


def alpha_from_acceptance_length(length: float, k: int) -> float:
    """Return the i.i.d. rate that gives a mean acceptance length (bonus included) at k.

    Loses: how acceptance changes with the position in the round, and its correlation; only
    the mean at this k is matched, so other k and the variance are a guess.

    Parameters
    ----------
    length
        Tokens emitted per round, bonus or corrected token counted, in [1, k+1]. For a figure
        without it (vLLM 0.8), pass `length_with_bonus` of it.
    k
        Drafted tokens per round when it was measured, >= 1.

    Returns
    -------
    float
        alpha in [0, 1], the exact root of Leviathan Eq. 1.

    Raises
    ------
    psdsim.errors.InputError
        If ``length`` lies outside [1, k+1].

    Examples
    --------
    >>> round(alpha_from_acceptance_length(3.3616, 4), 9)
    0.8
    """
    check_draft_length(k, least=1)
    mean = number_in(length, "the acceptance length", 1.0, k + 1.0) - 1.0
    if mean == 0.0:
        return 0.0
    if mean == k:
        return 1.0
    ones = np.ones(k)

    def excess(alpha: float) -> float:
        return float(alpha * np.polyval(ones, alpha)) - mean

    # The sum has slope >= 1 on [0, 1], so the root is unique and as sharp as the mean itself.
    return float(brentq(excess, 0.0, 1.0, xtol=1e-16, rtol=4 * np.finfo(np.float64).eps))


def length_with_bonus(accepted: float) -> float:
    """Return tokens emitted per round from accepted drafts per round (adds the +1 token).

    Loses nothing for chain drafts; vLLM 0.8 printed the left figure under the right name.

    Examples
    --------
    >>> length_with_bonus(1.5)
    2.5
    """
    return number_in(accepted, "the accepted drafts per round", 0.0, math.inf) + 1.0


def length_without_bonus(length: float) -> float:
    """Return accepted drafts per round from tokens emitted per round (takes the +1 away).

    Loses nothing for chain drafts, except where a stop clipped a round.

    Examples
    --------
    >>> length_without_bonus(2.5)
    1.5
    """
    return number_in(length, "the acceptance length", 1.0, math.inf) - 1.0


def acceptance_rate_from_alpha(alpha: float, k: int) -> float:
    """Return accepted / drafted tokens at k (vLLM's "draft acceptance rate") under i.i.d.

    It falls as k grows at the same draft quality: it isn't a property of the drafter alone.

    Parameters
    ----------
    alpha
        Per-test acceptance rate, in [0, 1].
    k
        Drafted tokens per round, >= 1.

    Examples
    --------
    >>> round(acceptance_rate_from_alpha(0.8, 4), 6)
    0.5904
    """
    check_draft_length(k, least=1)
    return (acceptance_length_from_alpha(alpha, k) - 1.0) / k


def alpha_from_acceptance_rate(rate: float, k: int) -> float:
    """Return the i.i.d. rate behind accepted / drafted tokens measured at k.

    Loses what `alpha_from_acceptance_length` loses. Wrong for vLLM V0, whose rate also
    counts accepted drafts after a rejected one, and for SGLang before its figure stopped
    counting the bonus token.

    Parameters
    ----------
    rate
        Accepted / drafted, in [0, 1] (not percent).
    k
        Drafted tokens per round when it was measured, >= 1.

    Examples
    --------
    >>> round(alpha_from_acceptance_rate(0.5904, 4), 9)
    0.8
    """
    check_draft_length(k, least=1)
    # rate * k may exceed k by one rounding when the rate is 1.
    mean = min(number_in(rate, "the acceptance rate", 0.0, 1.0) * k, float(k))
    return alpha_from_acceptance_length(min(1.0 + mean, k + 1.0), k)


def conditional_from_unconditional(rates: npt.ArrayLike) -> FloatArray:
    """Return P(draft i accepted | all before were) from P(the first i drafts all accepted).

    The unconditional rates are what vLLM and llama.cpp print per position. Loses nothing,
    except behind a rate of 0, where no draft is ever reached and the answer is set to 0.

    Parameters
    ----------
    rates
        Shape (k,), in [0, 1], non-increasing.

    Returns
    -------
    numpy.ndarray
        Shape (k,).

    Raises
    ------
    psdsim.errors.InputError
        If a rate exceeds the one before it (then they are conditional, or from vLLM V0).

    Examples
    --------
    >>> conditional_from_unconditional([0.8, 0.4, 0.3]).round(12).tolist()
    [0.8, 0.5, 0.75]
    """
    values = _rates(rates)
    before = np.concatenate([[1.0], values])[: values.size]
    rises = np.flatnonzero(values > before)
    if rises.size:
        i = int(rises[0])
        raise InputError(
            f"unconditional rate {values[i]:g} at position {i} exceeds {before[i]:g} before it",
            expected="non-increasing rates (conditional rates may rise: say which they are)",
        )
    return np.asarray(np.divide(values, before, out=np.zeros(values.size), where=before > 0.0))


def unconditional_from_conditional(rates: npt.ArrayLike) -> FloatArray:
    """Return P(the first i drafts all accepted) from the conditional rates.

    Loses the conditional rates behind a 0.

    Parameters
    ----------
    rates
        Shape (k,), in [0, 1].

    Examples
    --------
    >>> unconditional_from_conditional([0.8, 0.5, 0.75]).round(12).tolist()
    [0.8, 0.4, 0.3]
    """
    return np.asarray(np.cumprod(_rates(rates)), dtype=np.float64)


def acceptance_length_from_unconditional(rates: npt.ArrayLike) -> float:
    """Return tokens emitted per round, 1 + the sum of the unconditional rates.

    Exact under any dependence between positions; loses everything but the mean.

    Examples
    --------
    >>> acceptance_length_from_unconditional([0.8, 0.4, 0.3])
    2.5
    """
    conditional_from_unconditional(rates)  # refuses rates that rise
    return 1.0 + float(_rates(rates).sum())
