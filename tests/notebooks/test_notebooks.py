"""Notebooks run from top to bottom, and are committed with their outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_is_a_notebook():
    assert [path.name for path in NOTEBOOKS] == ["capacity_planning.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_committed(path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code)
    assert any("image/png" in output.get("data", {}) for cell in code for output in cell.outputs)
    errors = [o for cell in code for o in cell.outputs if o.output_type == "error"]
    assert not errors


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_gives_the_committed_numbers(path):
    committed = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    for old, new in zip(committed.cells, fresh.cells, strict=True):
        if old.cell_type != "code":
            continue
        tables = [
            [o["data"]["text/plain"] for o in cell.outputs if "text/html" in o.get("data", {})]
            for cell in (old, new)
        ]
        assert tables[0] == tables[1], old.source
