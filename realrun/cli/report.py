"""What `realrun run` prints."""

from __future__ import annotations

import numpy as np
import typer

from psdsim.records import StepKind
from realrun.executor import RunResult
from realrun.lossless import Comparison
from realrun.session import RunOptions


def summary(result: RunResult) -> dict[str, float]:
    """Return the figures of a run.

    Returns
    -------
    dict
        output_throughput (tokens/s, total time), acceptance_length (tokens a pass and request),
        acceptance_rate (accepted / tested), medians of decode steps: step_s, draft_s, verify_s,
        overhead_s, and the shares of the median step that overhead takes.
    """
    steps = result.steps
    decode = steps["kind"] == int(StepKind.DECODE)
    emitted = int(steps["n_emitted_tokens"].sum())
    rounds = int(steps["n_verify_seqs"][decode].sum())
    tested = int(steps["n_verified_tokens"].sum())
    duration = (steps["end_s"] - steps["start_s"])[decode]
    figures = {
        "output_throughput": emitted / result.total_s if result.total_s > 0 else float("nan"),
        "acceptance_length": int(steps["n_emitted_tokens"][decode].sum()) / max(rounds, 1),
        "acceptance_rate": int(steps["n_accepted_tokens"].sum()) / tested if tested else 0.0,
    }
    figures["step_s"] = _median(duration)
    for name in ("draft", "verify"):
        figures[f"{name}_s"] = _median(steps[f"{name}_time_s"][decode])
    figures["overhead_s"] = _median(steps["overhead_s"][decode])
    both = (steps["draft_group"] >= 0) & (steps["verify_group"] >= 0)
    hidden = (steps["draft_time_s"] + steps["verify_time_s"] + steps["overhead_s"]) - (
        steps["end_s"] - steps["start_s"]
    )
    figures["hidden_s"] = _median(hidden[decode & both])
    return figures


def tell_run(options: RunOptions, result: RunResult) -> None:
    """Print the figures of a run."""
    figures = summary(result)
    forced = "measured" if options.forced is None else "forced"
    n = int(np.count_nonzero(~np.isnan(result.requests["finish_s"])))
    steps = result.steps["kind"]
    n_decode = int(np.count_nonzero(steps == int(StepKind.DECODE)))
    schedule = result.schedule
    typer.echo(
        f"{options.schedule} k={options.k if schedule.drafts else 0} batch={options.batch}: {n} of "
        f"{result.requests['request_id'].size} requests in {result.total_s:.2f} s, "
        f"{n_decode} decode steps"
    )
    rows = [
        ("output throughput", f"{figures['output_throughput']:.1f} tokens/s"),
        ("acceptance length", f"{figures['acceptance_length']:.3f} tokens a pass ({forced})"),
        ("acceptance rate", f"{figures['acceptance_rate']:.3f} accepted / tested"),
        ("decode step", f"{1e3 * figures['step_s']:.2f} ms (medians from here on)"),
        ("  draft model", f"{1e3 * figures['draft_s']:.2f} ms"),
        ("  target model", f"{1e3 * figures['verify_s']:.2f} ms"),
        ("  hidden", f"{1e3 * figures['hidden_s']:.2f} ms (both models ran at the same time)"),
        (
            "  overhead",
            f"{1e3 * figures['overhead_s']:.2f} ms (no model ran: Python, queues, waiting)",
        ),
    ]
    if not schedule.drafts or schedule.k == 0:
        rows = [row for row in rows if "acceptance" not in row[0] and "hidden" not in row[0]]
    for name, value in rows:
        typer.echo(f"  {name:<20} {value}")


def tell_lossless(verdict: Comparison) -> None:
    """Print whether the texts are those of plain decoding."""
    wrong = [m for m in verdict.mismatches if not m.excused]
    excused = len(verdict.mismatches) - len(wrong)
    typer.echo(
        f"lossless: {verdict.n_requests - len(verdict.mismatches)} of {verdict.n_requests} texts "
        f"equal plain decoding's token for token; {excused} excused (the target's two best "
        f"logits closer than {verdict.tolerance:g}), {len(wrong)} wrong"
    )
    for mismatch in wrong:
        typer.echo(
            f"  request {mismatch.request}, output token {mismatch.position}: the best logits "
            f"are {mismatch.gap:.3g} apart"
        )


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if values.size else 0.0
