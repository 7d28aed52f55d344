"""Comparison tables for people: aligned text, a line of reasons, every assumption named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from psdsim.run import Basis, Comparison

_BASIS = {
    Basis.STEP_BATCH: "step-batch: {m} requests verified per step (minedraft holds {m2})",
    Basis.CONCURRENCY: "concurrency: {m} requests in flight in every schedule",
    Basis.GPUS: "gpus: step-batch, speedups per GPU",
}


def number(value: Any, digits: int = 4) -> str:
    """Return a figure with a few significant digits; a dash for none."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def percent(value: float | None) -> str:
    """Return a signed percentage; a dash for none."""
    return "-" if value is None else f"{100 * value:+.1f}%"


def aligned(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)
) -> str:
    """Return a plain-text table; the columns named in `left` are left aligned, others right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    return "\n".join(lines)


def fitted(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Return a table no wider than `width`: what doesn't fit goes into further tables below.

    Every part repeats the first column; None sets no limit.
    """
    text = aligned(header, rows)
    if width is None or len(text.splitlines()[1]) <= width:
        return text
    parts, shown = [], [0]
    for column in range(1, len(header)):
        trial = aligned(*_columns(header, rows, [*shown, column]))
        if len(trial.splitlines()[1]) > width and len(shown) > 1:
            parts.append(aligned(*_columns(header, rows, shown)))
            shown = [0]
        shown = [*shown, column]
    parts.append(aligned(*_columns(header, rows, shown)))
    return "\n\n".join(parts)


def _columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], chosen: Sequence[int]
) -> tuple[list[str], list[list[str]]]:
    return [header[i] for i in chosen], [[row[i] for i in chosen] for row in rows]


def comparison_text(result: Comparison, width: int | None = None) -> str:
    """Return a comparison as text, its tables no wider than `width` columns."""
    m = result.scenario.engine.max_num_seqs
    plural = "" if result.n_replications == 1 else "s"
    basis = _BASIS[result.basis].format(m=m, m2=2 * m)
    head = (
        f"{result.scenario.name}: {_workload(result)}; basis {basis}; "
        f"seed {result.seed}, {result.n_replications} replication{plural}\n"
    )
    parts = [head, _throughput(result, width), "", _latency(result, width), ""]
    parts.append("Where the time went")
    parts += [f"  {_name(row)}: {row['why']}" for row in result.rows]
    parts += ["", _legend(result)]
    if result.notes:
        parts += ["", "Notes"] + [f"  {note}" for note in result.notes]
    return "\n".join(parts)


def _workload(result: Comparison) -> str:
    work = result.scenario.workload
    if work.kind == "trace":
        return f"trace {work.path}"
    text = f"{work.n_requests} requests, {work.kind}"
    rate = getattr(work, "rate", None)
    return text + (f" at {rate:g}/s" if rate else "")


def _name(row: dict[str, Any]) -> str:
    lossy = "" if row["lossless"] else " LOSSY"
    return (row["schedule"] if not row["k"] else f"{row['schedule']} k={row['k']}") + lossy


def _throughput(result: Comparison, width: int | None) -> str:
    header = [
        "schedule", "tokens/s", "95% interval", "theory", "error", "decode err", "x AR", "x SD",
        "x best SD", "x SD same n", "x SD per GPU", "GPUs", "tok/s/GPU",
    ]  # fmt: skip
    rows = []
    for row in result.rows:
        ci = row["output_throughput_ci"]
        saturated = " SATURATED" if row["saturated"] else ""
        best = "*" if row["is_best_k"] and row["k"] and not row["saturated"] else ""
        rows.append(
            [
                _name(row) + best + saturated,
                number(row["output_throughput"]),
                f"{number(ci[0])}..{number(ci[1])}" if ci else "-",
                number(row["theory_output_throughput"]),
                percent(row["theory_error"]),
                percent(row["decode_throughput_theory_error"]),
                number(row["speedup_vs_ar"], 3),
                number(row["speedup_vs_sd"], 3),
                number(row["speedup_vs_best_sd"], 3),
                number(row["speedup_vs_sd_equal_concurrency"], 3),
                number(row["speedup_vs_sd_per_gpu"], 3),
                str(row["n_gpus"]),
                number(row["output_throughput_per_gpu"]),
            ]
        )
    return fitted(header, rows, width)


def _latency(result: Comparison, width: int | None) -> str:
    header = [
        "latency (ms)", "ttft", "p99", "tpot", "p99", "itl", "p99", "e2el", "p99",
        "accept len", "accept rate", "step cost", "implied", "draft busy", "target busy",
    ]  # fmt: skip
    rows = []
    for row in result.rows:
        cells = [_name(row)]
        for name in ("ttft", "tpot", "itl", "e2el"):
            cells += [number(row[f"mean_{name}_ms"]), number(row[f"p99_{name}_ms"])]
        cells += [
            number(row["acceptance_length"], 3),
            number(row["acceptance_rate"], 3),
            number(row["step_cost_ratio"], 3),
            number(row["implied_step_cost_ratio"], 3),
            f"{100 * row['draft_utilization']:.0f}%",
            f"{100 * row['target_utilization']:.0f}%",
        ]
        rows.append(cells)
    return fitted(header, rows, width)


def _legend(result: Comparison) -> str:
    lines = [
        "* best k of its schedule. x AR, x SD: ratio of mean throughputs (SD at the same k); "
        "x best SD: each at its best k;",
        "x SD same n: same requests in flight; x SD per GPU: throughput per GPU. "
        "TTFT includes the wait for admission.",
    ]
    if not all(row["lossless"] for row in result.rows):
        lines.append("LOSSY: the output is not distributed as the target's own.")
    omits = sorted({item for row in result.rows for item in row["theory_omits"]})
    if omits:
        lines.append(
            "theory: steady decoding; left out: "
            + ", ".join(omits)
            + ". decode err compares decoding alone."
        )
    reasons = {row["theory_reason"]: None for row in result.rows if row["theory_reason"]}
    lines += [f"no closed form: {reason}" for reason in reasons]
    return "\n".join(lines)


def prediction_text(result: Comparison) -> str:
    """Return the one row of a prediction as text, a figure a line."""
    row = result.rows[0]
    ci = row["output_throughput_ci"]
    lines = [
        f"{result.scenario.name}: {_workload(result)}; {_name(row)} on {row['n_gpus']} GPUs"
        + ("  SATURATED" if row["saturated"] else ""),
        "",
        f"  output throughput  {number(row['output_throughput'])} tokens/s"
        + (f"  (95% interval {number(ci[0])}..{number(ci[1])})" if ci else ""),
    ]
    theory = row["theory_output_throughput"]
    lines.append(
        f"  closed form        {number(theory)} tokens/s  "
        f"(simulated {percent(row['theory_error'])}; decoding alone "
        f"{percent(row['decode_throughput_theory_error'])})"
        if theory
        else f"  closed form        none: {row['theory_reason']}"
    )
    lines += [
        f"  requests           {number(row['request_throughput'])} per s",
        f"  speedup            {number(row['speedup_vs_ar'], 3)} x plain decoding, "
        f"{number(row['speedup_vs_sd'], 3)} x serial SD at the same k",
    ]
    for name in ("ttft", "tpot", "itl", "e2el"):
        mean, median, p99 = (row[f"{kind}_{name}_ms"] for kind in ("mean", "median", "p99"))
        lines.append(
            f"  {name:<5} (ms)         mean {number(mean)}, median {number(median)}, "
            f"p99 {number(p99)}"
        )
    lines += [
        f"  acceptance         length {number(row['acceptance_length'], 3)}, "
        f"rate {number(row['acceptance_rate'], 3)}",
        f"  busy               target {100 * row['target_utilization']:.0f}%, "
        f"draft {100 * row['draft_utilization']:.0f}%",
        f"  why                {row['why']}",
    ]
    if result.notes:
        lines += ["", "Notes"] + [f"  {note}" for note in result.notes]
    return "\n".join(lines)
