"""A comparison with the closed form beside every simulated throughput."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from psdsim.api.theory import Theory, theory_for
from psdsim.run import Basis, Comparison, run_comparison
from psdsim.scenario import Scenario


def compare(
    scenario: Scenario | None = None,
    schedules: Sequence[str] = ("ar", "sd", "minedraft", "pearl"),
    k: int | Sequence[int] = (1, 2, 3, 4, 5),
    *,
    basis: str | Basis = Basis.STEP_BATCH,
    seed: int = 0,
    replications: int = 3,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare schedules on the same traffic and the same text.

    Parameters
    ----------
    scenario
        Deployment and traffic; None is the built-in one.
    schedules
        Their names.
    k
        Draft lengths, each 0..64.
    basis
        What is held equal: ``"step-batch"``, ``"concurrency"`` or ``"gpus"``.
    seed, replications
        Independent repetitions 0..n-1 of this seed, at least 1.
    processes
        Worker processes; None decides by the size of the job.
    progress
        Called with (runs done, runs in all).

    Returns
    -------
    Comparison
        ``.rows`` (plain data), ``.to_frame()``, ``.summary()``, ``.notes``.

    Raises
    ------
    psdsim.errors.InputError
        If the scenario, a schedule or a draft length is wrong.

    Examples
    --------
    >>> small = Scenario.builtin({"workload.n_requests": 32})
    >>> compare(small, ["ar"], replications=1).rows[0]["speedup_vs_ar"]
    1.0
    """
    scenario = scenario if scenario is not None else Scenario.builtin()
    ks = (k,) if isinstance(k, int) else tuple(k)
    basis = Basis(basis)
    plain = run_comparison(
        scenario, schedules, ks,
        basis=basis, seed=seed, n_replications=replications, processes=processes, progress=progress,
    )  # fmt: skip
    rows = [
        _with_theory(row, theory_for(scenario, row["schedule"], row["k"], basis, seed))
        for row in plain.rows
    ]
    return replace(plain, rows=rows)


def _with_theory(row: dict[str, Any], theory: Theory) -> dict[str, Any]:
    value = theory.output_throughput
    decode = row["decode_throughput"]
    extra: dict[str, Any] = {
        "theory_output_throughput": value,
        "theory_error": row["output_throughput"] / value - 1 if value else None,
        "decode_throughput_theory_error": decode / value - 1 if value and decode else None,
        "theory_reason": theory.reason,
        "theory_omits": list(theory.omits),
        "theory_source": theory.source,
        "theory_step_time_s": theory.step_time_s,
        "theory_tokens_per_step": theory.tokens_per_step,
    }
    return row | extra
