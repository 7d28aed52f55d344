"""`python -m repro.report`: every claim with the paper's value, ours, the deviation, a verdict."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from psdsim.cli.tables import aligned
from repro import card, dspark, minedraft, nano_pearl, pearl, seeds
from repro.claims import EVIDENCE, VERDICTS, Claim

METHODS: dict[str, Callable[[bool], list[Claim]]] = {
    minedraft.METHOD: minedraft.claims,
    pearl.METHOD: pearl.claims,
    nano_pearl.METHOD: nano_pearl.claims,
    dspark.METHOD: dspark.claims,
    card.METHOD: card.claims,
    **seeds.SYSTEMS,
}
"""What computes the claims of each method; their ids start with its name."""

TITLES = {
    "pearl": "PEARL (arXiv 2408.11850)",
    "nano-pearl": "nano-PEARL (public code)",
    "minedraft": "MineDraft (arXiv 2603.18016)",
    "dspark": "DSpark (arXiv 2607.05147)",
    "card": "CARD (arXiv 2508.04462)",
    "dsi": "DSI (arXiv 2405.14105)",
    "peft-bd": "PEFT-BD (arXiv 2607.12422)",
    "diffuspec": "DiffuSpec (arXiv 2510.02358)",
    "specdiff-2": "SpecDiff-2 (arXiv 2511.00606)",
    "poe-bridge": "PoE-Bridge (arXiv 2606.08048)",
    "diversed": "DIVERSED (arXiv 2604.07622)",
    "tabed": "TABED (arXiv 2601.20357)",
    "distillspec": "DistillSpec (arXiv 2310.08461)",
    "pacer": "PACER (arXiv 2602.01274)",
    "reflective": "Reflective Verification (arXiv 2505.18629)",
}
MEANING = {
    "reproduced": "within the stated tolerance of the published figure",
    "consistent": "within it, but an input was solved from this claim or its neighbours, or no "
    "source states it (assumed)",
    "partly": "within twice the tolerance",
    "not": "outside, or not computable; the note says why",
}


def collect(only: str | None = None, quick: bool = False) -> list[Claim]:
    """Return the claims whose ids start with `only` (None: all)."""
    found: list[Claim] = []
    for name, compute in METHODS.items():
        if only is None or f"{name}-".startswith(only) or only.startswith(f"{name}-"):
            found += [c for c in compute(quick) if only is None or _chosen(c, name, only)]
    return found


def _chosen(claim: Claim, method: str, only: str) -> bool:
    return only == method or claim.id == only or claim.id.startswith(only)


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "%":
        return f"{100 * value:.1f} %"
    size = abs(value)
    text = f"{value:.0f}" if size >= 1000 or value == round(value) else f"{value:.4g}"
    return f"{text} {unit}".rstrip()


def _ours(claim: Claim) -> str:
    if claim.interval is None:
        return _number(claim.ours, claim.unit)
    low, high = (_number(x, "" if claim.unit != "%" else "%") for x in claim.interval)
    return f"{_number(claim.ours, claim.unit)} ({low} to {high})"


def _percent(value: float | None, absolute: bool, unit: str) -> str:
    if value is None:
        return "-"
    if absolute and unit != "%":
        return f"{value:+.4g}"
    return f"{100 * value:+.1f} {'points' if absolute else '%'}"


def _tolerance(claim: Claim) -> str:
    return _percent(claim.tolerance, claim.absolute, claim.unit).lstrip("+")


def _verdict(claim: Claim) -> str:
    inputs = [f"{how}: {what}" for how, what in (("solved", claim.solved),
                                                ("assumed", claim.assumed)) if what]  # fmt: skip
    return f"{claim.verdict} ({'; '.join(inputs)})" if inputs else claim.verdict


def table(claims: Sequence[Claim]) -> str:
    """Return the claims as text for a terminal."""
    head = ["claim", "evidence", "paper", "ours (95 %)", "deviation", "verdict"]
    rows = [
        [c.id + ("*" if c.asked else ""), f"[{c.evidence}]", _number(c.theirs, c.unit), _ours(c),
         _percent(c.deviation, c.absolute, c.unit), c.verdict]
        for c in claims
    ]  # fmt: skip
    return aligned(head, rows)


def counts(claims: Sequence[Claim]) -> str:
    """Return how many claims got which verdict."""
    return ", ".join(f"{sum(c.verdict == v for c in claims)} {v}" for v in VERDICTS)


def markdown(claims: Sequence[Claim]) -> str:
    """Return the claims as a page; the same claims give the same bytes."""
    lines = [
        "# Published figures and ours",
        "",
        "Written by `python -m repro.report --output paper_repro.md`: all of our numbers are "
        "computed, none typed. Published figures are in `repro/data/`, with their sources.",
        "",
        *(f"- **{name}**: {text}" for name, text in MEANING.items()),
        "",
        "Claims with an asterisk decide the command's exit status; the rest is reported. Brackets "
        "hold 95 % intervals of the simulation; no bracket: a formula.",
        "",
        "Evidence: " + "; ".join(f"[{k}] {v}" for k, v in EVIDENCE.items()) + ".",
        "",
        f"In all {len(claims)}: {counts(claims)}.",
        "",
        "| | " + " | ".join(VERDICTS) + " |",
        "|---" * (len(VERDICTS) + 1) + "|",
    ]
    for method in dict.fromkeys(c.method for c in claims):
        part = [c for c in claims if c.method == method]
        cells = [str(sum(c.verdict == verdict for c in part)) for verdict in VERDICTS]
        lines.append(f"| {TITLES.get(method, method)} | " + " | ".join(cells) + " |")
    for method in dict.fromkeys(c.method for c in claims):
        part = [c for c in claims if c.method == method]
        lines += [
            "",
            f"## {TITLES.get(method, method)}",
            "",
            f"{len(part)}: {counts(part)}.",
            "",
            "| claim | source | paper | ours | deviation | tolerance | verdict | note | command |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        lines += ["| " + " | ".join(_cells(c)) + " |" for c in part]
    return "\n".join(lines) + "\n"


def _cells(claim: Claim) -> list[str]:
    weak = " weak" if claim.weak else ""
    cells = [
        claim.text + ("*" if claim.asked else ""),
        f"{claim.source} [{claim.evidence}]{weak}",
        _number(claim.theirs, claim.unit),
        _ours(claim),
        _percent(claim.deviation, claim.absolute, claim.unit),
        _tolerance(claim),
        _verdict(claim),
        claim.reason,
        f"`{claim.command}`",
    ]
    return [cell.replace("|", "\\|") for cell in cells]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, write the page; 1 if a claim that is asked for is not met."""
    parser = argparse.ArgumentParser(prog="python -m repro.report", description=__doc__)
    parser.add_argument("--only", help="a method, or how the ids of the claims begin")
    parser.add_argument("--output", type=Path, help="write the page (markdown) here")
    parser.add_argument("--quick", action="store_true", help="smaller simulations, to look at")
    options = parser.parse_args(arguments)
    if options.output is not None and (options.quick or options.only):
        parser.error("--output writes the whole page: leave out --quick and --only")
    claims = collect(options.only, options.quick)
    if not claims:
        parser.error(f"no claim begins with {options.only!r}; methods: {', '.join(METHODS)}")
    print(table(claims))
    missed = [c.id for c in claims if c.asked and not c.holds]
    print(f"\n{len(claims)} claims: {counts(claims)}; * asked for, {len(missed)} missed")
    for name in missed:
        print(f"missed: {name}")
    if options.output is not None:
        text = markdown(claims)
        partial = options.output.with_name(options.output.name + ".partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(options.output)
        print(f"written: {options.output}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
