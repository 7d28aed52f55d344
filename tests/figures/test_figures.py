"""Every figure computes and draws; the stored data is what the script computes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

HERE = Path(__file__).parents[2] / "figures"
NAMES = sorted(p.stem for p in HERE.glob("[a-z]*.py") if p.stem != "style")
# Simulated points are compared by tests of their own, a few of them each.
SIMULATED = {
    "clustering",
    "dsi_maps",
    "dspark_budget",
    "methods_at_loads",
    "minedraft_sweeps",
    "pearl_draft_length",
    "schedule_timelines",
    "when_it_pays",
}


def test_there_are_figures():
    assert len(NAMES) >= 6


@pytest.mark.parametrize("name", NAMES)
def test_quick_figure_is_drawn_with_labelled_axes(name):
    module = import_module(f"figures.{name}")
    frame = module.compute(True)
    assert len(frame)
    figure = module.draw(frame)
    labelled = [axes for axes in figure.axes if axes.get_xlabel() and axes.get_ylabel()]
    assert labelled


@pytest.mark.parametrize("name", NAMES)
def test_stored_data_draws(name):
    stored = pd.read_csv(HERE / "data" / f"{name}.csv")
    assert import_module(f"figures.{name}").draw(stored).axes


@pytest.mark.parametrize("name", [n for n in NAMES if n not in SIMULATED])
def test_stored_data_is_what_the_script_computes(name):
    """Pure formulas only."""
    stored = pd.read_csv(HERE / "data" / f"{name}.csv")
    fresh = import_module(f"figures.{name}").compute(False)
    pd.testing.assert_frame_equal(stored, fresh, check_dtype=False, rtol=1e-6, atol=1e-9)
