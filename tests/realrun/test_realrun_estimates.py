"""What `Look` shows of a real run: running medians of measured passes, interpolated."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

pytest.importorskip("torch")

from realrun_kit import LoggedDrafter, LoggedTarget, execute, make_job

from psdsim.commands import Look
from psdsim.errors import InputError
from psdsim.schedules.serial import SpeculativeDecoding
from realrun.executor.estimates import Curve, Estimates


def test_a_shape_is_the_median_of_its_latest_passes() -> None:
    curve = Curve()
    for seconds in (9.0, 1.0, 2.0):
        curve.add(2, 6, seconds)
    assert curve.at(2, 6) == 2.0
    for _ in range(32):
        curve.add(2, 6, 4.0)
    curve.add(2, 6, 100.0)
    assert curve.at(2, 6) == 4.0


def test_between_shapes_it_is_interpolated() -> None:
    curve = Curve()
    for n_seqs, size, seconds in ((2, 2, 1.0), (2, 10, 3.0), (4, 4, 7.0), (8, 4, 9.0)):
        curve.add(n_seqs, size, seconds)
    # By size, among those with as many requests; beyond the ends, the nearest.
    assert [curve.at(2, size) for size in (1, 2, 6, 10, 50)] == [1.0, 1.0, 2.0, 3.0, 3.0]
    assert curve.at(4, 100) == 7.0
    # Where there are none, among all; two of one size count half each.
    assert [curve.at(3, size) for size in (3, 4, 7)] == [4.5, 8.0, 5.5]


def test_estimates_of_passes() -> None:
    view = Estimates()
    for ask in (view.target_s, view.draft_s):
        with pytest.raises(InputError, match="none has been measured; expected a schedule that lo"):
            ask(1, 4)
    assert view.draft_s(1, 0) == 0.0
    view.target_pass(2, 20, 5.0)  # a prefill
    view.draft_prefill(2, 0.5)
    assert view.target_s(1, 4) == 5.0
    assert view.draft_s(2, 4) == 2.0  # four forwards
    view.target_pass(2, 8, 3.0)
    assert view.target_s(2, 14) == 4.0
    view.draft_phase(2, 4, 1.0)
    view.draft_phase(2, 0, 9.0)  # drafted nothing: tells nothing
    view.draft_phase(2, 2, 0.25)
    assert [view.draft_s(2, n) for n in (1, 2, 3, 4, 8)] == [0.125, 0.25, 0.5625, 1.0, 2.0]


class Looking(SpeculativeDecoding):
    """Notes what it sees before every round."""

    def _propose(self, ids: Any) -> Any:
        view = yield Look()
        self.seen.append((view.target_s(2, 6), view.draft_s(2, 2)))
        return (yield from super()._propose(ids))


def test_a_schedule_sees_the_measured_passes() -> None:
    schedule = Looking(2, 2)
    schedule.seen = []
    draft = LoggedDrafter(lambda text: 1)
    result = execute(schedule, make_job([9, 9], [[1], [2]]), LoggedTarget(lambda text: 1), draft)
    spans = {kind: [s for s in result.spans if s.kind == kind] for kind in ("draft", "verify")}
    assert len(schedule.seen) == 3
    for i, (target_s, draft_s) in enumerate(schedule.seen[1:], 1):
        verified = [s.end_s - s.start_s for s in spans["verify"][:i]]
        drafted = [s.end_s - s.start_s for s in spans["draft"][:i]]
        assert target_s == pytest.approx(median(verified), rel=1e-6)
        assert draft_s == pytest.approx(median(drafted), rel=1e-6)
    first = {s.device: s.end_s - s.start_s for s in result.spans if s.kind == "prefill"}
    assert schedule.seen[0][0] == pytest.approx(first["target"], rel=1e-6)
    assert schedule.seen[0][1] == pytest.approx(2 * first["draft"], rel=1e-6)
