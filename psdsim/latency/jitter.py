"""Jitter: random factors of mean 1 on the time of a pass."""

from __future__ import annotations

import math
from typing import Literal

from psdsim.errors import InputError
from psdsim.seeds import Stream, generator

JitterLaw = Literal["lognormal", "exponential"]
_BLOCK = 4096
_BLOCKS_PER_REPLICA = 1 << 32


class JitterStream:
    """Successive factors of mean 1, drawn in keyed blocks.

    Parameters
    ----------
    cv
        Standard deviation / mean, >= 0; with 0 nothing is drawn (`active` is False).
    law
        ``lognormal``: sigma^2 = ln(1 + cv^2), mu = -sigma^2/2. ``exponential``: cv must be 1.
    seed, replication, stream
        Key of the numbers.
    replica
        Index of the copy of the deployment; each has numbers of its own.

    Examples
    --------
    >>> JitterStream(0.0, "lognormal", 0, 0, Stream.TARGET_JITTER).active
    False
    """

    def __init__(
        self,
        cv: float,
        law: JitterLaw,
        seed: int,
        replication: int,
        stream: Stream,
        *,
        replica: int = 0,
    ) -> None:
        if isinstance(cv, bool) or not math.isfinite(cv) or cv < 0.0:
            raise InputError(f"the CV of a jitter is {cv!r}", expected="a number of at least 0")
        if law == "exponential" and cv not in (0.0, 1.0):
            raise InputError(f"the CV of an exponential jitter is {cv}", expected="1")
        self.active = cv > 0.0
        self._law = law
        self._sigma = math.sqrt(math.log1p(cv * cv))
        self._key = (seed, replication, stream)
        self._block = replica * _BLOCKS_PER_REPLICA
        self._values: list[float] = []

    def next(self) -> float:
        """Return the next factor; 1 where nothing is drawn."""
        if not self._values:
            if not self.active:
                return 1.0
            self._refill()
        return self._values.pop()

    def _refill(self) -> None:
        rng = generator(*self._key, self._block)
        self._block += 1
        if self._law == "exponential":
            values = rng.standard_exponential(_BLOCK)
        else:
            values = rng.lognormal(-0.5 * self._sigma**2, self._sigma, _BLOCK)
        self._values = values[::-1].tolist()
