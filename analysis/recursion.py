"""Max-plus recursions: two devices and M groups, with and without a common barrier.

Times may be anything (measured, drawn, constant): these are sample paths, not means.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, nonnegative, one_count
from psdsim.errors import InputError


def _phases(draft_s: ArrayLike, verify_s: ArrayLike) -> tuple[FloatArray, FloatArray]:
    draft, verify = nonnegative("draft_s", draft_s), nonnegative("verify_s", verify_s)
    if draft.ndim != 1 or draft.shape != verify.shape or not draft.size:
        raise InputError(
            f"draft_s has shape {draft.shape} and verify_s {verify.shape}",
            expected="one time of each for every round, in the order of the rounds",
        )
    return draft, verify


def makespan_without_barrier(draft_s: ArrayLike, verify_s: ArrayLike, n_groups: int) -> float:
    """Return when the last round is verified, M groups circulating between two FIFO devices.

    Round j belongs to group j mod M. Its draft starts when the drafter is free and the group's
    last round is verified; its verification when the verifier is free and its draft is there.

    Parameters
    ----------
    draft_s, verify_s
        Time of each round's phases, shape (n_rounds,), s.
    n_groups
        M >= 1; with 1 the phases are serial.

    Examples
    --------
    >>> makespan_without_barrier([1.0, 2.0, 1.0], [3.0, 3.0, 3.0], 2)
    10.0
    >>> makespan_without_barrier([1.0, 2.0, 1.0], [3.0, 3.0, 3.0], 1)
    13.0
    """
    draft, verify = _phases(draft_s, verify_s)
    m = one_count("n_groups", n_groups, 1)
    drafted = verified = 0.0
    ends = np.zeros(draft.size)
    for j in range(draft.size):
        ready = ends[j - m] if j >= m else 0.0
        drafted = max(drafted, ready) + draft[j]
        verified = max(verified, drafted) + verify[j]
        ends[j] = verified
    return float(verified)


def makespan_with_barrier(draft_s: ArrayLike, verify_s: ArrayLike) -> float:
    """Return the same for two groups that meet at a barrier every step (MineDraft).

    D_1 + sum_j max(D_(j+1), V_j) + V_n. It equals `makespan_without_barrier` for M = 2 on every
    sample path: with two groups, each device has nothing else to do until the other is done.

    Parameters
    ----------
    draft_s, verify_s
        Time of each round's phases, shape (n_rounds,), s.

    Examples
    --------
    >>> makespan_with_barrier([1.0, 2.0, 1.0], [3.0, 3.0, 3.0])
    10.0
    """
    draft, verify = _phases(draft_s, verify_s)
    return float(draft[0] + np.maximum(draft[1:], verify[:-1]).sum() + verify[-1])
