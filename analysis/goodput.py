"""SmartSpec / TurboSpec: the draft length that gives a batch the most tokens per second.

Goodput here is accepted tokens/s of the whole batch (arXiv 2406.14066), not a share of requests
that meet a service level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from analysis._checks import FloatArray, IntArray, count, give, give_counts, nonnegative, positive
from analysis.rounds import acceptance_length_iid
from psdsim.errors import InputError


def goodput(
    n_seqs: ArrayLike,
    alpha: ArrayLike,
    k: ArrayLike,
    step_time_s: ArrayLike,
    n_proposing: ArrayLike | None = None,
) -> FloatArray:
    """Return [n_prop E[N] + (B - n_prop)] / t, tokens/s, where only some requests have drafts.

    Parameters
    ----------
    n_seqs
        B, requests in the batch, > 0.
    alpha, k
        Acceptance, in [0, 1]; drafted tokens, >= 0.
    step_time_s
        t = drafting + target pass + overhead at this B and k, s, > 0.
    n_proposing
        Requests with a proposal (n-gram drafting finds none for some), at most B; None: all.

    Examples
    --------
    >>> float(goodput(4, 0.5, 1, 0.5)), float(goodput(4, 0.5, 1, 0.5, n_proposing=2))
    (12.0, 10.0)
    """
    batch = positive("n_seqs", n_seqs)
    proposing = batch if n_proposing is None else nonnegative("n_proposing", n_proposing)
    if np.any(proposing > batch):
        raise InputError("n_proposing is above n_seqs", expected="at most the whole batch")
    tokens = proposing * acceptance_length_iid(alpha, k) + (batch - proposing)
    return give(tokens / positive("step_time_s", step_time_s))


def best_k(alpha: ArrayLike, step_times_s: ArrayLike) -> IntArray:
    """Return the k with the most goodput: argmax of E[N(k)] / t(k), the smaller at a tie.

    The batch size cancels; it acts through the times. A table of times by (batch, k) gives the
    best k of each batch (Su et al. 2023 choose from such a table).

    Parameters
    ----------
    alpha
        In [0, 1], shape (...).
    step_times_s
        Shape (..., k + 1): t(0), t(1), ...; infinity where k does not fit into memory, but not
        for all k.

    Examples
    --------
    >>> int(best_k(0.5, [1.0, 1.25, 2.0])), int(best_k(0.5, [1.0, np.inf, 1.5]))
    (1, 2)
    """
    times = np.asarray(step_times_s, dtype=np.float64)
    if times.ndim == 0 or np.any(np.isnan(times) | (times <= 0.0)):
        raise InputError("step_times_s has a time that isn't above 0", expected="positive times")
    if np.any(np.all(np.isinf(times), axis=-1)):
        raise InputError("step_times_s is infinite for every k", expected="a k that fits")
    k = count("k", np.arange(times.shape[-1]))
    tokens = acceptance_length_iid(np.asarray(alpha)[..., None], k)
    return give_counts(np.argmax(tokens / times, axis=-1))
