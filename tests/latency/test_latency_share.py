"""A share of another step time: affine, rooflines, tables, padding, jitter."""

from __future__ import annotations

import pytest

from psdsim import Scenario
from psdsim.latency import (
    AffineStepTime,
    ExponentialStepTime,
    Placement,
    RooflineStepTime,
    ShareStepTime,
    TableStepTime,
)

SHAPES = [(1, 1, 0), (4, 12, 900), (16, 400, 5000)]


@pytest.mark.parametrize(
    "whole",
    [
        AffineStepTime(base_s=0.5, per_token_s=0.125, per_kv_token_s=0.0625),
        AffineStepTime(base_s=0.5, per_token_s=0.125, cuda_graph_sizes=(8, 16)),
        RooflineStepTime(),
        TableStepTime(rows=((1, 1, 0, 1.0), (3, 1, 0, 2.0))),
    ],
    ids=lambda m: m.kind,
)
def test_it_is_the_share_of_every_pass(whole) -> None:
    placement = Scenario.builtin().target_placement
    part = ShareStepTime(share=0.25, of=whole).bind(placement)
    timer = whole.bind(placement)
    assert [part(*shape) for shape in SHAPES] == [0.25 * timer(*shape) for shape in SHAPES]
    assert part.notes == timer.notes


def test_it_has_the_jitter_of_the_other() -> None:
    part = ShareStepTime(share=0.5, of=ExponentialStepTime(mean_s=0.5)).bind(Placement())
    assert (part.jitter, part(1, 1, 0)) == ("exponential", 0.25)


def test_a_table_in_a_file_is_read(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("n_seqs,query_length,context,time_s\n1,1,0,0.5\n")
    read = ShareStepTime(share=0.5, of=TableStepTime(path="t.csv")).resolve(tmp_path)
    assert read.bind(Placement())(1, 1, 0) == 0.25
    assert read.resolve(tmp_path) is read


def test_a_scenario_keeps_it() -> None:
    time = {"kind": "share", "share": 0.5, "of": {"kind": "constant", "time_s": 0.25}}
    scenario = Scenario.builtin({"step_time.draft": time})
    assert Scenario.parse(scenario.to_dict()).step_time.draft == scenario.step_time.draft
    with pytest.raises(ValueError, match="share"):
        Scenario.builtin({"step_time.draft": time | {"share": -1.0}})
