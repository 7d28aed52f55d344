"""Drafters whose cost doesn't depend on the length: PEFT-BD, DiffuSpec, SpecDiff-2, PoE-Bridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.rounds_rates import alpha_from_acceptance_length
from analysis.sd_batch import parallel_drafter_speedup
from repro.claims import Claim, judged
from repro.seeds_inputs import not_computed, published

STEP, COST = 0.10, 0.05
"""Tolerances: token rates of a step's account, ratios of costs."""


def peft_bd(quick: bool) -> list[Claim]:
    """PEFT-BD: the step's account, and why more accepted tokens lose."""
    row = published()["peft-bd"]
    source, evidence = row["source"], row["evidence"]
    round_s = (row["draft_ms"] + row["verify_ms"]) / 1000
    rho = row["draft_ms"] / row["verify_ms"]
    other = row["fast_mtp"]
    own = float(parallel_drafter_speedup(row["accepted"] + 1.0, rho))
    # FastMTP's drafting left out: what one of its passes is worth at most.
    even = other["accepted"] + 1.0
    found = [
        judged(
            "peft-bd", f"tok-s-{name}", f"tokens/s of a round, {text}", source=source,
            evidence=evidence, theirs=row["tok_s"], ours=(row["accepted"] + extra) / round_s,
            tolerance=STEP, reason="the published rate lies between the two ways to count",
        )
        for name, extra, text in (
            ("accepted", 0.0, "accepted drafts alone"),
            ("with-own", 1.0, "the target's own token counted"),
        )
    ]  # fmt: skip
    return [
        *found,
        judged(
            "peft-bd", "loses", "higher acceptance, fewer tokens/s than FastMTP (1: yes)",
            source=source, evidence=evidence, theirs=float(row["tok_s"] < other["tok_s"]),
            ours=float(own < even), tolerance=0.0, absolute=True, asked=True,
            assumed="FastMTP's drafting costs nothing beside a pass of the same length",
            reason=f"rho = {rho:.3f}: {row['accepted'] + 1:.3f} tokens are worth {own:.3f} a pass, "
            f"FastMTP's {even:.3f}",
        ),
        judged(
            "peft-bd", "gap", "FastMTP over PEFT-BD, tokens/s, passes of the same length",
            source=source, evidence=evidence, theirs=other["tok_s"] / row["tok_s"],
            ours=even / own, tolerance=STEP, unit="x",
            reason=f"FastMTP's round takes at most {1000 * even / other['tok_s']:.1f} ms, below "
            f"PEFT-BD's verification of {row['verify_ms']} ms alone: the two ran on different code",
        ),
        *not_computed("peft-bd"),
    ]  # fmt: skip


def diffuspec(quick: bool) -> list[Claim]:
    """DiffuSpec: similar acceptance length, 1.67x against 3.08x: drafting decides."""
    row = published()["diffuspec"]
    evidence = row["evidence"]
    own, sps = row["own"], row["sps"]
    cost = {name: sum(parts.values()) for name, parts in row["parts"].items()}
    unit = {  # one plain pass, in Figure 6's unit
        name: cost[name] * r["speedup"] / r["mat"] for name, r in (("own", own), ("sps", sps))
    }
    steps = dict(row["parts"]["own"])
    ten = 10 * steps["draft"] + steps["verify"] + steps["search"]
    share = steps["search"] / cost["own"]
    rate = row["third_party"]
    parts = {**row["ablation"], "both": own}
    base = parts.pop("none")
    return [
        judged(
            "diffuspec", "ratio", "DiffuSpec's speedup over the 7B drafter's: lengths / step costs",
            source="Spec-Bench table (costs: Figure 6)", evidence=evidence,
            theirs=own["speedup"] / sps["speedup"],
            ours=own["mat"] / sps["mat"] * cost["sps"] / cost["own"], tolerance=COST, asked=True,
            unit="x", reason=f"lengths alone would give {own['mat'] / sps['mat']:.2f}x",
        ),
        judged(
            "diffuspec", "unit", "plain pass in Figure 6's unit, from DiffuSpec and from the 7B "
            "drafter", source="Figure 6 (speedups: table)", evidence=evidence, theirs=unit["sps"],
            ours=unit["own"], tolerance=COST, solved="two columns against each other",
        ),
        judged(
            "diffuspec", "mean", "mean speedup over the six tasks", source="Spec-Bench table",
            evidence=evidence, theirs=own["speedup"], ours=float(np.mean(row["speedups"])),
            tolerance=0.015, unit="x",
        ),
        judged(
            "diffuspec", "search-share", "path search's share of a step", source="Figure 6",
            evidence=evidence, theirs=row["search_share"], ours=share, tolerance=0.002, unit="%",
            absolute=True, reason="the label .03 is rounded: .025 to .035 is 0.7 to 0.9 %",
        ),
        *(
            judged(
                "diffuspec", f"ablation-{name}", f"speedup with {text}, from the length alone",
                source="ablation", evidence=evidence, theirs=parts[name]["speedup"],
                ours=base["speedup"] * parts[name]["mat"] / base["mat"], tolerance=COST, unit="x",
                solved="the row with neither", reason="the parts themselves cost what is missing",
            )
            for name, text in (
                ("search", "path search"), ("adaptive", "adaptive length"), ("both", "both"),
            )
        ),
        judged(
            "diffuspec", "ten-steps", "speedup with ten denoise steps, each as long as the one",
            source="ablation of steps (costs: Figure 6)", evidence=evidence,
            theirs=row["ten_steps"]["speedup"], ours=row["ten_steps"]["mat"] * unit["own"] / ten,
            tolerance=STEP, unit="x",
            reason="part of the drafting time doesn't repeat with the steps: solved, "
            f"{_repeating(row, unit['own']):.2f} of {steps['draft']} would",
        ),
        judged(
            "diffuspec", "third-party", "third-party speedup from its two rates",
            source="pluto0x0/DiffuSpec, 10 GSM8K samples", evidence=rate["evidence"],
            theirs=rate["speedup"], ours=rate["tok_s"] / rate["ar_tok_s"], tolerance=0.005,
            unit="x", reason=f"acceptance length {rate['mat']} there, {own['mat']} in the paper",
        ),
    ]  # fmt: skip


def _repeating(row: dict[str, Any], unit: float) -> float:
    """Return the drafting time that nine more denoise steps must each have cost."""
    parts, ten = row["parts"]["own"], row["ten_steps"]
    return float((ten["mat"] * unit / ten["speedup"] - sum(parts.values())) / 9.0)


def specdiff2(quick: bool) -> list[Claim]:
    """SpecDiff-2: tokens/s from the step's own account."""
    row = published()["specdiff-2"]
    source, evidence = "code_stats.json", row["evidence"]
    per_step = row["tokens"] / row["steps"]
    return [
        judged(
            "specdiff-2", "per-step", "tokens a step", source=source, evidence=evidence,
            theirs=row["per_step"], ours=per_step, tolerance=0.01,
        ),
        judged(
            "specdiff-2", "tok-s", "tokens/s from tokens a step and the step's four parts (upper "
            "end of the published)", source=source, evidence=evidence, theirs=row["tok_s"][1],
            ours=1000 * per_step / sum(row["step_ms"].values()), tolerance=COST, asked=True,
            reason=f"published: {row['tok_s'][0]:g} to {row['tok_s'][1]:g}",
        ),
        *not_computed("specdiff-2"),
    ]  # fmt: skip


def poe_bridge(quick: bool) -> list[Claim]:
    """PoE-Bridge: does a step take the same whatever the weight?"""
    row = published()["poe-bridge"]
    low, high = row["sweep"]
    step_s = low["accepted"] / low["tok_s"]
    rates = [
        float(alpha_from_acceptance_length(r["accepted"], row["window"] - 1)) for r in (low, high)
    ]
    return [
        judged(
            "poe-bridge", "step", f"tokens/s at w={high['weight']} from the step time at w=0",
            source=row["source"], evidence=row["evidence"], theirs=high["tok_s"],
            ours=high["accepted"] / step_s, tolerance=STEP, solved="step time at w=0",
            reason=f"a step of {1000 * step_s:.0f} ms; in a window of {row['window']} the lengths "
            f"stand for alpha {rates[0]:.2f} and {rates[1]:.2f}",
        ),
        *not_computed("poe-bridge"),
    ]  # fmt: skip
