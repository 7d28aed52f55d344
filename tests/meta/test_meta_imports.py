"""The layers of the design hold in the import statements, and the check would see a breach."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from import_graph import (
    composition_violations,
    find_imports,
    find_modules,
    import_cycle,
    layer_violations,
    ownership_violations,
)

ROOT = Path(__file__).parents[2]
MODULES = find_modules(ROOT)
IMPORTS = find_imports(MODULES)


def test_the_tree_is_seen() -> None:
    # Without this, a moved folder would make every test below pass on nothing.
    assert {"psdsim", "psdsim.errors", "psdsim.schedules.minedraft", "analysis"} <= set(MODULES)
    seen = {(one.source, one.target) for one in IMPORTS}
    assert ("psdsim.seeds", "psdsim.errors") in seen
    assert ("psdsim.schedules.minedraft", "psdsim.commands") in seen


def test_imports_go_down_only() -> None:
    assert layer_violations(IMPORTS) == []


def test_only_cli_and_api_tie_the_packages_together() -> None:
    assert composition_violations(IMPORTS) == []


def test_simpy_torch_clocks_and_randomness_stay_where_they_belong() -> None:
    assert ownership_violations(IMPORTS) == []


def test_no_import_cycle() -> None:
    assert import_cycle(IMPORTS, MODULES) == []


def tree(root: Path, **files: str) -> Path:
    """Write a small tree that keeps every rule, then the given files (`__` stands for `/`)."""
    base = {
        "psdsim/__init__.py": "__version__ = '1'\n",
        "psdsim/errors.py": "",
        "psdsim/acceptance/__init__.py": "from psdsim.errors import InputError\n",
        "psdsim/schedules/__init__.py": "from psdsim.errors import InputError\n",
        "psdsim/engine/__init__.py": "import simpy\nfrom psdsim import __version__, schedules\n",
        "psdsim/cli.py": "def main():\n    import analysis.rounds\n    import psdsim.engine\n",
        "analysis/__init__.py": "",
        "analysis/rounds.py": "from psdsim.acceptance import Iid\nfrom . import special\n",
        "analysis/special.py": "import scipy\n",
        "realrun/__init__.py": "import torch\nfrom psdsim.schedules import MineDraft\n",
    }
    planted = {name.replace("__", "/") + ".py": text for name, text in files.items()}
    for name, text in (base | planted).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def complaints(root: Path) -> list[str]:
    modules = find_modules(root)
    imports = find_imports(modules)
    cycle = import_cycle(imports, modules)
    return [
        *layer_violations(imports),
        *composition_violations(imports),
        *ownership_violations(imports),
        *(["cycle: " + " -> ".join(cycle)] if cycle else []),
    ]


def test_a_tree_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    assert complaints(tree(tmp_path)) == []


@pytest.mark.parametrize(
    "file, text, complaint",
    [
        # Upwards: plainly, from inside a function, for types only, relatively.
        ("psdsim__seeds", "from psdsim.engine import Engine\n", "above foundations"),
        ("psdsim__seeds", "def f():\n    import psdsim.engine\n", "above foundations"),
        ("psdsim__latency", "if TYPE_CHECKING:\n    import psdsim.cli\n", "above parameters"),
        ("psdsim__latency", "from . import engine\n", "above parameters"),
        ("psdsim__acceptance__tape", "from .. import schedules\n", "above parameters"),
        ("psdsim__acceptance__tape", "from ..schedules import x\n", "above parameters"),
        ("psdsim__schedules__pearl", "from psdsim import engine\n", "above policy"),
        ("psdsim__verdict", "from psdsim.schedules import x\n", "above verdicts"),
        ("psdsim__engine__clock", "import psdsim.run\n", "above mechanism"),
        ("psdsim__run", "from psdsim import simulate\n", "above experiments"),
        ("psdsim__novelty", "import psdsim.errors\n", "psdsim.novelty has no layer"),
        # Between the packages.
        ("analysis__batch", "from psdsim.schedules import MineDraft\n", "above parameters"),
        ("analysis__batch", "import psdsim.engine.clock\n", "above parameters"),
        ("analysis__batch", "import realrun\n", "analysis must not import realrun"),
        ("realrun__worker", "from psdsim.engine import Engine\n", "above presets"),
        ("realrun__worker", "import analysis\n", "realrun must not import analysis"),
        ("psdsim__run", "def f():\n    import analysis\n", "only psdsim.cli and psdsim.api"),
        ("psdsim__api", "import analysis.rounds\n", "inside the function"),
        ("psdsim__api", "try:\n    import realrun\nfinally:\n    pass\n", "inside the function"),
        # What belongs to one module only.
        ("psdsim__run", "import simpy\n", "imports simpy, which psdsim.engine may"),
        ("analysis__batch", "from simpy.core import Environment\n", "imports simpy.core"),
        ("psdsim__schedules__pearl", "import torch\n", "imports torch, which realrun may"),
        ("psdsim__workload", "def f():\n    import random\n", "random, which no module may"),
        ("psdsim__schedules__pearl", "from time import monotonic\n", "must not import time"),
        ("psdsim__schedules__pearl", "from numpy import random\n", "import numpy.random"),
        ("psdsim__schedules__pearl", "from psdsim import acceptance\n", "psdsim.acceptance"),
        ("psdsim__schedules__pearl", "from psdsim.verdict import T\n", "import psdsim.verdict"),
        ("psdsim__engine__clock", "import time\n", "psdsim.engine must not import time"),
        ("psdsim__engine__clock", "import psdsim.methods\n", "not import psdsim.methods"),
        ("psdsim__methods", "import psdsim.engine\n", "above presets"),
        # Cycles, of one, two and three modules.
        ("psdsim__seeds", "import psdsim.seeds\n", "cycle: "),
        ("analysis__special", "from analysis.rounds import x\n", "cycle: "),
        ("psdsim__errors", "from psdsim.acceptance import x\n", "cycle: "),
    ],
)
def test_a_planted_breach_is_seen(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    found = complaints(tree(tmp_path, **{file: text}))
    assert any(complaint in line for line in found), found


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    from analysis.rounds import x\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from analysis.rounds import x\n",
    ],
)
def test_a_cycle_that_never_runs_at_import_time_is_none(tmp_path: Path, text: str) -> None:
    assert complaints(tree(tmp_path, analysis__special=text)) == []


HEAVY = ("torch", "matplotlib")


def heavy_after(statement: str) -> list[str]:
    """Return which of the heavy packages a fresh interpreter has loaded after a statement."""
    code = f"import sys; {statement}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize("package", ["psdsim", "analysis"])
def test_importing_the_package_is_light(package: str) -> None:
    assert heavy_after(f"import {package}") == []


def test_a_heavy_import_would_be_seen() -> None:
    assert heavy_after("import matplotlib") == ["matplotlib"]
