"""Rounds needed for a finite output where rounds are not independent and alike.

Either a round depends on whether the one before was accepted in full, or every request has an
acceptance probability of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import lfilter

from analysis._checks import law, one_count, probability
from analysis.beta_mean import beta_quadrature
from analysis.finite import expected_rounds
from analysis.rounds import accepted_pmf_iid, accepted_pmf_position, tokens_pmf
from analysis.rounds_correlated import chain_of_rounds_markov
from psdsim.errors import InputError


def expected_rounds_markov_rounds(
    n_tokens: int,
    pmf_after_rejection: ArrayLike,
    pmf_after_full: ArrayLike,
    pmf_first: ArrayLike | None = None,
) -> float:
    """Return E[R_n], the mean rounds for n tokens, of a chain of rounds, exactly.

    With O_n and F_n the mean rounds that follow a rejection and a full round, and o and f the
    laws of L there, O_n = 1 + sum over j < k of o_j O_(n-1-j) + o_k F_(n-1-k), and F_n likewise.
    The generating function of F is eliminated, which leaves two recursive filters (own
    derivation).

    Parameters
    ----------
    n_tokens
        n, >= 0.
    pmf_after_rejection, pmf_after_full
        Shape (k + 1,): P(L = j) of a round after one with a rejection / after a full one.
    pmf_first
        The same of the very first round; None: that after a rejection.

    Examples
    --------
    >>> expected_rounds_markov_rounds(3, [0.5, 0.5], [0.0, 1.0])   # 1 + (1 + 1/2)/2 + 1/2
    2.25
    """
    n = one_count("n_tokens", n_tokens)
    slow = law("pmf_after_rejection", pmf_after_rejection)
    fast = law("pmf_after_full", pmf_after_full)
    start = slow if pmf_first is None else law("pmf_first", pmf_first)
    if not slow.size == fast.size == start.size:
        raise InputError("the laws have different lengths", expected="k + 1 entries each")
    if n == 0:
        return 0.0
    longest = slow.size
    # Coefficients of z^0 .. z^(k+1); "partial" has the rounds that end in a rejection.
    partial_slow, partial_fast = np.append(0.0, slow), np.append(0.0, fast)
    partial_slow[longest] = partial_fast[longest] = 0.0
    stay = np.zeros(longest + 1)
    stay[0], stay[longest] = 1.0, -fast[-1]
    leave = np.zeros(longest + 1)
    leave[longest] = slow[-1]
    one_minus = -partial_slow
    one_minus[0] = 1.0
    feedback = np.convolve(one_minus, stay) - np.convolve(leave, partial_fast)
    ones = np.ones(n)
    after_rejection = lfilter(stay + leave, feedback, ones)
    after_full = lfilter([1.0], stay, ones + lfilter(partial_fast, [1.0], after_rejection))
    # One more round, of the first law; a round that reaches n or passes it is the last.
    left = np.maximum(n - 1 - np.arange(longest), 0)
    follow = np.append(0.0, after_rejection)[left]
    follow[-1] = np.append(0.0, after_full)[left[-1]]
    return float(1.0 + start @ follow)


def expected_rounds_markov(
    n_tokens: int, after_accept: float, after_reject: float, k: int
) -> float:
    """Return E[R_n] of serial rounds when acceptance is a Markov chain over output positions.

    The chain is stationary at the first draft of the output; from then on the rounds are those of
    `chain_of_rounds_markov`.

    Parameters
    ----------
    n_tokens
        n, >= 0.
    after_accept, after_reject
        a1 = P(bit 1 | previous bit 1) and a0 = P(bit 1 | previous bit 0); not 1 and 0.
    k
        Drafted tokens, >= 1.

    Examples
    --------
    >>> round(expected_rounds_markov(128, 0.8, 0.8, 4), 7)   # no memory: the i.i.d. value
    38.5420827
    """
    a0, after_full, later = chain_of_rounds_markov(after_accept, after_reject, k)
    first = stationary_rate(after_accept, after_reject)
    slow, fast, start = (
        accepted_pmf_position(np.append(rate, later)) for rate in (a0, after_full, first)
    )
    return expected_rounds_markov_rounds(n_tokens, slow, fast, start)


def stationary_rate(after_accept: float, after_reject: float) -> float:
    """Return a0 / (1 - a1 + a0), the share of 1s of the chain over positions.

    Examples
    --------
    >>> stationary_rate(0.75, 0.25)
    0.5
    """
    a1 = float(probability("after_accept", after_accept))
    a0 = float(probability("after_reject", after_reject))
    if a1 == 1.0 and a0 == 0.0:
        raise InputError("after_accept is 1 and after_reject is 0", expected="a mixing chain")
    return a0 / (1.0 - a1 + a0)


def expected_rounds_beta(n_tokens: int, a: float, b: float, k: int) -> float:
    """Return E[R_n] over requests whose acceptance probability is Beta(a, b) distributed.

    The mean of `expected_rounds` over alpha; n divided by it is the pooled tokens per round of
    equally long requests (theory note 2.2c).

    Parameters
    ----------
    n_tokens
        n, >= 0.
    a, b
        Shape parameters, > 0.
    k
        Drafted tokens, >= 0.

    Examples
    --------
    >>> round(expected_rounds_beta(2, 1.0, 1.0, 1), 12)   # E[2 - alpha]
    1.5
    """
    n, drafts = one_count("n_tokens", n_tokens), one_count("k", k)
    # 1/E[N] has poles at the roots of unity, about 2 pi/(k+1) from [0, 1]: nodes grow with k.
    alpha, weight = beta_quadrature(a, b, 64 + 4 * drafts)
    laws = accepted_pmf_iid(alpha, drafts)
    rounds = [expected_rounds(n, tokens_pmf(one)) for one in laws]
    return float(weight @ np.array(rounds))
