"""How drafts fare, from recorded rounds: one rate, a rate a position or a request, a chain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from scipy import optimize, special, stats

from psdsim.acceptance import Acceptance, AcceptanceModel
from psdsim.calibrate.chain import fit_chain
from psdsim.calibrate.figures import Figure
from psdsim.calibrate.fits import Fit
from psdsim.calibrate.runs import MeasuredRun
from psdsim.errors import InputError

SIGNIFICANT = 0.01
"""p-value below which requests or positions are taken to differ."""

CLOSE = 0.01
"""Largest relative error of the measured acceptance lengths that a chosen model may have."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AcceptanceFit:
    """A model of a scenario file, and why it is this one.

    Parameters
    ----------
    data
        The section of the scenario.
    alpha
        Accepted / tested drafts over everything; None where acceptance was forced.
    comments
        Interval, tests, what was chosen and why, one sentence each.
    """

    data: dict[str, Any]
    alpha: Figure | None
    comments: tuple[str, ...]


def fit_acceptance(runs: Sequence[MeasuredRun]) -> AcceptanceFit:
    """Fit the rounds of runs whose verdicts were measured; else return what was forced.

    Raises
    ------
    psdsim.errors.InputError
        If no run has rounds to fit, or different models were forced.
    """
    drafting = [run for run in runs if run.drafts]
    measured = [r for r in drafting if r.forced is None and r.recording.rounds is not None]
    if measured:
        return _fit(measured)
    forced = [run.forced for run in drafting if run.forced is not None]
    if not forced:
        raise InputError(
            "no run has rounds (tested and accepted of each request)",
            expected="a run whose acceptance was measured, with its rounds",
        )
    if any(model != forced[0] for model in forced):
        raise InputError(
            "the runs were forced to different acceptance models", expected="runs of one model"
        )
    return AcceptanceFit(
        dict(forced[0]), None, ("forced on the runs, not measured: replace it by your own figure",)
    )


def estimate_alpha(accepted: Floats, tested: Floats) -> Figure:
    """Return accepted / tested with a 95 % interval that lets positions of a request depend.

    A rejection hides what follows it in its round, and a full acceptance hides the next draft:
    both are censored, which leaves this ratio the maximum-likelihood estimate.

    Parameters
    ----------
    accepted, tested
        Sums of each request (cluster), shape (n,).

    Examples
    --------
    >>> estimate_alpha(np.array([3.0, 1.0]), np.array([4.0, 4.0])).value
    0.5
    """
    total, n = float(tested.sum()), accepted.size
    alpha = float(accepted.sum()) / total
    if alpha in (0.0, 1.0) or n < 2:
        # Nothing varies between requests: the exact interval of as many trials as requests.
        edge = 1.0 - 0.025 ** (1.0 / n)
        low, high = (1.0 - edge, 1.0) if alpha == 1.0 else (0.0, edge)
        return Figure(alpha, low if n > 1 or alpha else 0.0, high, round(total))
    error = math.sqrt(_cluster_variance(accepted, tested, alpha))
    reach = float(stats.t.ppf(0.975, n - 1)) * error / (alpha * (1.0 - alpha))
    middle = math.log(alpha / (1.0 - alpha))
    low, high = special.expit(middle - reach), special.expit(middle + reach)
    return Figure(alpha, float(low), float(high), round(total))


def _cluster_variance(accepted: Floats, tested: Floats, alpha: float) -> float:
    n = accepted.size
    rest = accepted - alpha * tested
    return float((rest**2).sum()) / float(tested.sum()) ** 2 * n / (n - 1)


def _fit(runs: Sequence[MeasuredRun]) -> AcceptanceFit:
    texts = [np.array(tests) for tests in _texts(runs).values()]
    # The same text in two runs is one cluster.
    both = np.array([tests.sum(axis=0) for tests in texts if tests[:, 1].sum() > 0])
    if not both.size:
        raise InputError("no draft was tested in any run", expected="rounds that test drafts")
    accepted, tested = both.T
    alpha = estimate_alpha(accepted, tested)
    where = ", ".join(run.file for run in runs)
    comments = [
        f"from {alpha.n} tested drafts of {len(both)} prompts in {where}",
        f"one rate: alpha {alpha.value:.4f}, 95 % interval {alpha.low:.4f} to {alpha.high:.4f} "
        "(positions of one request may depend: sandwich over requests)",
    ]
    # Runs that repeat a prompt say the same again: a text counts once.
    once = len(texts) / sum(len(tests) for tests in texts)
    options: list[tuple[float, float, dict[str, Any], str]] = []
    lengths = _lengths(runs)
    fits = (
        ("positions", "a rate for each position of the block", _positions(runs, alpha.value, both)),
        ("requests", "a rate for each request, Beta distributed", _requests(texts)),
        ("neighbours", "a chain over positions: rejections cluster", fit_chain(runs, once)),
    )
    for what, words, fit in fits:
        if fit is None:
            continue
        differ = fit.p_value < SIGNIFICANT
        comments.append(f"{what} {'differ' if differ else 'do not differ'} (p = {fit.p_value:.2g})")
        if differ:
            gain = fit.gain * (once if what == "positions" else 1.0) - fit.n_more
            options.append((_misfit(fit.data, lengths), -gain, fit.data, words))
    if not options:
        comments.append("chosen: one rate for all")
        return AcceptanceFit({"kind": "iid", "alpha": alpha.value}, alpha, tuple(comments))
    # Throughput follows the mean length at each k: a model must give that, then be likely.
    close = [option for option in options if option[0] <= CLOSE] or [
        min(options, key=lambda option: option[0])
    ]
    misfit, _, chosen, words = min(close, key=lambda option: option[1])
    why = ""
    if len(options) > 1 and lengths:
        why = f", which gives the measured acceptance lengths within {100 * misfit:.1f} %"
    comments.append(f"chosen: {words}{why}")
    return AcceptanceFit(chosen, alpha, tuple(comments))


def _lengths(runs: Sequence[MeasuredRun]) -> dict[int, float]:
    """Return the mean acceptance length of chain rounds by draft length."""
    sums: dict[int, NDArray[np.float64]] = {}
    for run in runs:
        rounds = run.recording.rounds
        if rounds is not None and run.schedule.bonus:
            accepted = np.concatenate(rounds.accepted)
            more = np.array([accepted.sum(), accepted.size], dtype=np.float64)
            sums[run.k] = sums.get(run.k, np.zeros(2)) + more
    return {k: 1.0 + total / n for k, (total, n) in sums.items() if n}


def _misfit(data: dict[str, Any], lengths: dict[int, float]) -> float:
    """Return the largest relative error of a model's acceptance lengths."""
    model: AcceptanceModel = TypeAdapter(Acceptance).validate_python(data)
    errors = (model.pooled_acceptance_length(k) / length - 1 for k, length in lengths.items())
    return max(map(abs, errors), default=0.0)


def _texts(runs: Sequence[MeasuredRun]) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """Return `sums_by_request` of each prompt in every run that had it.

    Runs that don't name their prompts are taken to share them.
    """
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for run in runs:
        prompts = str(run.metadata.get("prompts", ""))
        for request, sums in zip(*sums_by_request(run), strict=True):
            found.setdefault((prompts, int(request)), []).append(sums)
    return found


def sums_by_request(run: MeasuredRun) -> tuple[NDArray[np.int64], list[tuple[float, float]]]:
    """Return request ids, and (accepted, tested until the first rejection) of each."""
    rounds = run.recording.rounds
    assert rounds is not None
    out = []
    for tested, accepted in zip(rounds.tested, rounds.accepted, strict=True):
        n = float(accepted.sum())
        out.append((n, n + float((accepted < tested).sum())))
    return run.recording.requests["request_id"], out


def _positions(runs: Sequence[MeasuredRun], alpha: float, sums: Floats) -> Fit | None:
    """Fit a rate for each position.

    Chain rounds only: without bonus row, a pass begins in the middle of a block.
    """
    kept = [run for run in runs if run.schedule.bonus]
    if not kept:
        return None
    k = max(run.k for run in kept)
    tested, accepted = np.zeros(k), np.zeros(k)
    for run in kept:
        assert run.recording.rounds is not None
        t = np.concatenate(run.recording.rounds.tested)
        a = np.concatenate(run.recording.rounds.accepted)
        place = np.arange(k)[:, None]
        tested += ((a >= place) & (t > place)).sum(axis=1)
        accepted += (a > place).sum(axis=1)
    seen = tested > 0
    if k < 2 or not seen.all():
        return None
    rates = accepted / tested
    pooled = accepted.sum() / tested.sum()
    gain = float(_log_likelihood(accepted, tested, rates).sum())
    gain -= float(_log_likelihood(accepted, tested, np.full(k, pooled)).sum())
    # Rao-Scott: positions of one request depend, which inflates the ratio by about this much.
    naive = alpha * (1.0 - alpha) / sums[:, 1].sum()
    effect = 1.0
    if len(sums) > 1 and naive > 0:
        effect = max(_cluster_variance(sums[:, 0], sums[:, 1], alpha) / naive, 1.0)
    p = float(stats.chi2.sf(2.0 * gain / effect, k - 1))
    data: dict[str, Any] = {
        "kind": "position", "convention": "conditional",
        "rates": [round(float(rate), 6) for rate in rates], "extend": "last",
    }  # fmt: skip
    return Fit(p, gain, k - 1, data)


def _log_likelihood(accepted: Floats, tested: Floats, rate: Floats) -> Floats:
    both = special.xlogy(accepted, rate) + special.xlogy(tested - accepted, 1.0 - rate)
    return np.asarray(both, dtype=np.float64)


def _requests(texts: Sequence[Floats]) -> Fit | None:
    """Fit a Beta distributed rate for each request.

    A text that several runs tested counts as one run's tests: it is the same text again.
    """
    best = np.array([tests.mean(axis=0) for tests in texts]).reshape(-1, 2)
    best = best[best[:, 1] > 0]
    accepted, tested = best[:, 0], best[:, 1]
    total = accepted.sum() / tested.sum() if tested.size else 0.0
    if len(best) < 2 or total in (0.0, 1.0):
        return None

    def loss(x: Floats) -> float:
        mean, concentration = special.expit(x[0]), math.exp(min(max(x[1], -5.0), 12.0))
        a, b = mean * concentration, (1.0 - mean) * concentration
        both = special.betaln(accepted + a, tested - accepted + b) - special.betaln(a, b)
        return -float(both.sum())

    start = np.array([math.log(total / (1.0 - total)), 3.0])
    found = optimize.minimize(loss, start, method="Nelder-Mead")
    plain = float(_log_likelihood(accepted, tested, np.full(len(best), total)).sum())
    gain = max(-float(found.fun) - plain, 0.0)
    # No difference lies at the edge of the parameters: half the mass is at 0 (Self and Liang).
    p = 0.5 * float(stats.chi2.sf(2.0 * gain, 1)) if gain > 0 else 1.0
    mean, concentration = special.expit(found.x[0]), math.exp(min(max(found.x[1], -5.0), 12.0))
    data = {"kind": "beta", "mean": float(mean), "concentration": float(concentration)}
    return Fit(p, gain, 1, data)
