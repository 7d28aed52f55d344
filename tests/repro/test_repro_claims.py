"""The rule that turns two numbers into a verdict, and the page that shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repro import report
from repro.claims import VERDICTS, Claim, judged, missing


def one(**changes: Any) -> Claim:
    values: dict[str, Any] = {
        "source": "Table 9", "evidence": "P", "theirs": 2.0, "ours": 2.1, "tolerance": 0.06,
    }  # fmt: skip
    return judged("made-up", "a", "a claim | with a bar", **(values | changes))


@pytest.mark.parametrize(
    "ours, verdict",
    [(2.1, "reproduced"), (1.9, "reproduced"), (2.2, "partly"), (1.78, "partly"), (2.3, "not")],
)
def test_verdict_by_deviation(ours: float, verdict: str) -> None:
    claim = one(ours=ours)
    assert claim.verdict == verdict
    assert claim.deviation == pytest.approx(ours / 2.0 - 1.0)
    assert claim.holds == (verdict == "reproduced")


def test_a_narrower_tolerance_breaks_a_claim() -> None:
    assert one(tolerance=0.04).verdict == "partly"
    assert one(tolerance=0.02).verdict == "not"
    assert one(tolerance=0.0).reason


def test_absolute_deviations_are_differences() -> None:
    claim = one(theirs=0.0, ours=0.05, tolerance=0.1, absolute=True)
    assert (claim.deviation, claim.verdict) == (0.05, "reproduced")


def test_what_was_solved_is_never_reproduced() -> None:
    solved = one(solved="this row")
    assert solved.verdict == "consistent"
    assert solved.holds
    with pytest.raises(ValueError, match="at best consistent"):
        replace(solved, verdict="reproduced")
    with pytest.raises(ValueError, match="no input is named as solved"):
        replace(one(), verdict="consistent")
    assert one(solved="this row", ours=2.2).verdict == "partly"


def test_what_is_assumed_is_never_reproduced() -> None:
    assumed = one(assumed="the GPU")
    assert assumed.verdict == "consistent"
    assert assumed.holds
    with pytest.raises(ValueError, match="assumed the GPU, so at best consistent"):
        replace(assumed, verdict="reproduced")
    page = report.markdown([replace(assumed, solved="alpha")])
    assert "consistent (solved: alpha; assumed: the GPU)" in page


def test_refusals() -> None:
    with pytest.raises(ValueError, match="without a reason"):
        replace(one(), verdict="not", reason="")
    with pytest.raises(ValueError, match="expected one of"):
        replace(one(), verdict="perhaps")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="evidence 'Q'"):
        one(evidence="Q")
    with pytest.raises(ValueError, match="evidence ''"):
        one(evidence="")


def some() -> list[Claim]:
    return [
        one(interval=(2.05, 2.15), asked=True, unit="x"),
        judged("made-up", "b", "a share", source="blog", evidence="N", theirs=0.1, ours=0.3,
               tolerance=0.2, unit="%", reason="because"),
        missing("other", "c", "a lost one", source="Table 2", evidence="P", reason="not found"),
    ]  # fmt: skip


def test_the_page_shows_everything_and_is_the_same_every_time() -> None:
    page = report.markdown(some())
    assert page == report.markdown(some())
    assert page.endswith("\n")
    assert (
        "| a claim \\| with a bar* | Table 9 [P] | 2 x | 2.1 x (2.05 to 2.15) | +5.0 % | 6.0 % | "
        "reproduced |  | `python -m repro.report --only made-up-a` |"
    ) in page
    assert "| blog [N] weak | 10.0 % | 30.0 % | +200.0 % | 20.0 % | not | because |" in page
    assert "| Table 2 [P] | - | - | - | - | not | not found |" in page
    assert "In all 3: 1 reproduced, 0 consistent, 0 partly, 2 not." in page
    assert page.index("## made-up") < page.index("## other")
    assert all(f"**{verdict}**" in page for verdict in VERDICTS)


def run(monkeypatch: Any, claims: list[Claim], *arguments: Any) -> int:
    calls: list[bool] = []

    def compute(quick: bool) -> list[Claim]:
        calls.append(quick)
        return claims

    monkeypatch.setattr(report, "METHODS", {"made-up": compute})
    code = report.main([str(a) for a in arguments])
    assert calls
    return code


def test_exit_status_depends_on_what_is_asked_for(
    monkeypatch: Any, capsys: Any, tmp_path: Any
) -> None:
    claims = some()[:2]
    page = tmp_path / "page.md"
    assert run(monkeypatch, claims, "--output", page) == 0
    assert page.read_text("utf-8") == report.markdown(claims)
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]
    broken = [one(tolerance=0.01, asked=True), claims[1]]
    assert run(monkeypatch, broken) == 1
    assert "missed: made-up-a" in capsys.readouterr().out


def test_only_takes_methods_and_beginnings_of_ids(monkeypatch: Any, capsys: Any) -> None:
    assert run(monkeypatch, some()[:2], "--only", "made-up-b") == 0
    out = capsys.readouterr().out
    assert "made-up-b" in out
    assert "made-up-a" not in out
    with pytest.raises(SystemExit):
        report.main(["--only", "nonsense"])
    with pytest.raises(SystemExit):
        report.main(["--only", "made-up", "--output", "page.md"])


def test_methods_are_told_apart(monkeypatch: Any) -> None:
    calls: list[str] = []

    def computer(name: str) -> Any:
        def compute(quick: bool) -> list[Claim]:
            calls.append(name)
            return [judged(name, "x", "t", source="s", evidence="P", theirs=1.0, ours=1.0,
                           tolerance=0.1)]  # fmt: skip

        return compute

    monkeypatch.setattr(report, "METHODS", {n: computer(n) for n in ("pearl", "nano-pearl")})
    assert [c.id for c in report.collect("pearl")] == ["pearl-x"]
    assert [c.id for c in report.collect("nano-pearl-x")] == ["nano-pearl-x"]
    assert calls == ["pearl", "nano-pearl"]
    assert len(report.collect()) == 2
