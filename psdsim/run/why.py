"""One line on where a schedule's time went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psdsim.schedules import Schedule


def why(row: Mapping[str, Any], schedule: type[Schedule]) -> str:
    """Return the line for one row of a comparison.

    Parameters
    ----------
    row
        The figures, as `run_metrics` and `compare` name them.
    schedule
        Class of the schedule.
    """
    parts = [_drafting(row, schedule)]
    if schedule.overlaps:
        parts.append(f"target idle {_percent(1.0 - row['target_utilization'])} of the time")
        if row["sync_share"] >= 0.001:
            parts.append(f"sync {_percent(row['sync_share'])}")
    if row.get("prefill_share", 0.0) >= 0.005:
        parts.append(f"prefill {_percent(row['prefill_share'])}")
    lost = row["discarded_draft_tokens"] + row["rejected_draft_tokens"]
    if row["drafted_tokens"]:
        text = f"{_percent(lost / row['drafted_tokens'])} of drafts rejected"
        if row["discarded_draft_tokens"]:
            text += " or discarded unseen"
        parts.append(text)
    if row.get("tail_share") is not None and row["tail_share"] >= 0.005:
        parts.append(f"tail {_percent(row['tail_share'])}")
    if schedule.n_groups > 1 and row.get("single_group_share"):
        parts.append(f"one sub-batch alone in {_percent(row['single_group_share'])} of steps")
    if row.get("n_preemptions"):
        parts.append(f"{row['n_preemptions']:.0f} preemptions for lack of KV memory")
    if row["saturated"]:
        parts.insert(0, "SATURATED: the queue grows for as long as requests arrive")
    return "; ".join(parts)


def _drafting(row: Mapping[str, Any], schedule: type[Schedule]) -> str:
    if not row["drafted_tokens"]:
        return "no drafting: every step is one target pass"
    share = _percent(row["draft_utilization"])
    if not schedule.overlaps:
        return f"drafting waits in line with the target: {share} of the time"
    draft, verify = row["mean_draft_time_s"], row["mean_verify_time_s"]
    if draft is None or verify is None:
        return f"drafting runs beside the target: busy {share} of the time"
    if draft <= verify:
        return f"drafting is hidden: {draft * 1e3:.3g} ms beside {verify * 1e3:.3g} ms of verifying"
    return (
        f"drafting sets the pace: {draft * 1e3:.3g} ms against {verify * 1e3:.3g} ms of verifying"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if abs(share) < 0.1 else f"{100 * share:.0f} %"
