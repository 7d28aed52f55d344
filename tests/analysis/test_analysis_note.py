"""Every place that docstrings cite in the theory note exists there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CITED = re.compile(r"(?:theory )?note ((?:\d+)(?:\.\d+)+[a-z]?)")


def test_cited_sections_exist():
    note = (ROOT / "docs" / "theory-note.md").read_text()
    stated = set(re.findall(r"\*\*(\d[\d.]*[a-z]?)\*\*", note))
    cited = {
        (path.name, number)
        for path in [*(ROOT / "analysis").glob("*.py"), *(ROOT / "psdsim").rglob("*.py")]
        for number in CITED.findall(path.read_text())
    }
    assert len(cited) > 20
    missing = sorted((name, n) for name, n in cited if n not in stated)
    assert not missing
