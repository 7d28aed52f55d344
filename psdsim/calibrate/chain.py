"""Neighbouring positions: the two-state chain of `MarkovAcceptance`, from recorded rounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from psdsim.calibrate.fits import Fit
from psdsim.calibrate.runs import MeasuredRun

Floats = NDArray[np.float64]


def fit_chain(runs: Sequence[MeasuredRun], weight: float) -> Fit | None:
    """Fit P(accept) behind an accepted and behind a rejected position; None where that fails.

    A draft behind an accepted one follows acceptance, the first of a round behind a corrected
    token follows rejection. Behind a bonus token, which nobody tests, the state is hidden: the
    token would have been accepted with the first probability (maximum likelihood). The very
    first round of a request is left out: nothing is known of the prompt's last position.

    Parameters
    ----------
    runs
        Runs with rounds.
    weight
        Of each test: below 1 where runs repeat each other's texts.
    """
    # Accepted and tested drafts behind an accepted, a rejected, and a bonus position.
    counts = np.zeros((3, 2))
    for run in runs:
        rounds = run.recording.rounds
        assert rounds is not None
        for tested, accepted in zip(rounds.tested, rounds.accepted, strict=True):
            counts += _count(np.asarray(tested), np.asarray(accepted), run.schedule.bonus)
    good, bad = counts[:, 0] * weight, (counts[:, 1] - counts[:, 0]) * weight
    if min(good[0] + bad[0], good[1] + bad[1]) < 1.0 or good.sum() == 0.0 or bad.sum() == 0.0:
        return None

    def likelihood(a1: float, a0: float) -> float:
        rates = np.array([a1, a0, a1 * a1 + (1.0 - a1) * a0])
        return float((special.xlogy(good, rates) + special.xlogy(bad, 1.0 - rates)).sum())

    alpha = float(good.sum() / (good.sum() + bad.sum()))
    start = special.logit(np.clip([alpha, alpha], 0.01, 0.99))

    def loss(x: Floats) -> float:
        a1, a0 = special.expit(x)
        return -likelihood(float(a1), float(a0))

    found = optimize.minimize(
        loss, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}
    )
    a1, a0 = (float(x) for x in special.expit(found.x))
    gain = max(likelihood(a1, a0) - likelihood(alpha, alpha), 0.0)
    data = {"kind": "markov", "after_accept": round(a1, 6), "after_reject": round(a0, 6)}
    return Fit(float(stats.chi2.sf(2.0 * gain, 1)), gain, 1, data)


def _count(tested: NDArray[np.int64], accepted: NDArray[np.int64], bonus: bool) -> Floats:
    """Return (accepted, tested) drafts of a request, by what they follow, shape (3, 2)."""
    out = np.zeros((3, 2))
    if not tested.size:
        return out
    full = accepted == tested
    # Within a round, every draft but the first follows an accepted one.
    inner_good = np.maximum(accepted - 1, 0).sum()
    inner = (np.minimum(accepted + 1, tested) - 1).clip(min=0).sum()
    out[0] += inner_good, inner
    first = (tested > 0)[1:]
    good = (accepted > 0)[1:] & first
    after_full = full[:-1]
    behind = 2 if bonus else 0
    out[behind] += (good & after_full).sum(), (first & after_full).sum()
    out[1] += (good & ~after_full).sum(), (first & ~after_full).sum()
    return out
