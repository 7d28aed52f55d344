"""Whether an open-arrival run reaches a steady state, or its queue grows while it runs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

_WINDOWS = 8
_SKIPPED = 2


def waiting_profile(requests: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return the mean number of waiting requests in equal windows of the arrival period.

    Parameters
    ----------
    requests
        Request columns with `arrival_s` and `admitted_s`.
    """
    arrival = requests["arrival_s"]
    admitted = requests["admitted_s"]
    edges = np.linspace(0.0, float(arrival.max()), _WINDOWS + 1)
    # Waiting time that falls into [a, b] is the integral of the queue length over it.
    inside = [
        np.clip(np.minimum(admitted, b) - np.maximum(arrival, a), 0.0, None).sum()
        for a, b in pairwise(edges)
    ]
    return np.array(inside) / np.diff(edges)


def is_saturated(requests: dict[str, NDArray[Any]]) -> bool:
    """Say whether the waiting line grows over the arrival period.

    The first quarter is cut as warm-up. The line counts as growing if its trend over the rest
    is significant (one-sided 2.5 %), makes up at least half of its mean, and leaves at least one
    request waiting on average.
    """
    arrival = requests["arrival_s"]
    if arrival.size < 16 or float(arrival.max()) <= 0.0:
        return False
    profile = waiting_profile(requests)[_SKIPPED:]
    if profile[-1] < 1.0:
        return False
    trend = stats.linregress(np.arange(profile.size), profile)
    growth = trend.slope * (profile.size - 1)
    significant = trend.pvalue < 0.05 and trend.slope > 0
    return bool(significant and growth >= 0.5 * profile.mean())
