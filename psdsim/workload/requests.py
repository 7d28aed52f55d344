"""What a workload comes to: one column per fact, one row per request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psdsim.errors import InputError


@dataclass(frozen=True, eq=False)
class Requests:
    """The requests of one run, in order of arrival; row i is request i.

    Parameters
    ----------
    arrival_s
        float64, shape (n,): non-decreasing, >= 0, s. All zero for batch and closed loop.
    prompt_tokens, output_tokens
        int64, shape (n,): tokens, each >= 1.
    concurrency
        Requests kept in flight in a closed loop (>= 1); ``None`` otherwise.
    open_loop
        True if requests arrive spread over time whatever the server does. False for a batch
        (all there at t = 0) and for a closed loop: neither has an arrival rate to saturate.
    notes
        Sentences the result must carry (dropped rows, what isn't modelled, ...).

    Raises
    ------
    InputError
        If the columns differ in length, are empty or hold impossible values.

    Notes
    -----
    The columns are made read-only; equality is by identity.

    Examples
    --------
    >>> r = Requests(np.zeros(2), np.array([8, 8]), np.array([4, 5]))
    >>> len(r), r.output_tokens.sum().item(), r.open_loop
    (2, 9, False)
    """

    arrival_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    concurrency: int | None = None
    open_loop: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        arrival = np.array(self.arrival_s, dtype=np.float64)
        object.__setattr__(self, "arrival_s", arrival)
        for name in ("prompt_tokens", "output_tokens"):
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in "iu":
                raise InputError(f"{name} has dtype {given.dtype}", expected="whole numbers")
            object.__setattr__(self, name, given.astype(np.int64))
        n = len(arrival)
        if n == 0:
            raise InputError("there are no requests", expected="at least one")
        for name in ("arrival_s", "prompt_tokens", "output_tokens"):
            column = getattr(self, name)
            if column.shape != (n,):
                raise InputError(f"{name} has shape {column.shape}", expected=f"({n},)")
            column.flags.writeable = False
        if not np.isfinite(arrival).all() or arrival[0] < 0 or (np.diff(arrival) < 0).any():
            raise InputError(
                "arrival times are not finite, non-negative and non-decreasing",
                expected="sorted times in seconds, the first at 0 or later",
            )
        for name in ("prompt_tokens", "output_tokens"):
            smallest = int(getattr(self, name).min())
            if smallest < 1:
                raise InputError(f"{name} contains {smallest}", expected="at least 1 token")
        if self.concurrency is not None and self.concurrency < 1:
            raise InputError(f"concurrency is {self.concurrency}", expected="at least 1")

    def __len__(self) -> int:
        return len(self.arrival_s)


def describe(requests: Requests) -> dict[str, Any]:
    """Summarise requests in a handful of numbers.

    Parameters
    ----------
    requests
        What to describe.

    Returns
    -------
    dict
        ``n_requests``; ``min_/mean_/median_/max_`` of ``prompt_tokens`` and
        ``output_tokens``; ``duration_s`` (last - first arrival); ``request_rate`` =
        (n - 1) / duration_s, requests/s, and ``gap_cv`` = sample standard deviation of the
        inter-arrival gaps / their mean (1 for Poisson), both ``None`` where nothing arrives
        over time; ``simultaneous_share``: share of the requests that have the same arrival
        time as another one.

    Examples
    --------
    >>> r = Requests(np.array([0.0, 0.0, 1.0, 3.0]), np.full(4, 8), np.array([1, 2, 3, 6]),
    ...              open_loop=True)
    >>> d = describe(r)
    >>> d["mean_output_tokens"], d["request_rate"], d["simultaneous_share"]
    (3.0, 1.0, 0.5)
    """
    out: dict[str, Any] = {"n_requests": len(requests)}
    for name in ("prompt_tokens", "output_tokens"):
        column: NDArray[np.int64] = getattr(requests, name)
        out[f"min_{name}"] = int(column.min())
        out[f"mean_{name}"] = float(column.mean())
        out[f"median_{name}"] = float(np.median(column))
        out[f"max_{name}"] = int(column.max())
    arrival = requests.arrival_s
    gaps = np.diff(arrival)
    duration = float(arrival[-1] - arrival[0])
    out["duration_s"] = duration
    out["request_rate"] = len(gaps) / duration if duration > 0 else None
    out["gap_cv"] = (
        float(gaps.std(ddof=1) / gaps.mean()) if duration > 0 and len(gaps) > 1 else None
    )
    shared = np.zeros(len(arrival), dtype=bool)
    shared[1:] = gaps == 0
    shared[:-1] |= gaps == 0
    out["simultaneous_share"] = float(shared.mean())
    return out
