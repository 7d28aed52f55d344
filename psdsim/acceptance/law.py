"""Laws of accepted drafts per round as arrays, and paths of two-state chains.

Pure functions: every random number comes in as an argument.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def pmf_from_conditional(rates: FloatArray) -> FloatArray:
    """Return the law of accepted drafts from per-position conditional rates.

    P(L >= j) = a_1 ... a_j (theory of position-dependent acceptance, DSpark and EAGLE-2).

    Parameters
    ----------
    rates
        Shape (..., k): P(draft i accepted | all before it were), in [0, 1].

    Returns
    -------
    numpy.ndarray
        Shape (..., k+1): P(L = j) for j = 0..k; each row sums to 1.

    Examples
    --------
    >>> pmf_from_conditional(np.array([0.5, 0.5])).tolist()
    [0.5, 0.25, 0.25]
    """
    ones = np.ones((*rates.shape[:-1], 1))
    survival = np.concatenate([ones, np.cumprod(rates, axis=-1)], axis=-1)
    stops = np.concatenate([1.0 - rates, ones], axis=-1)
    return np.asarray(survival * stops, dtype=np.float64)


def mean_of(pmf: FloatArray) -> float:
    """Return the mean of a law on 0..k.

    Examples
    --------
    >>> mean_of(np.array([0.5, 0.25, 0.25]))
    0.75
    """
    return float(np.arange(pmf.size) @ pmf)


def var_of(pmf: FloatArray) -> float:
    """Return the variance of a law on 0..k.

    Examples
    --------
    >>> var_of(np.array([0.5, 0.0, 0.5]))
    1.0
    """
    # Centred sum: E[L^2] - E[L]^2 would cancel as alpha goes to 1.
    deviation = np.arange(pmf.size) - mean_of(pmf)
    return float(deviation**2 @ pmf)


def invert(pmf: FloatArray, u: FloatArray) -> IntArray:
    """Return the value of a law on 0..k that each uniform falls on (inverse transform).

    Parameters
    ----------
    pmf
        Shape (k+1,).
    u
        Any shape, in [0, 1).

    Examples
    --------
    >>> invert(np.array([0.5, 0.25, 0.25]), np.array([0.0, 0.49, 0.5, 0.99])).tolist()
    [0, 0, 1, 2]
    """
    # The last edge is left out, so rounding in the cumulative sum can't reach k+1.
    edges = np.cumsum(pmf[:-1])
    return np.asarray(np.searchsorted(edges, u, side="right"), dtype=np.int64)


def two_state_path(after_false: BoolArray, after_true: BoolArray) -> BoolArray:
    """Follow a two-state chain whose maps are given, without a loop over steps.

    Step i maps the state before it to ``after_false[i]`` or ``after_true[i]``. A step with
    equal images fixes the state whatever came before; the others keep or flip it. So a state
    is the last fixed one, flipped once for every flipping step since.

    Parameters
    ----------
    after_false, after_true
        Shape (n,). Step 0 must fix the state (both images equal).

    Returns
    -------
    numpy.ndarray
        Shape (n,): the state after each step.

    Examples
    --------
    >>> after_false = np.array([True, False, True, False])
    >>> after_true = np.array([True, True, False, False])
    >>> two_state_path(after_false, after_true).tolist()   # fix, keep, flip, fix
    [True, True, False, False]
    """
    if after_false.size == 0:
        return np.zeros(0, dtype=np.bool_)
    fixed = after_false == after_true
    last_fixed = np.maximum.accumulate(np.where(fixed, np.arange(fixed.size), 0))
    state = after_false[last_fixed]
    flips = after_false & ~after_true
    if not flips.any():
        return state
    n_flips = np.cumsum(flips)
    odd = np.asarray((n_flips - n_flips[last_fixed]) & 1, dtype=np.bool_)
    return np.asarray(state ^ odd, dtype=np.bool_)


def sample_rounds(
    pmf_given: FloatArray, bonus_given: tuple[float, float], start: float, u: FloatArray
) -> IntArray:
    """Draw successive rounds whose law depends on a two-state memory.

    A round with a rejection leaves state 0. A fully accepted round leaves state 1 with the
    probability ``bonus_given[state it started in]``.

    Parameters
    ----------
    pmf_given
        Shape (2, k+1): law of accepted drafts by the state at the round's start.
    bonus_given
        P(next state is 1 | full acceptance, state at the start).
    start
        P(the first round starts in state 1).
    u
        Shape (2 size + 1,), in [0, 1): for the start, the rounds, and the bonus positions.

    Returns
    -------
    numpy.ndarray
        Shape (size,), int64, in 0..k.
    """
    k = pmf_given.shape[-1] - 1
    size = (u.size - 1) // 2
    u_round, u_bonus = u[1 : size + 1], u[size + 1 :]
    accepted = [invert(pmf_given[state], u_round) for state in (0, 1)]
    after = [(accepted[s] == k) & (u_bonus < bonus_given[s]) for s in (0, 1)]
    first = np.array([u[0] < start])
    path = two_state_path(
        np.concatenate([first, after[0][:-1]]), np.concatenate([first, after[1][:-1]])
    )[:size]
    return np.where(path, accepted[1], accepted[0])
