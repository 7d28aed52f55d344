"""Claims of systems around MineDraft that need formulas alone, a function each; CARD is apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from analysis import dsi as dsi_theory
from analysis import sd
from analysis.relaxed import relaxed_alpha
from analysis.rounds import acceptance_length_iid
from analysis.rounds_rates import (
    acceptance_rate_iid,
    alpha_from_acceptance_length,
    alpha_from_acceptance_rate,
)
from repro.claims import Claim, judged
from repro.seeds_blocks import diffuspec, peft_bd, poe_bridge, specdiff2
from repro.seeds_inputs import not_computed, published

POINT = 0.016
"""Tolerance of acceptances read off a plot."""


def diversed(quick: bool) -> list[Claim]:
    """DIVERSED: acceptance is linear in the target's weight; it isn't a chain's accepted share."""
    row = published()["diversed"]
    source, evidence = "plot of acceptance against w", row["evidence"]
    found = [
        judged(
            "diversed", f"linear-{n}", f"acceptance at w=0.5 from that at w=1, {n} drafts",
            source=source, evidence=evidence, theirs=point["half"],
            ours=float(relaxed_alpha(point["whole"], 0.5)), tolerance=POINT, unit="%",
            absolute=True, asked=n == 3, solved="the same row at w=1",
        )
        for n, point in row["plot"].items()
    ]  # fmt: skip
    n = min(row["plot"])
    alpha = float(alpha_from_acceptance_rate(row["plot"][n]["whole"], n))
    far = max(row["plot"])
    return [
        *found,
        judged(
            "diversed", "decay", f"accepted / drafted at {far} drafts, constant alpha from {n}",
            source=source, evidence=evidence, theirs=row["plot"][far]["whole"],
            ours=float(acceptance_rate_iid(alpha, far)), tolerance=0.05, unit="%", absolute=True,
            reason=f"alpha = {alpha:.3f} would fall much further: what is plotted isn't accepted / "
            "drafted, or positions differ the other way",
        ),
        *not_computed("diversed"),
    ]  # fmt: skip


def tabed(quick: bool) -> list[Claim]:
    """TABED: as good as the best single variant, wherever that is."""
    row = published()["tabed"]
    source, evidence, k = row["source"], row["evidence"], row["k"]
    tables = {"first turn": row["first"], "second turn": row["second"], **row["out_of_domain"]}
    found = []
    for name, one in tables.items():
        best = max(one["M"], one["T"])
        alphas = alpha_from_acceptance_length([one["TABED"], best, min(one["M"], one["T"])], k)
        found.append(
            judged(
                "tabed", f"best-{name.split()[0].lower()}",
                f"block efficiency if the best single variant is followed, {name}",
                source=source, evidence=evidence, theirs=one["TABED"], ours=best, tolerance=0.05,
                asked=True,
                reason="alpha {:.3f}; best variant {:.3f}, worst {:.3f}".format(*alphas),
            )
        )  # fmt: skip
    return [
        *found,
        judged(
            "tabed", "mean", "first turn: mean of the seven sets", source=source, evidence=evidence,
            theirs=row["first"]["TABED"], ours=float(np.mean(row["first_sets"])), tolerance=0.005,
        ),
        judged(
            "tabed", "alpha", f"alpha at k={k} from the first turn's efficiency",
            source="recomputation", evidence=row["alpha"]["evidence"],
            theirs=row["alpha"]["value"],
            ours=float(alpha_from_acceptance_length(row["first"]["TABED"], k)), tolerance=0.005,
        ),
        *not_computed("tabed"),
    ]  # fmt: skip


def distillspec(quick: bool) -> list[Claim]:
    """DistillSpec: what its formula makes of a measured gain in acceptance."""
    row = published()["distillspec"]
    xsum, project = row["xsum"], row["project"]
    tokens = [float(acceptance_length_iid(project[x], project["k"])) for x in ("before", "after")]
    return [
        judged(
            "distillspec", "xsum", "latency cut on XSum, distilled target", source="notes",
            evidence=xsum["evidence"], theirs=xsum["cut"], ours=xsum["before"] / xsum["after"],
            tolerance=0.01, unit="x",
        ),
        judged(
            "distillspec", "gain", "gain of speed over plain SD (least of the published range), "
            f"from the student project's alpha at k={project['k']}", source="notes; project report",
            evidence=row["gain"]["evidence"] + project["evidence"], theirs=row["gain"]["low"],
            ours=tokens[1] / tokens[0] - 1.0, tolerance=0.02, unit="%", absolute=True,
            assumed="another pair than the paper's; its token acceptance taken as alpha",
            reason=f"published: {row['gain']['low']:.0%} to {row['gain']['high']:.0%}; cost ratio "
            "and hardware were not found and cancel, as drafting costs the same",
        ),
    ]  # fmt: skip


def dsi(quick: bool) -> list[Claim]:
    """DSI: servers, lookahead, parallelism; and Table 2, which its own formula doesn't give."""
    row = published()["dsi"]
    evidence, servers, par = row["evidence"], row["servers"], row["parallelism"]
    table = row["table2"]
    gains = []
    for target_ms, draft_ms, alpha in table["rows"]:
        c = draft_ms / target_ms
        serial = max(float(sd.speedup(alpha, k, c)) for k in table["lookaheads"])
        gains.append(float(dsi_theory.speedup_limit(alpha, draft_ms, target_ms)) / serial)
    return [
        judged(
            "dsi", "servers", f"target servers at lookahead {servers['lookahead']}, draft 5 %",
            source="Eq. 1 and example", evidence=evidence, theirs=servers["value"],
            ours=float(dsi_theory.servers_needed(servers["draft"], 1.0, servers["lookahead"])),
            tolerance=0.0, absolute=True, asked=True,
        ),
        *(
            judged(
                "dsi", f"lookahead-{one['servers']}",
                f"least lookahead with {one['servers']} servers, draft 5 %",
                source="Eq. 1 and example", evidence=evidence, theirs=one["value"],
                ours=float(dsi_theory.least_lookahead(one["draft"], 1.0, one["servers"])),
                tolerance=0.0, absolute=True, asked=True,
            )
            for one in row["lookaheads"]
        ),
        judged(
            "dsi", "parallelism", f"tensor-parallel speedup that matches, alpha {par['match']}, "
            f"lookahead {par['lookahead']}", source="text", evidence=evidence, theirs=par["value"],
            ours=float(dsi_theory.parallelism_to_match(par["match"], par["lookahead"])),
            tolerance=0.002, asked=True,
        ),
        *(
            judged(
                "dsi", f"table2-{name}", f"{name} gain over SI at its best lookahead, long outputs",
                source="Table 2", evidence=evidence, theirs=table[end], ours=value, tolerance=0.1,
                unit="x",
                reason="their figures are a thread pool's, 50 tokens and the first token's time "
                "included, lookahead 1, 5 or 10",
            )
            for name, end, value in (("least", "low", min(gains)), ("largest", "high", max(gains)))
        ),
    ]  # fmt: skip


SYSTEMS: dict[str, Callable[[bool], list[Claim]]] = {
    "dsi": dsi,
    "peft-bd": peft_bd,
    "diffuspec": diffuspec,
    "specdiff-2": specdiff2,
    "poe-bridge": poe_bridge,
    "diversed": diversed,
    "tabed": tabed,
    "distillspec": distillspec,
    "pacer": lambda quick: not_computed("pacer"),
    "reflective": lambda quick: not_computed("reflective"),
}
"""What computes the claims of each system; their ids start with its name."""


def claims(quick: bool = False) -> list[Claim]:
    """Return every system's claims."""
    return [c for compute in SYSTEMS.values() for c in compute(quick)]
