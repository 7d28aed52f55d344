"""Names, knobs and stacks of methods; every registered one keeps its promises."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

import psdsim.methods
from psdsim import Scenario
from psdsim.cli.main import main
from psdsim.errors import InputError
from psdsim.methods import METHODS, Knob, Method, Parts, method
from psdsim.run.prepare import prepare
from psdsim.schedules import SCHEDULES
from psdsim.schedules.serial import SpeculativeDecoding


class Twice(Method):
    """A test method: the scenario's alpha becomes the knob's."""

    name = "twice"
    paper = "none"
    summary = "a test"
    parts = Parts(schedule="sd")
    schedule = SpeculativeDecoding
    closed_form = "sd"
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("alpha", 0.5, 0.0, 1.0, "acceptance", "assumed"),
        Knob("n", 2, 1, 4, "a count", "assumed", whole=True),
    )

    def adapt(self, scenario: Scenario, k: int) -> Scenario:
        return scenario.set({"acceptance": {"kind": "iid", "alpha": self["alpha"]}})

    def notes(self, scenario: Scenario, k: int) -> list[str]:
        return [f"ASSUMED twice: alpha {self['alpha']:g}"]


class Top(Twice):
    """The same, on top of others."""

    name = "top"
    stacks = True


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Any:
    for cls in (Twice, Top):
        monkeypatch.setitem(psdsim.methods.METHODS, cls.name, cls)
    method.cache_clear()
    yield
    method.cache_clear()


def test_every_schedule_is_a_method() -> None:
    assert set(SCHEDULES) <= set(METHODS)
    for name, cls in SCHEDULES.items():
        assert method(name).schedule is cls
        assert method(name).closed_form == name


def test_knobs_are_read() -> None:
    assert method("twice")["alpha"] == 0.5
    mine = method("twice:alpha=0.25:n=3")
    assert (mine["alpha"], mine.count("n"), mine.stated) == (0.25, 3, {"alpha", "n"})


@pytest.mark.parametrize(
    "spec, words",
    [
        ("twise", "did you mean 'twice'"),
        ("twice:alhpa=1", "did you mean 'alpha'"),
        ("twice:alpha=2", "a number from 0 to 1"),
        ("twice:alpha=nan", "a number from 0 to 1"),
        ("twice:n=1.5", "a whole number from 1 to 4"),
        ("twice:n=x", "a whole number from 1 to 4"),
        ("twice:alpha", "name=value"),
        ("twice:alpha=0.1:alpha=0.2", "each once"),
        ("twice+sd", "can't be put on top"),
        ("twice+tpo", "did you mean 'top'"),
        ("minedraft:k=3", "it has none"),
        ("", "no schedule or method"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(spec: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        method(spec)
    assert words in str(caught.value)


def test_what_is_on_top_changes_what_the_one_below_has() -> None:
    scenario = Scenario.builtin()
    both = method("twice:alpha=0.2+top:alpha=0.9")
    adapted = both.adapt(scenario, 3)
    assert adapted.acceptance is not None
    assert adapted.acceptance.alpha == 0.9  # type: ignore[union-attr]
    assert both.notes(scenario, 3) == ["ASSUMED twice: alpha 0.2", "ASSUMED twice: alpha 0.9"]
    assert both.closed_form == "sd"
    assert prepare(scenario, "pearl+top:alpha=0.9", 3).acceptance == adapted.acceptance


def test_compare_runs_methods_with_theory_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--set", "workload.n_requests=16", "--set", "workload.output_tokens=32"]
    asked = ["--methods", "sd,twice:alpha=0.9", "--k", "3", "--format", "json"]
    assert main(["compare", *small, *asked, "--replications", "1"]) == 0
    shown = json.loads(capsys.readouterr().out)
    sd, mine = shown["rows"]
    assert mine["schedule"] == "twice:alpha=0.9"
    assert mine["output_throughput"] > sd["output_throughput"]
    assert mine["theory_output_throughput"] > sd["theory_output_throughput"]
    assert "ASSUMED twice: alpha 0.9" in shown["notes"]
    assert mine["lossless"] is True


def test_schedules_and_methods_are_one_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--schedules", "ar", "--methods", "sd"]) == 2
    assert "both --schedules and --methods" in capsys.readouterr().err


def test_methods_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name}" in f"\n{listed}" for name in METHODS)
    assert main(["methods", "twice"]) == 0
    told = capsys.readouterr().out
    assert "alpha=0.5" in told
    assert "[0 to 1; assumed]" in told
    assert main(["methods", "--format", "json"]) == 0
    assert {one["name"] for one in json.loads(capsys.readouterr().out)} == set(METHODS)
    assert main(["methods", "twise"]) == 2
    assert "did you mean 'twice'" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_says_what_it_is(name: str) -> None:
    cls = METHODS[name]
    assert cls.paper
    assert cls.summary
    assert isinstance(cls.parts, Parts)
    for knob in cls.knobs:
        assert knob.low <= knob.default <= knob.high, knob.name
        assert knob.meaning
        assert knob.source


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_runs_on_the_built_in_scenario(name: str) -> None:
    from psdsim import simulate

    small = Scenario.builtin(
        {"workload.n_requests": 12, "workload.output_tokens": 24, "engine.max_num_seqs": 4}
    )
    result = simulate(small, name, 4)
    t = result.raw.tally
    assert t.n_drafted == t.n_verified + t.n_dropped + t.n_discarded
    assert t.n_emitted == 12 * 24
    assert all(note.startswith("ASSUMED") or note for note in method(name).notes(small, 4))
