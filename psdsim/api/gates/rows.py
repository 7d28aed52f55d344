"""Rows of a validation: a simulated value, its theory, their distance, a verdict."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from psdsim.engine import simulate_run
from psdsim.records import StepKind
from psdsim.run.prepare import prepare
from psdsim.scenario import Scenario
from psdsim.stats import Estimate, batch_means_rate

Row = dict[str, Any]
Mutation = Literal["none", "alpha", "k+1", "k-1", "bonus", "sync"]
"""A deliberate mistake on the theory's side; a sharp check must notice it."""

LIMIT = 4.5
"""Standard errors within which simulation and theory must agree."""
P_LIMIT = 1e-5
"""Smallest p-value of a goodness-of-fit test that counts as agreement (about 4.4 sigma)."""
BATCHES = 40
"""Batches of a batch-means estimate."""


def window_rate(scenario: Scenario, schedule: str, k: int, seed: int, n_steps: int) -> Estimate:
    """Return tokens/s over the first n decode steps, with a batch-means standard error."""
    steps = simulate_run(prepare(scenario, schedule, k, seed=seed)).steps
    decode = np.flatnonzero(steps["kind"] == int(StepKind.DECODE))[:n_steps]
    tokens = steps["n_emitted_tokens"][decode]
    time_s = (steps["end_s"] - steps["start_s"])[decode]
    return batch_means_rate(tokens, time_s, n_batches=BATCHES, warm_up=0.02)


def mean_row(check: Any, name: str, what: str, estimate: Estimate, theory: float) -> Row:
    """Return the row of an estimated mean; where its standard error is 0, equality is asked."""
    exact = not estimate.standard_error > 1e-12 * abs(estimate.mean)
    error = estimate.mean / theory - 1
    distance = None if exact else abs(estimate.mean - theory) / estimate.standard_error
    agrees = abs(error) < 1e-9 if distance is None else distance < LIMIT
    return {
        "family": check.family,
        "cell": name,
        "what": what,
        "simulated": estimate.mean,
        "theory": theory,
        "error": error,
        "standard_error": 0.0 if exact else estimate.standard_error / abs(estimate.mean),
        "distance_se": distance,
        "p_value": None,
        "verdict": "agrees" if agrees else "DISAGREES",
    }


def sample_row(check: Any, name: str, what: str, sample: NDArray[Any], theory: float) -> Row:
    """Return the row of the mean of independent values."""
    x = np.asarray(sample, dtype=np.float64)
    error = float(x.std(ddof=1) / math.sqrt(x.size))
    return mean_row(check, name, what, _estimate(float(x.mean()), error, x.size), theory)


def variance_row(check: Any, name: str, what: str, sample: NDArray[Any], theory: float) -> Row:
    """Return the row of the variance of independent values (error from the fourth moment)."""
    x = np.asarray(sample, dtype=np.float64)
    deviation = x - x.mean()
    variance = float((deviation**2).sum() / (x.size - 1))
    error = math.sqrt(max(float((deviation**4).mean()) - variance**2, 0.0) / x.size)
    return mean_row(check, name, what, _estimate(variance, error, x.size), theory)


def law_row(
    check: Any, name: str, what: str, sample: NDArray[Any], pmf: NDArray[np.float64]
) -> Row:
    """Return the row of a chi-square test of whole numbers against a law on 0..n.

    Cells of the law with an expected count below 10 are pooled with their neighbours.
    """
    from scipy import stats

    counts = np.bincount(np.asarray(sample, dtype=np.int64), minlength=pmf.size).astype(float)
    expected = np.zeros(counts.size)
    expected[: pmf.size] = pmf * counts.sum()
    seen, wanted = _pool(counts, expected)
    # Two bins at least are needed to test anything.
    p = float(stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue)
    mean = float(np.mean(sample))
    theory = float(np.arange(pmf.size) @ pmf)
    return {
        "family": check.family,
        "cell": name,
        "what": f"{what} ({seen.size} bins)",
        "simulated": mean,
        "theory": theory,
        "error": mean / theory - 1,
        "standard_error": None,
        "distance_se": None,
        "p_value": p,
        "verdict": "agrees" if seen.size > 1 and p > P_LIMIT else "DISAGREES",
    }


def exact_row(check: Any, name: str, what: str, simulated: float, theory: float) -> Row:
    """Return the row of a deterministic value, which must be equal."""
    estimate = _estimate(simulated, 0.0, 1)
    row = mean_row(check, name, what, estimate, theory)
    row["verdict"] = "agrees" if simulated == theory else "DISAGREES"
    return row


def sum_row(check: Any, name: str, what: str, simulated: float, theory: float) -> Row:
    """Return the row of a sum of floating-point times, which must be equal but for rounding."""
    row = mean_row(check, name, what, _estimate(simulated, 0.0, 1), theory)
    row["verdict"] = "agrees" if abs(row["error"]) < 1e-12 else "DISAGREES"
    return row


def _estimate(mean: float, error: float, n: int) -> Estimate:
    return Estimate(mean, error, mean - error, mean + error, n)


def _pool(
    counts: NDArray[np.float64], expected: NDArray[np.float64], least: float = 10.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    seen, wanted = [0.0], [0.0]
    for count, mean in zip(counts, expected, strict=True):
        if wanted[-1] >= least:
            seen.append(0.0)
            wanted.append(0.0)
        seen[-1] += count
        wanted[-1] += mean
    if len(wanted) > 1 and wanted[-1] < least:
        last_seen, last_wanted = seen.pop(), wanted.pop()
        seen[-1] += last_seen
        wanted[-1] += last_wanted
    return np.array(seen), np.array(wanted)
