"""Arrival times from unit-mean gaps: the three conventions in use, as pure functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psdsim.errors import InputError


def arrival_times(
    unit_gaps: NDArray[np.float64], rate: float, semantics: str
) -> NDArray[np.float64]:
    """Turn inter-arrival gaps of mean 1 into arrival times in seconds.

    Parameters
    ----------
    unit_gaps
        Shape (n,), n >= 1: gaps in units of 1/rate, >= 0.
    rate
        Requests/s, > 0.
    semantics
        ``"plain"``: t_i = (g_1 + ... + g_i) / rate, the first after the first gap.
        ``"vllm"``: scaled so that t_n = n / rate exactly; the gaps then have a fixed sum and
        are not independent, so queueing formulas don't hold.
        ``"sglang"``: t_1 = 0, t_i = (g_2 + ... + g_i) / rate.

    Returns
    -------
    ndarray of float64, shape (n,)
        Non-decreasing, s.

    Raises
    ------
    InputError
        If all gaps underflowed to 0, so that nothing can be scaled.

    Examples
    --------
    >>> gaps = np.array([1.0, 0.5, 2.5])
    >>> arrival_times(gaps, 2.0, "plain").tolist()
    [0.5, 0.75, 2.0]
    >>> arrival_times(gaps, 2.0, "vllm").tolist()
    [0.375, 0.5625, 1.5]
    >>> arrival_times(gaps, 2.0, "sglang").tolist()
    [0.0, 0.25, 1.5]
    """
    cumulative = np.cumsum(unit_gaps)
    if semantics == "plain":
        return np.asarray(cumulative / rate)
    if semantics == "sglang":
        return np.asarray((cumulative - cumulative[0]) / rate)
    if semantics == "vllm":
        last = cumulative[-1]
        if not last > 0:
            raise InputError(
                "all gaps are 0, so the vllm semantics cannot scale them to n_requests / rate",
                expected="a larger burstiness or more requests",
                where="workload",
            )
        # Divide first: last/last is exactly 1, so the last arrival is exactly n / rate.
        return np.asarray(cumulative / last * (len(unit_gaps) / rate))
    raise InputError(f"semantics is {semantics!r}", expected="plain, vllm or sglang")
