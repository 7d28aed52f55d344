"""One published claim beside our number, and the rule that turns the two into a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Verdict = Literal["reproduced", "consistent", "partly", "not"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
EVIDENCE = {
    "P": "read in the paper's full text",
    "C": "read in the public code",
    "A": "abstract, project page or README",
    "N": "third-party note (weak)",
    "X": "read off a plot (weak)",
    "D": "derived from published figures, not itself published",
}
WEAK = frozenset("NX")
PARTLY = 2.0
"""A deviation of up to this many tolerances is "partly"."""


@dataclass(frozen=True)
class Claim:
    """A published claim and what became of it.

    `deviation` is relative (ours / theirs - 1), or ours - theirs where `absolute`. `solved` names
    the input that was solved from this claim or from its neighbours in the same column, `assumed`
    the inputs that no source states; such a claim can be consistent, never reproduced. `asked`
    marks what the command's exit status depends on; the rest is reported.
    """

    id: str
    method: str
    text: str
    source: str
    evidence: str
    theirs: float | None
    ours: float | None
    interval: tuple[float, float] | None
    deviation: float | None
    tolerance: float | None
    verdict: Verdict
    reason: str
    command: str
    unit: str = ""
    absolute: bool = False
    solved: str = ""
    asked: bool = False
    assumed: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"{self.id}: verdict {self.verdict!r}, expected one of {VERDICTS}")
        if self.solved and self.verdict == "reproduced":
            raise ValueError(f"{self.id}: solved from {self.solved}, so at best consistent")
        if self.assumed and self.verdict == "reproduced":
            raise ValueError(f"{self.id}: assumed {self.assumed}, so at best consistent")
        if self.verdict == "consistent" and not (self.solved or self.assumed):
            raise ValueError(f"{self.id}: consistent, but no input is named as solved")
        if self.verdict in ("partly", "not") and not self.reason:
            raise ValueError(f"{self.id}: verdict {self.verdict!r} without a reason")
        if not self.evidence or not set(self.evidence) <= set(EVIDENCE):
            raise ValueError(f"{self.id}: evidence {self.evidence!r}, expected {list(EVIDENCE)}")

    @property
    def holds(self) -> bool:
        """Whether the claim is met within its tolerance."""
        return self.verdict in ("reproduced", "consistent")

    @property
    def weak(self) -> bool:
        """Whether the source itself is weak."""
        return bool(set(self.evidence) & WEAK)


def command_for(name: str) -> str:
    """Return the command that computes the claims whose ids start like this."""
    return f"python -m repro.report --only {name}"


def judged(
    method: str,
    name: str,
    text: str,
    *,
    source: str,
    evidence: str,
    theirs: float,
    ours: float,
    tolerance: float,
    interval: tuple[float, float] | None = None,
    unit: str = "",
    absolute: bool = False,
    solved: str = "",
    asked: bool = False,
    reason: str = "",
    assumed: str = "",
) -> Claim:
    """Return the claim with its deviation and its verdict."""
    deviation = ours - theirs if absolute else ours / theirs - 1.0
    verdict: Verdict
    if abs(deviation) <= tolerance:
        verdict = "consistent" if solved or assumed else "reproduced"
    else:
        verdict = "partly" if abs(deviation) <= PARTLY * tolerance else "not"
        reason = reason or "outside the tolerance; no reason known"
    full = f"{method}-{name}"
    return Claim(
        full, method, text, source, evidence, theirs, ours, interval, deviation, tolerance,
        verdict, reason, command_for(full), unit, absolute, solved, asked, assumed,
    )  # fmt: skip


def missing(
    method: str,
    name: str,
    text: str,
    *,
    source: str,
    evidence: str,
    reason: str,
    theirs: float | None = None,
    unit: str = "",
) -> Claim:
    """Return a claim that can't be computed: verdict "not", with the reason."""
    full = f"{method}-{name}"
    return Claim(
        full, method, text, source, evidence, theirs, None, None, None, None, "not", reason,
        command_for(full), unit,
    )  # fmt: skip
