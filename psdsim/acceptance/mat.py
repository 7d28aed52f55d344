"""PEARL's mean accepted tokens (MAT) in its two conventions."""

from __future__ import annotations

import math
from typing import Literal

from psdsim.acceptance.convert import number_in
from psdsim.errors import InputError

MatConvention = Literal["without_corrected", "with_corrected"]
"""Whether a mean accepted run (MAT) counts the target's corrected token that ends it."""


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
        return 1.0 - 1.0 / number_in(mat, "MAT with the corrected token", 1.0, math.inf)
    mat = number_in(mat, "MAT without the corrected token", 0.0, math.inf)
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
    if number_in(alpha, "alpha", 0.0, 1.0) == 1.0:
        raise InputError("alpha is 1, so no run ever ends", expected="alpha below 1")
    return (1.0 if counted else alpha) / (1.0 - alpha)


def _corrected(convention: MatConvention) -> bool:
    if convention not in ("without_corrected", "with_corrected"):
        raise InputError(
            f"the MAT convention is {convention!r}",
            expected="'without_corrected' or 'with_corrected'",
        )
    return convention == "with_corrected"
