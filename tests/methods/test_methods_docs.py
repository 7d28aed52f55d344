"""The page on methods: its example runs as it stands, its commands name methods that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import psdsim.methods
from psdsim import Scenario, simulate
from psdsim.methods import Method, method

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


def test_the_example_is_a_method_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(code, names)
    made = names["MyMethod"]
    assert issubclass(made, Method)
    monkeypatch.setitem(psdsim.methods.METHODS, made.name, made)
    method.cache_clear()
    small = Scenario.builtin(
        {"workload.n_requests": 8, "workload.output_tokens": 32, "engine.max_num_seqs": 4}
    )
    slow, quick = (simulate(small, f"mine:share={share}", 4) for share in (1.0, 0.1))
    assert quick.metrics["output_throughput"] > 1.5 * slow.metrics["output_throughput"]
    assert any(note.startswith("ASSUMED mine") for note in quick.notes)
    method.cache_clear()


@pytest.mark.parametrize("page", ["docs/methods.md", "README.md"])
def test_commands_name_what_there_is(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    asked = re.findall(r"--methods ([^\s`]+)", text)
    specs = [spec for names in asked for spec in names.split(",") if not spec.isupper()]
    specs += re.findall(r"`((?:[a-z0-9+-]+):[a-z_]+=[^`\s]+)`", text)
    specs = [spec for spec in specs if not re.match(r"[A-Z]|.*:KNOB", spec) and spec != "mine`"]
    assert specs
    for spec in specs:
        if spec.strip("`.") != "mine":
            method(spec)
