"""PACER: drafting block by block while a pre-verifier with stated error rates says yes.

After each block the pre-verifier says yes with probability ``true_positive`` if all that was
drafted so far would be accepted, else with ``false_positive`` (own model of arXiv 2602.01274,
whose text gives no formula).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis._checks import one_count, probability


@dataclass(frozen=True)
class BlockRound:
    """Means of one round.

    Parameters
    ----------
    tokens
        Emitted, the corrected or bonus token included.
    drafted
        Tokens drafted.
    verified
        Drafted tokens that the target tests.
    """

    tokens: float
    drafted: float
    verified: float


def block_round(
    alpha: float,
    k: int,
    block: int,
    true_positive: float,
    false_positive: float,
    *,
    send_failed: bool = True,
) -> BlockRound:
    """Return the means of a round with i.i.d. acceptance and independent answers.

    Two probabilities are carried from block to block: that all answers were yes and everything
    is accepted so far, and that all were yes though something is rejected.

    Parameters
    ----------
    alpha
        P(a draft is accepted | all before it were).
    k
        Longest draft, >= 1; the last block may be shorter than the others.
    block
        Tokens of a block, >= 1.
    true_positive, false_positive
        P(yes) by whether all that was drafted so far is accepted.
    send_failed
        Whether the block that got a no is verified, too.

    Examples
    --------
    >>> block_round(0.5, 2, 1, 1.0, 0.0)     # knows the verdict: drafts to the first rejection
    BlockRound(tokens=1.75, drafted=1.5, verified=1.5)
    >>> block_round(0.5, 2, 1, 1.0, 0.0, send_failed=False)
    BlockRound(tokens=1.75, drafted=1.5, verified=0.75)
    """
    a = float(probability("alpha", alpha))
    yes_if_good = float(probability("true_positive", true_positive))
    yes_if_bad = float(probability("false_positive", false_positive))
    longest, size = one_count("k", k, 1), one_count("block", block, 1)
    good, bad = 1.0, 0.0
    tokens, drafted, verified = 1.0, 0.0, 0.0
    for start in range(0, longest, size):
        n = min(size, longest - start)
        drafted += n * (good + bad)
        whole = a**n
        accepted_part = float(np.arange(n) @ a ** np.arange(n)) * (1.0 - a)  # E[accepted; < n]
        next_good = good * whole * yes_if_good
        next_bad = (bad + good * (1.0 - whole)) * yes_if_bad
        if send_failed:
            verified += n * (good + bad)
            tokens += good * (n * whole + accepted_part)
        else:
            verified += n * (next_good + next_bad)
            tokens += good * (n * whole * yes_if_good + accepted_part * yes_if_bad)
        good, bad = next_good, next_bad
    return BlockRound(tokens, drafted, verified)
