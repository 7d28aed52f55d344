"""Conversions between the acceptance figures in circulation; each says what it loses.

`alpha` is always the per-test rate: accepted / (accepted + rejections), the probability that
a draft is accepted given that all before it in its round were. The i.i.d. relations are
Leviathan et al. 2023, Eq. 1: E[L] = alpha + alpha^2 + ... + alpha^k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from psdsim.acceptance.fields import check_draft_length
from psdsim.acceptance.law import FloatArray
from psdsim.errors import InputError

MatConvention = Literal["without_corrected", "with_corrected"]
"""Whether a mean accepted run (MAT) counts the target's corrected token that ends it."""


def _number(value: float, name: str, low: float, high: float) -> float:
    ok = not isinstance(value, bool) and math.isfinite(value) and low <= value <= high
    if not ok:
        upper = f" and at most {high:g}" if math.isfinite(high) else ""
        raise InputError(f"{name} is {value!r}", expected=f"a number of at least {low:g}{upper}")
    return float(value)


def _rates(rates: npt.ArrayLike) -> FloatArray:
    values = np.asarray(rates)
    if values.dtype == np.bool_ or values.ndim != 1:
        raise InputError(
            "the per-position rates are not a flat list of numbers",
            expected="one probability a position",
        )
    values = values.astype(np.float64)
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
    alpha = _number(alpha, "alpha", 0.0, 1.0)
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
    mean = _number(length, "the acceptance length", 1.0, k + 1.0) - 1.0
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
    return _number(accepted, "the accepted drafts per round", 0.0, math.inf) + 1.0


def length_without_bonus(length: float) -> float:
    """Return accepted drafts per round from tokens emitted per round (takes the +1 away).

    Loses nothing for chain drafts, except where a stop clipped a round.

    Examples
    --------
    >>> length_without_bonus(2.5)
    1.5
    """
    return _number(length, "the acceptance length", 1.0, math.inf) - 1.0


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
    mean = min(_number(rate, "the acceptance rate", 0.0, 1.0) * k, float(k))
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
    return np.divide(values, before, out=np.zeros(values.size), where=before > 0.0)


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
    return np.cumprod(_rates(rates))


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


def _counts(counts: Sequence[int] | npt.ArrayLike) -> FloatArray:
    values = np.asarray(counts)
    whole = values.ndim == 1 and values.size > 0 and np.issubdtype(values.dtype, np.integer)
    if not whole or values.min() < 0 or values.sum() == 0:
        raise InputError(
            f"the histogram of accepted drafts is {values.tolist()}",
            expected="whole counts of at least 0 for 0, 1, ..., k accepted drafts, not all 0",
        )
    return values.astype(np.float64)


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


def alpha_from_mat(mat: float, convention: MatConvention) -> float:
    """Return the i.i.d. rate behind a mean accepted run between rejections (PEARL's MAT).

    The PEARL repository leaves the corrected token out: alpha = MAT / (1 + MAT); nano-PEARL
    counts it: alpha = 1 - 1 / MAT. DSI's rate 1 - 1 / (1 + mean match) is the first form.
    Loses position dependence and correlation; a run cut by the end of an output biases it low.
    Not for the serial SD mode of those tools, whose MAT is accepted drafts per round of k.

    Parameters
    ----------
    mat
        Tokens, >= 0 without or >= 1 with the corrected token.
    convention
        ``without_corrected`` or ``with_corrected``.

    Returns
    -------
    float
        alpha in [0, 1).

    Examples
    --------
    >>> alpha_from_mat(4.0, "without_corrected"), alpha_from_mat(5.0, "with_corrected")
    (0.8, 0.8)
    """
    if _corrected(convention):
        return 1.0 - 1.0 / _number(mat, "MAT with the corrected token", 1.0, math.inf)
    mat = _number(mat, "MAT without the corrected token", 0.0, math.inf)
    return mat / (1.0 + mat)


def mat_from_alpha(alpha: float, convention: MatConvention) -> float:
    """Return the mean accepted run between rejections under i.i.d.

    Parameters
    ----------
    alpha
        Per-test acceptance rate, in [0, 1); at 1 a run never ends.
    convention
        ``without_corrected`` (alpha / (1 - alpha)) or ``with_corrected`` (1 / (1 - alpha)).

    Examples
    --------
    >>> mat_from_alpha(0.75, "without_corrected"), mat_from_alpha(0.75, "with_corrected")
    (3.0, 4.0)
    """
    counted = _corrected(convention)
    if _number(alpha, "alpha", 0.0, 1.0) == 1.0:
        raise InputError("alpha is 1, so no run ever ends", expected="alpha below 1")
    return (1.0 if counted else alpha) / (1.0 - alpha)


def _corrected(convention: MatConvention) -> bool:
    if convention not in ("without_corrected", "with_corrected"):
        raise InputError(
            f"the MAT convention is {convention!r}",
            expected="'without_corrected' or 'with_corrected'",
        )
    return convention == "with_corrected"
