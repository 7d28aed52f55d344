"""Finite outputs under PEARL's two ablations, by first-step analysis (ours).

Long-run rates are in `analysis.pearl`. Acceptance is a chain over output positions: a after an
accepted token, a0 after a rejected one.
"""

from __future__ import annotations

import numpy as np

from analysis._checks import chain_rates, one_count


def expected_steps_no_post_verify(
    n_tokens: int,
    alpha: float,
    k: int,
    alpha_after_reject: float | None = None,
    alpha_at_start: float | None = None,
) -> float:
    """Return the mean number of steps for n tokens without post-verify, started in pre-verify.

    Parameters
    ----------
    n_tokens, alpha, k, alpha_after_reject, alpha_at_start
        As in `analysis.pearl.expected_steps`.

    Examples
    --------
    >>> expected_steps_no_post_verify(4, 1.0, 3), expected_steps_no_post_verify(4, 0.0, 3)
    (2.0, 4.0)
    """
    n, k = one_count("n_tokens", n_tokens), one_count("k", k, 1)
    a, a0, first = chain_rates(alpha, alpha_after_reject, alpha_at_start)
    if n == 0:
        return 0.0
    reject = (1.0 - a) * a ** np.arange(k)
    # Index i holds the steps for i - k tokens: what is overshot needs no more. `missed` and
    # `went_on` are pre-verify steps after a rejected and after an accepted token.
    missed, went_on, rest = (np.zeros(n + k + 1) for _ in range(3))
    for i in range(k + 1, n + k + 1):
        missed[i] = 1.0 + a0 * rest[i - 1] + (1.0 - a0) * missed[i - 1]
        went_on[i] = 1.0 + a * rest[i - 1] + (1.0 - a) * missed[i - 1]
        rest[i] = 1.0 + reject @ missed[i - k : i][::-1] + a**k * went_on[i - k]
    return float(1.0 + first * rest[n + k - 1] + (1.0 - first) * missed[n + k - 1])


def expected_steps_no_pre_verify(
    n_tokens: int,
    alpha: float,
    k: int,
    alpha_after_reject: float | None = None,
    alpha_at_start: float | None = None,
) -> tuple[float, float]:
    """Return the mean numbers of steps that only draft and of steps that verify, for n tokens.

    Parameters
    ----------
    n_tokens, alpha, k, alpha_after_reject, alpha_at_start
        As in `analysis.pearl.expected_steps`.

    Examples
    --------
    >>> expected_steps_no_pre_verify(7, 1.0, 3), expected_steps_no_pre_verify(2, 0.0, 3)
    ((1.0, 2.0), (2.0, 2.0))
    """
    n, k = one_count("n_tokens", n_tokens), one_count("k", k, 1)
    a, a0, first = chain_rates(alpha, alpha_after_reject, alpha_at_start)
    if n == 0:
        return 0.0, 0.0
    reject = (1.0 - a) * a ** np.arange(k)
    # Columns: steps that only draft, steps that verify. Index i is for i - k - 1 tokens left.
    off = k + 1
    fresh, later = np.zeros((n + off + 1, 2)), np.zeros((n + off + 1, 2))
    both, one = np.array([1.0, 1.0]), np.array([0.0, 1.0])

    def started(i: int, accept: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return draft only, then test k + 1 drafts, of which the first passes with `accept`."""
        longer = reject @ fresh[i - off : i - 1][::-1] + a**k * later[i - off]
        out: np.ndarray[tuple[int], np.dtype[np.float64]] = (
            both + (1.0 - accept) * fresh[i - 1] + accept * longer
        )
        return out

    for i in range(off + 1, n + off + 1):
        fresh[i] = started(i, a0)
        later[i] = one + reject @ fresh[i - k : i][::-1] + a**k * later[i - k]
    only, verify = started(n + off, first).tolist()
    return float(only), float(verify)


def draft_only_share(
    alpha: float,
    k: int,
    n_tokens: int | None = None,
    alpha_after_reject: float | None = None,
    alpha_at_start: float | None = None,
) -> float:
    """Return the share of steps without pre-verify that only draft.

    In the long run one a rejection: 1 / (2 + a0 a^k / (1 - a^k)).

    Parameters
    ----------
    alpha, k, alpha_after_reject, alpha_at_start
        As in `analysis.pearl.expected_steps`.
    n_tokens
        Tokens of each output; None: endless.

    Examples
    --------
    >>> round(draft_only_share(0.5, 3), 6), draft_only_share(0.0, 3, 5)
    (0.482759, 0.5)
    """
    if n_tokens is not None:
        only, verify = expected_steps_no_pre_verify(
            n_tokens, alpha, k, alpha_after_reject, alpha_at_start
        )
        return only / (only + verify) if only else 0.0
    a, a0, _ = chain_rates(alpha, alpha_after_reject, None)
    full = a ** one_count("k", k, 1)
    leave = 1.0 - full
    return leave / (2.0 * leave + a0 * full) if leave + a0 > 0 else 0.5
