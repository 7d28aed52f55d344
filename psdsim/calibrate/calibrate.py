"""Fit everything that a scenario needs, and write it down."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from psdsim.calibrate.acceptance import AcceptanceFit, fit_acceptance
from psdsim.calibrate.contention import SlowDownFit, fit_slow_down
from psdsim.calibrate.figures import Figure, Spread
from psdsim.calibrate.overhead import Overhead, fit_overhead
from psdsim.calibrate.profile import Profile
from psdsim.calibrate.runs import MeasuredRun
from psdsim.calibrate.tables import prefill_section, table_text
from psdsim.calibrate.text import header, inline, line, number
from psdsim.calibrate.times import (
    DraftFit,
    TargetFit,
    fit_draft,
    fit_pause,
    fit_prefill,
    fit_target,
)
from psdsim.calibrate.traffic import workload
from psdsim.errors import InputError


@dataclass(frozen=True)
class Start:
    """What a drafting phase adds, however long, and the target pass that waited for it.

    Parameters
    ----------
    own
        Measured by the drafter itself.
    handover
        What steps of sd have beyond those of ar around their passes; None where no run tells.
    pause
        What target passes take longer after having waited for drafts.
    """

    own: Figure
    handover: Figure | None
    pause: Figure | None

    @property
    def leg_s(self) -> float:
        """Half of the handover, s: work to the drafter, or drafts back.

        An overlapping schedule hides the first leg with the drafting, and not the second.
        """
        return 0.0 if self.handover is None else self.handover.value / 2.0

    def lines(self) -> list[str]:
        """Return the keys with a comment for each part."""
        own, handover = self.own, self.handover
        out = [f"  # the drafter's own start: {own.value:.4g} s, {own.text('s')}"]
        plus = ""
        if handover is not None:
            out.append(
                f"  # handover, what sd has beyond ar: {handover.value:.4g} s, "
                f"{handover.text('s')}; half before and half behind the drafting"
            )
            out.append(f"  sync_s: {number(self.leg_s)}")
            plus = "  # the drafter's own, and half of the handover"
        out.append(f"  draft_start_s: {number(own.value + self.leg_s)}{plus}")
        if self.pause is not None:
            out.append("  # passes of sd after having waited for drafts, beyond those of ar")
            out.append(f"  target_resume_s: {number(self.pause.value)}  # {self.pause.text('s')}")
        return out


@dataclass(frozen=True)
class Calibration:
    """What was fitted, and the files that say it.

    Parameters
    ----------
    target, draft
        Passes in the runs / the profile's, by batch; no draft where nothing drafts.
    overhead
        Costs of a step beside its passes.
    start
        What every drafting phase adds; None where nothing drafts.
    slow_down
        None where nothing was measured while both models ran.
    acceptance
        None where nothing drafts.
    files
        Text of each file by name; the first is the scenario, the others are those it names.
    """

    target: TargetFit
    draft: DraftFit | None
    overhead: Overhead
    start: Start | None
    slow_down: SlowDownFit | None
    acceptance: AcceptanceFit | None
    files: dict[str, str]


def calibrate(runs: Sequence[MeasuredRun], profile: Profile, name: str) -> Calibration:
    """Fit a scenario to runs and a profile of the same models on the same hardware.

    Parameters
    ----------
    runs
        Measured runs; ar or sd among them, on whose serial steps factors and overheads rest.
    profile
        Times of single passes.
    name
        File name of the scenario; the files it names get its stem in front.

    Raises
    ------
    psdsim.errors.InputError
        If there is too little to fit something on.
    """
    drafted = any(run.drafts for run in runs)
    if drafted and profile.draft is None:
        raise InputError(
            "the runs draft and the profile has no draft model",
            expected="models.draft and its rows",
            where=profile.file,
        )
    serial = [run for run in runs if not run.schedule.overlaps]
    draft_serial = [run for run in serial if run.drafts]
    own = profile.draft is not None and profile.draft.device != profile.target.device
    # A drafter without a model leaves the target's weights in the caches.
    pauses = own and profile.draft is not None and profile.draft.config is not None
    target = fit_target(profile, serial, pauses)
    draft = fit_draft(profile, draft_serial) if drafted else None
    overhead = fit_overhead(serial, own)
    slow = None
    if draft is not None:
        slow = fit_slow_down(
            profile,
            runs,
            # Medians, as what they are compared with.
            target.factors.times((1.0 + target.cv**2) ** -0.5),
            draft.factors.times((1.0 + draft.cv**2) ** -0.5),
            draft.start.value,
        )
    acceptance = fit_acceptance(runs) if drafted else None
    stem = Path(name).stem
    files = {f"{stem}-target.csv": table_text(profile, "target", "decode", target.factors)}
    files[f"{stem}-target.json"] = json.dumps(profile.target.config, indent=2) + "\n"
    text = [*header(runs, profile), *_models(profile, stem, draft, slow, own)]
    if profile.draft is not None and profile.draft.config is not None and draft is not None:
        files[f"{stem}-draft.json"] = json.dumps(profile.draft.config, indent=2) + "\n"
    if acceptance is not None:
        text += ["", *(f"# {comment}" for comment in acceptance.comments)]
        text.append(f"acceptance: {inline(acceptance.data)}")
    text += ["", "step_time:"]
    text += _passes("target", target, f"{stem}-target.csv")
    if draft is not None:
        files[f"{stem}-draft.csv"] = table_text(profile, "draft", "decode", draft.factors)
        text += _passes("draft", draft, f"{stem}-draft.csv")
    for model in ("target", "draft") if draft is not None else ("target",):
        fit = fit_prefill(profile, runs, model)
        lines, table = prefill_section(profile, fit, model, f"{stem}-{model}-prefill.csv")
        text += lines
        if table:
            files[f"{stem}-{model}-prefill.csv"] = table
    start = None
    if draft is not None:
        pause = fit_pause(profile, serial, target.factors) if pauses else None
        start = Start(draft.start, overhead.sync if own else None, pause)
    text += _overhead(overhead, target, draft, own, start)
    section, trace, comment = workload(runs, f"{stem}-requests.csv")
    if trace:
        files[f"{stem}-requests.csv"] = trace
    text += ["", f"# {comment}", f"workload: {inline(section)}", *_engine(runs)]
    return Calibration(
        target, draft, overhead, start, slow, acceptance, {name: "\n".join(text) + "\n", **files}
    )


def _models(
    profile: Profile, stem: str, draft: Spread | None, slow: SlowDownFit | None, own: bool
) -> list[str]:
    model = profile.draft
    name = profile.target.name
    if model is not None and draft is not None:
        name += f" with {model.name}"
    config = json.dumps(f"{stem}-target.json")
    out = [
        f"name: {json.dumps(name)}",
        f"target: {{config: {config}, gpu: measured, n_gpus: 1}}"
        f"  # {line(profile.target.dtype)} on {line(profile.target.device)}",
    ]
    if model is None or draft is None:
        return out
    out.append("")
    if model.config is None:
        out.append(f"# {line(model.kind)}: a drafter without a shape of its own; the target's is")
        out.append("# named in its place, and nothing reads it")
    else:
        config = json.dumps(f"{stem}-draft.json")
    where = "serial_on: own" if own else "shared: true"
    out += [
        "draft:",
        f"  config: {config}",
        f"  gpu: measured  # {line(model.dtype)} on {line(model.device)}",
        "  n_gpus: 1",
        f"  {where}  # {'a device of its own' if own else 'the device of the target'}",
    ]
    if slow is None:
        out.append("  slow_down: 1.0  # nothing was measured while both models ran")
    else:
        out += [
            f"  # {slow.source}",
            "  slow_down:",
            f"    target: {number(slow.target.value)}  # {slow.target.text()}",
            f"    draft: {number(slow.draft.value)}  # {slow.draft.text()}",
        ]
    return out


def _passes(model: str, fit: TargetFit | DraftFit, table: str) -> list[str]:
    low, high = fit.quartiles
    return [
        f"  # passes in serial steps / the profile's: median {fit.median.value:.4f}, "
        f"{fit.median.text()}, quartiles {low:.4f} and {high:.4f};",
        f"  # the table is the profile's times {fit.factors.text()} requests (means)",
        f"  {model}: {{kind: table, path: {json.dumps(table)}}}",
    ]


def _overhead(
    overhead: Overhead, target: Spread, draft: Spread | None, own: bool, start: Start | None
) -> list[str]:
    fixed, per_seq, sync = overhead.fixed, overhead.per_seq, overhead.sync
    out = [
        "  # step - draft - verify of serial steps, least squares",
        f"  step_overhead_s: {number(fixed.value)}  # {fixed.text('s')}",
        f"  step_overhead_per_seq_s: {number(per_seq.value)}  # {per_seq.text('s')}",
    ]
    if start is not None:
        out += start.lines()
    if own and sync is None:
        out.append("  # no ar run beside the sd runs: the handover is part of step_overhead_s")
    out.append(
        f"  jitter_cv: {number(min(target.cv, 10.0))}  # from the quartiles, n = {target.median.n}"
    )
    if draft is not None:
        cv = number(min(draft.cv, 10.0))
        out.append(f"  draft_jitter_cv: {cv}  # from the quartiles, n = {draft.median.n}")
    return out


def _engine(runs: Sequence[MeasuredRun]) -> list[str]:
    limits = [run.metadata.get("max_num_seqs") for run in runs]
    known = [limit for limit in limits if type(limit) is int and limit >= 1]
    if not known:
        raise InputError(
            "no run's metadata has max_num_seqs", expected="a whole number", where="metadata"
        )
    ((most, n),) = Counter(known).most_common(1)
    comment = f"of {n} of {len(runs)} runs"
    # The largest pass that any run made must fit.
    budget = 8192
    for run in runs:
        steps = run.recording.steps
        rows = steps["n_verified_tokens"] + steps["n_verify_seqs"] + steps["n_prefill_tokens"]
        budget = max(budget, int(rows.max(initial=0)))
        budget = max(budget, int(run.recording.requests["prompt_tokens"].max()))
    return [
        "",
        "engine:",
        f"  max_num_seqs: {most}  # {comment}",
        f"  max_num_batched_tokens: {budget}",
        "  kv_blocks: unlimited",
    ]
