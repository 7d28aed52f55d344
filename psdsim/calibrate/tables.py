"""Step-time tables of a calibrated scenario."""

from __future__ import annotations

import json

from psdsim.calibrate.factors import Factors
from psdsim.calibrate.profile import Profile
from psdsim.calibrate.smooth import straight
from psdsim.calibrate.text import line, number
from psdsim.calibrate.times import PrefillFit


def table_text(profile: Profile, model: str, phase: str, factors: Factors) -> str:
    """Return the CSV of a model's pass times, their noise taken off, scaled batch by batch."""
    smooth = profile.smooth(model, phase)
    assert smooth is not None
    rows = sorted(smooth)
    lines = [
        f"# {model}, {phase} passes: medians of {line(profile.file)}, made to rise with every "
        f"axis, times {factors.text()} requests",
        "n_seqs,query_length,context,time_s",
    ]
    scale = factors.at([row[0] for row in rows])
    scaled = [(*row[:3], row[3] * f) for row, f in zip(rows, scale, strict=True)]
    if (model, phase) == ("draft", "decode"):
        # Their forwards at the runs' own batches are known from many phases.
        scaled = straight(
            scaled, sorted(factors.by_size), 2.0 * profile.noise.get((model, phase), 0.0)
        )
    lines += [f"{n:g},{q:g},{c:g},{time_s:.9g}" for n, q, c, time_s in scaled]
    return "\n".join(lines) + "\n"


def prefill_section(
    profile: Profile, fit: PrefillFit, model: str, table: str
) -> tuple[list[str], str]:
    """Return the lines of a model's prompt passes, and the text of their table (empty: none).

    Parameters
    ----------
    profile
        Where the times come from.
    fit
        How the runs compare.
    model
        ``target`` or ``draft``.
    table
        Name of the table's file.
    """
    key = "prefill" if model == "target" else "draft_prefill"
    if (model, "prefill") in profile.alone:
        if fit.spread is not None:
            factor, middle = fit.spread.mean, fit.spread.median
            comment = f"prompt passes in the runs / the profile's: {middle.value:.4f}, "
            comment += middle.text()
        else:
            factor = 1.0
            comment = f"as profiled: the runs have {fit.n} prompt passes to compare with"
        text = table_text(profile, model, "prefill", Factors({1: factor}))
        return [f"  # {comment}", f"  {key}: {{kind: table, path: {json.dumps(table)}}}"], text
    if model == "target":
        return ["  # prompt passes were not profiled: they are extended from target"], ""
    time_s = fit.mean_s or 0.0
    comment = f"not profiled: mean of {fit.n} prompt passes of the runs"
    return [f"  # {comment}", f"  {key}: {{kind: constant, time_s: {number(time_s)}}}"], ""
