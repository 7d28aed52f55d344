"""PipeSpec: models that free-run and verify their predecessor's tokens.

With two models its chain is PEARL's with one more drafted token per step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, count, give, probability
from analysis.rounds import acceptance_length_iid
from analysis.special import one_minus_power


def speculating_share(alpha: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return rho = a / (1 - a^(k+1) + a), the share of steps that verify drafts (Eqs. 3-5).

    Parameters
    ----------
    alpha
        In [0, 1].
    k
        Tokens verified at once, >= 0.

    Examples
    --------
    >>> round(float(speculating_share(0.5, 2)), 9)    # .5 / 1.375
    0.363636364
    """
    a = probability("alpha", alpha)
    leave = one_minus_power(a, count("k", k) + 1)
    total = leave + a
    return give(np.asarray(a / np.where(total > 0, total, 1.0)))


def tokens_per_step(alpha: ArrayLike, k: ArrayLike) -> FloatArray:
    """Return (1 - rho) + rho (1 - a^(k+1))/(1 - a), tokens per step of the last model (Eq. 6).

    It is `analysis.pearl.tokens_per_step` at k + 1: the same two-state chain (theory note 3.5).
    Above 1 for every alpha > 0 and k > 0, so never slower than plain decoding by this count.

    Parameters
    ----------
    alpha, k
        As in `speculating_share`.

    Examples
    --------
    >>> round(float(tokens_per_step(0.8, 4)), 7)
    2.2831993
    """
    share = np.asarray(speculating_share(alpha, k))
    return give((1.0 - share) + share * acceptance_length_iid(alpha, k))
