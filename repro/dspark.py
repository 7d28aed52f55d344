"""DSpark: position profiles against acceptance lengths, appendix A, length sweep, head, budget."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from analysis import dspark, residual
from analysis.rounds import acceptance_length_position
from psdsim import Scenario
from psdsim.engine import simulate_run
from psdsim.run.prepare import prepare
from repro import dspark_budget
from repro.claims import Claim, judged, missing
from repro.play import SEED, Interval, ratio

METHOD = "dspark"
_claim = partial(judged, METHOD)
_missing = partial(missing, METHOD)
LENGTH, MACRO, SWEEP, HEAD = 0.015, 0.01, 0.05, 0.15
"""Tolerances: acceptance lengths, macro gains (points), the length sweep, head times (ms)."""
DRAFTERS = {"dspark": "DSpark", "dflash": "DFlash", "eagle3": "Eagle3"}
QUICK = 8


def published() -> dict[str, Any]:
    """Return `data/dspark.yaml`."""
    path = Path(__file__).parent / "data" / "dspark.yaml"
    data: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return data


def claims(quick: bool = False) -> list[Claim]:
    """Return every claim; `quick` simulates fewer requests."""
    data = published()
    return [
        *lengths(data, QUICK if quick else 512), *macro(data), *appendix(data), *sweep(data),
        *head(data), *thresholds(data), *dspark_budget.claims(data, quick),
        *(_missing(row["id"], row["text"], source=row["source"], evidence=row["evidence"],
                   reason=row["reason"]) for row in data["not_computed"]),
    ]  # fmt: skip


def simulated_length(rates: list[float], n_requests: int) -> tuple[float, Interval]:
    """Return tokens per target pass of chain drafts with these conditional rates."""
    k = len(rates)
    scenario = Scenario.builtin(
        {
            "acceptance": {"kind": "position", "convention": "conditional", "rates": rates},
            "workload": {
                "kind": "batch", "n_requests": n_requests, "prompt_tokens": 1,
                "output_tokens": 2001,
            },
            "engine": {"max_num_seqs": n_requests, "kv_blocks": "unlimited"},
            "assumed": {},
        }
    )  # fmt: skip
    columns = simulate_run(prepare(scenario, "sd", k, seed=SEED, record_steps=False)).requests
    rounds = columns["n_rounds"].astype(np.float64)
    # The stop clips the last round: what was accepted is counted, not what was asked for.
    return ratio(columns["n_accepted_tokens"].astype(np.float64) + rounds, rounds)


def lengths(data: dict[str, Any], n_requests: int) -> list[Claim]:
    """Figure 2 by the chain rule against the means of Table 1, and simulated."""
    table, profiles = data["table1"], data["figure2"]
    found = []
    for domain, columns in table["domains"].items():
        for key, name in DRAFTERS.items():
            theirs = float(np.mean([table["qwen3-4b"][key][i] for i in columns]))
            rates = profiles[domain][key]
            value, interval = simulated_length(rates, n_requests)
            found.append(
                _claim(
                    f"length-{domain}-{key}", f"acceptance length, {domain}, {name}, mean of three",
                    source="Table 1 (rates: Figure 2)",
                    evidence=table["evidence"] + profiles["evidence"], theirs=theirs, ours=value,
                    interval=interval, tolerance=LENGTH, asked=True,
                    reason=f"chain rule: {float(acceptance_length_position(rates)):.4g}",
                )
            )  # fmt: skip
    return found


def macro(data: dict[str, Any]) -> list[Claim]:
    """Macro gains over the other drafters: from Figure 2, and Table 1 against itself."""
    table, profiles = data["table1"], data["figure2"]
    means = {
        key: np.mean(
            [float(acceptance_length_position(profiles[d][key])) for d in table["domains"]]
        )
        for key in DRAFTERS
    }
    gains = table["macro_gain"]
    found = []
    for key in ("eagle3", "dflash"):
        found.append(
            _claim(
                f"macro-{key}", f"macro gain over {DRAFTERS[key]}, Qwen3-4B, from Figure 2's rates",
                source="text on Table 1 (rates: Figure 2)",
                evidence=gains["evidence"] + profiles["evidence"],
                theirs=gains["qwen3-4b"][key], ours=float(means["dspark"] / means[key]) - 1.0,
                tolerance=MACRO, unit="%", absolute=True,
            )
        )  # fmt: skip
        for target in ("qwen3-4b", "qwen3-8b"):
            rows = table[target]
            found.append(
                _claim(
                    f"macro-{key}-{target}-table", f"the same from Table 1's rows, {target}",
                    source="Table 1 against its text", evidence=table["evidence"],
                    theirs=gains[target][key],
                    ours=float(np.sum(rows["dspark"]) / np.sum(rows[key])) - 1.0,
                    tolerance=0.002, unit="%", absolute=True,
                )
            )  # fmt: skip
    return found


def appendix(data: dict[str, Any]) -> list[Claim]:
    """Appendix A: the greedy scheduler stops, and what comes out if it doesn't."""
    row = data["appendix_a"]
    speed, a = row["steps_per_s"], row["first"]
    exact = partial(_claim, source="Appendix A", evidence=row["evidence"], asked=True)
    q, p = row["draft"], row["target"]
    accept = residual.token_acceptance(p, q)
    # A high second confidence follows the first token, a low one the second.
    lens = [int(dspark.global_schedule([[a, a * c]], speed)[0]) for c in (1.0, 0.0)]
    stops = [int(dspark.prefix_schedule([[a, a * c]], speed)[0]) for c in (1.0, 0.0)]

    def first_token(lengths: list[int]) -> float:
        """P(token 1 comes out): where nothing is verified, the target samples by itself."""
        shares = [
            q[x] * (accept[x] * (x == 0) + (1 - accept[x]) * residual.residual_law(p, q)[0])
            if lengths[x] else q[x] * p[0]
            for x in (0, 1)
        ]  # fmt: skip
        return float(sum(shares))

    return [
        exact(
            "appendix-acceptance", "acceptance of the first draft", theirs=a,
            ours=float(residual.acceptance_probability(p, q)), tolerance=1e-9,
        ),
        *(
            exact(
                f"appendix-theta{n}", f"tokens/s with {n} drafts verified", theirs=row["theta"][n],
                ours=dspark.theta([n], [[a, a]], speed), tolerance=1e-9,
            )
            for n in (0, 1)
        ),
        exact(
            "appendix-stop", "drafts verified with early stop, whatever the second confidence",
            theirs=0.0, ours=float(max(stops)), tolerance=0.0, absolute=True,
        ),
        exact(
            "appendix-second", "second confidence above which verifying two would pay",
            theirs=row["second_above"], ours=float((1 / speed[2] - 1 - a) / a), tolerance=0.005,
            absolute=True,
        ),
        exact(
            "appendix-without-stop", "P(token 1) without early stop (target's own: 0.7)",
            theirs=row["without_stop"], ours=first_token(lens), tolerance=1e-9,
        ),
        exact(
            "appendix-with-stop", "P(token 1) with early stop", theirs=p[0],
            ours=first_token(stops), tolerance=1e-9,
        ),
    ]  # fmt: skip


def sweep(data: dict[str, Any]) -> list[Claim]:
    """Acceptance length at other blocks from the rates measured at one: the last is repeated."""
    row, profiles = data["figure4"], data["figure2"]
    found = []
    for domain in data["table1"]["domains"]:
        for key in ("dspark", "dflash"):
            rates = profiles[domain][key]
            for block, theirs in zip(row["blocks"], row[domain][key], strict=True):
                longer = np.concatenate([rates, np.full(max(0, block - 1 - len(rates)), rates[-1])])
                found.append(
                    _claim(
                        f"sweep-{domain}-{key}-{block}",
                        f"acceptance length at block {block}, {domain}, {DRAFTERS[key]}",
                        source="Figure 4 (rates: Figure 2)", evidence=row["evidence"],
                        theirs=theirs, ours=float(acceptance_length_position(longer[: block - 1])),
                        tolerance=SWEEP, asked=block == 8,
                        reason="" if block == 8 else "rates of the block of 8, the last repeated: "
                        "a drafter trained for another block has other rates",
                    )
                )  # fmt: skip
    return found


def head(data: dict[str, Any]) -> list[Claim]:
    """The sequential head: its time is proportional to the drafts; its share of a round."""
    row = data["figure4"]
    times = {key: np.array(row["latency_ms"][key]) for key in ("dspark", "dflash")}
    own = times["dspark"] - times["dflash"]
    drafts = np.array(row["blocks"]) - 1
    each = own[-1] / drafts[-1]
    found = [
        _claim(
            f"head-{block}", f"head's time in a round of block {block}, from block 16's",
            source="Figure 4", evidence=row["evidence"], theirs=float(theirs),
            ours=float(each * n), tolerance=HEAD, absolute=True, unit="ms",
            solved=f"{each:.3f} ms a draft, block 16",
        )
        for block, n, theirs in zip(row["blocks"][:-1], drafts, own, strict=False)
    ]  # fmt: skip
    for i, which in ((0, "smallest"), (-1, "largest")):
        found.append(
            _claim(
                f"head-share-{which}", f"{which} share of the head in a round", source="Figure 4",
                evidence=row["evidence"], theirs=row["head_share"][i],
                ours=float(own[i] / times["dspark"][i]), tolerance=0.0005, unit="%", absolute=True,
            )
        )  # fmt: skip
    return found


def thresholds(data: dict[str, Any]) -> list[Claim]:
    """Where nothing is filtered, accepted / verified is (acceptance length - 1) / k."""
    found = []
    for domain in data["table1"]["domains"]:
        low, high = data["figure5"][domain]
        rates = data["figure2"][domain]["dspark"]
        found.append(
            _claim(
                f"threshold-{domain}", f"accepted / verified at the lowest threshold, {domain}",
                source="Figure 5 (rates: Figure 2)", evidence="PX", theirs=low,
                ours=(float(acceptance_length_position(rates)) - 1.0) / len(rates), tolerance=0.05,
                unit="%", absolute=True,
                reason=f"ours verifies all {len(rates)} drafts; which the lowest threshold of the "
                f"sweep is was not found (its highest gives {high:.1%})",
            )
        )  # fmt: skip
    return found
