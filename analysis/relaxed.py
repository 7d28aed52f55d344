"""Relaxed verification: accept against a mixture of target and draft (DIVERSED, 2604.07622).

With weight w the verifier uses v = w p + (1 - w) q. The output then follows v and not p: the
method is lossy for w < 1, and the distance to p is what it costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, give, probability
from psdsim.errors import InputError


def relaxed_alpha(alpha: ArrayLike, target_weight: ArrayLike) -> FloatArray:
    """Return 1 - w (1 - alpha), the acceptance under a static mixture: linear in w.

    As sum of min(v, q) = 1 - TV(v, q) = 1 - w TV(p, q), exactly, for every p and q.

    Parameters
    ----------
    alpha
        Lossless acceptance, 1 - TV(p, q), in [0, 1].
    target_weight
        w, in [0, 1]; 1 is lossless.

    Examples
    --------
    >>> relaxed_alpha(0.5, [1.0, 0.5, 0.0]).tolist()
    [0.5, 0.75, 1.0]
    """
    return give(1.0 - probability("target_weight", target_weight) * (1.0 - _alpha(alpha)))


def _alpha(alpha: ArrayLike) -> FloatArray:
    return probability("alpha", alpha)


def output_bias(alpha: ArrayLike, target_weight: ArrayLike) -> FloatArray:
    """Return TV(v, p) = (1 - w)(1 - alpha), how far the output is from the target's law.

    Rejections plus bias are 1 - alpha for every w: the linear trade-off that no verifier beats
    (Yin et al., Theorem 5; theory note 1.1).

    Parameters
    ----------
    alpha, target_weight
        As in `relaxed_alpha`.

    Examples
    --------
    >>> output_bias(0.5, [1.0, 0.5, 0.0]).tolist()
    [0.0, 0.25, 0.5]
    """
    return give((1.0 - probability("target_weight", target_weight)) * (1.0 - _alpha(alpha)))


def target_weight_for(alpha: ArrayLike, wanted_alpha: ArrayLike) -> FloatArray:
    """Return w = (1 - wanted) / (1 - alpha), the weight that reaches a wanted acceptance.

    Parameters
    ----------
    alpha
        Lossless acceptance, in [0, 1).
    wanted_alpha
        In [alpha, 1].

    Raises
    ------
    InputError
        If the wanted acceptance is below the lossless one, or that is 1 already.

    Examples
    --------
    >>> float(target_weight_for(0.5, 0.75))
    0.5
    """
    miss = 1.0 - _alpha(alpha)
    if np.any(miss <= 0.0):
        raise InputError("alpha is 1", expected="below 1, so that there is something to relax")
    wanted = 1.0 - probability("wanted_alpha", wanted_alpha)
    return give(probability("target_weight = (1 - wanted_alpha) / (1 - alpha)", wanted / miss))
