"""What an adaptive schedule may know of time in a real run: medians of the passes so far."""

from __future__ import annotations

from collections import deque
from statistics import median

import numpy as np

from psdsim.errors import InputError

_KEPT = 32
"""Passes of one shape that the median is over: the latest."""


class Curve:
    """Seconds by shape, (requests, size), of which some are measured."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], deque[float]] = {}

    def add(self, n_seqs: int, size: int, seconds: float) -> None:
        """Add a measured pass."""
        shape = (n_seqs, size)
        times = self._seen.get(shape)
        if times is None:
            times = self._seen[shape] = deque(maxlen=_KEPT)
        times.append(seconds)

    def __bool__(self) -> bool:
        return bool(self._seen)

    def at(self, n_seqs: int, size: int) -> float:
        """Return the median of a shape, or what lies between its neighbours.

        A shape that was never measured is interpolated by size between those with the same
        number of requests, or between all where there is none; beyond the ends it costs what
        the nearest does.
        """
        seen = self._seen.get((n_seqs, size))
        if seen is not None:
            return median(seen)
        same = [shape for shape in self._seen if shape[0] == n_seqs]
        by_size: dict[int, list[float]] = {}
        for shape in same or self._seen:
            by_size.setdefault(shape[1], []).append(median(self._seen[shape]))
        sizes = sorted(by_size)
        return float(np.interp(size, sizes, [np.mean(by_size[known]) for known in sizes]))


class Estimates:
    """Running medians of measured passes by shape (`psdsim.commands.View`).

    Prefills count as target passes over as many tokens. Of a drafting phase the time of one
    token is kept; until the first one, a prefill stands in for its forwards.
    """

    def __init__(self) -> None:
        self._target = Curve()
        self._draft = Curve()
        self._draft_prefill = Curve()

    def target_pass(self, n_seqs: int, n_tokens: int, seconds: float) -> None:
        """Add a measured target pass."""
        self._target.add(n_seqs, n_tokens, seconds)

    def draft_phase(self, n_seqs: int, n: int, seconds: float) -> None:
        """Add a measured drafting phase of n tokens (of its longest draft)."""
        if n:
            self._draft.add(n_seqs, n, seconds / n)

    def draft_prefill(self, n_seqs: int, seconds: float) -> None:
        """Add a measured pass of the drafter over prompts."""
        self._draft_prefill.add(n_seqs, 1, seconds)

    def target_s(self, n_seqs: int, n_tokens: int) -> float:
        """Return seconds of a target pass over n_seqs requests with n_tokens tokens fed in all.

        Raises
        ------
        psdsim.errors.InputError
            If no pass has run yet.
        """
        return _known(self._target, "target").at(n_seqs, n_tokens)

    def draft_s(self, n_seqs: int, n: int) -> float:
        """Return seconds of a drafting phase of n tokens for each of n_seqs requests.

        Raises
        ------
        psdsim.errors.InputError
            If nothing has been drafted or prefilled yet.
        """
        if not n:
            return 0.0
        return n * _known(self._draft or self._draft_prefill, "draft").at(n_seqs, n)


def _known(curve: Curve, name: str) -> Curve:
    if not curve:
        raise InputError(
            f"Look asks for the time of a {name} pass and none has been measured",
            expected="a schedule that looks after its first prefill",
        )
    return curve
