"""What is known of a drafter beyond whether its first choice is accepted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from psdsim.errors import InputError


@dataclass(frozen=True)
class Classifier:
    """Says of a block of drafts whether it is worth going on, and errs at stated rates.

    Parameters
    ----------
    block
        Drafts that it judges together, >= 1.
    true_positive, false_positive
        P(it says yes) where the whole block would be accepted, and where it would not.
    """

    block: int
    true_positive: float
    false_positive: float

    def __post_init__(self) -> None:
        if self.block < 1:
            raise InputError(f"a classifier's block is {self.block}", expected="at least 1 token")
        for name in ("true_positive", "false_positive"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise InputError(f"a classifier's {name} rate is {value}", expected="0 to 1")


@dataclass(frozen=True)
class Proposals:
    """Second choices, confidences and further candidates of a drafter.

    Parameters
    ----------
    sibling_shares
        Of the target's tokens that are not the drafter's first choice, the share that is its
        second, its third, and so on; their sum is at most 1.
    concentration
        How much a confidence knows: the acceptance probability of a token is spread around the
        model's rate like a Beta distribution of this concentration (a + b), and the confidence
        is that probability. Towards 0 it knows the outcome, towards infinity only the rate.
    temperature
        Of the confidence's logit: 1 is calibrated, below 1 overconfident, above 1 too timid.
    correlation
        P(a further candidate fares at a position as the first one does), beyond chance.
    select
        Which candidate is taken: the ``longest`` accepted, or the ``first``, whose choice then
        does not depend on how long it is accepted.
    classifier
        Replaces confidences by its answers, 1 or 0 for all tokens of a block.
    """

    sibling_shares: tuple[float, ...] = ()
    concentration: float = math.inf
    temperature: float = 1.0
    correlation: float = 0.0
    select: Literal["longest", "first"] = "longest"
    classifier: Classifier | None = None

    def __post_init__(self) -> None:
        total = sum(self.sibling_shares)
        if min(self.sibling_shares, default=0.0) < 0.0 or not total <= 1.0 + 1e-12:
            raise InputError(
                f"sibling shares are {self.sibling_shares}", expected="at least 0, sum at most 1"
            )
        if not self.concentration > 0.0:
            raise InputError(f"the concentration is {self.concentration}", expected="above 0")
        if not 0.0 < self.temperature < math.inf:
            raise InputError(f"the temperature is {self.temperature}", expected="above 0")
        if not 0.0 <= self.correlation <= 1.0:
            raise InputError(f"the correlation is {self.correlation}", expected="0 to 1")


PLAIN = Proposals()
"""A drafter of which nothing more is known."""
