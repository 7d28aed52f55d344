"""What a release promises: one version, pinned dependencies, a citation, commands that exist."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from import_graph import find_imports, find_modules
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import psdsim

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_every_file_names_the_same_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(
        r"^## \[(\d[^\]]*)\] - (?:Unreleased|\d{4}-\d{2}-\d{2})$", changelog, re.M
    )
    assert releases, "CHANGELOG.md has no heading such as '## [0.1.0] - Unreleased'"
    version = PROJECT["version"]
    assert (psdsim.__version__, str(CITATION["version"]), releases[0]) == (version,) * 3


def test_the_citation_has_what_its_format_requires() -> None:
    # Citation File Format 1.2.0: the required keys of the file, of a reference and of an author.
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["license"] == PROJECT["license"]
    for work in [CITATION, *CITATION["references"]]:
        assert work["title"]
        assert work["authors"]
        for author in work["authors"]:
            assert set(author) in ({"name"}, {"family-names", "given-names"})
    assert CITATION["message"]
    for work in CITATION["references"]:
        number = work["url"].removeprefix("https://arxiv.org/abs/")
        assert re.fullmatch(r"\d{4}\.\d{5}", number)
        assert work["identifiers"] == [{"type": "other", "value": f"arXiv:{number}"}]
        assert work["type"] == "article"


def test_the_methods_that_run_are_cited() -> None:
    cited = {work["url"].rpartition("/")[2] for work in CITATION["references"]}
    # Speculative decoding (twice), PEARL, MineDraft.
    assert {"2211.17192", "2302.01318", "2408.11850", "2603.18016"} <= cited


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pair) == 2 for pair in pairs), "constraints.txt pins exactly, by name==version"
    found: dict[str, str] = {canonicalize_name(name): version for name, version in pairs}
    assert len(found) == len(pairs), "constraints.txt pins a name twice"
    return found


EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
ASKED_FOR: list[str] = [*PROJECT["dependencies"], *itertools.chain(*EXTRAS.values())]
REQUIRED = [Requirement(text) for text in ASKED_FOR]


@pytest.mark.parametrize("requirement", REQUIRED, ids=str)
def test_every_dependency_is_pinned_within_its_bound(requirement: Requirement) -> None:
    pin = pins().get(canonicalize_name(requirement.name))
    assert pin is not None, f"{requirement.name} is not in constraints.txt"
    assert pin in requirement.specifier


@pytest.mark.parametrize(
    "package, extras", [("psdsim", []), ("analysis", []), ("realrun", ["realrun", "hf"])]
)
def test_every_import_is_of_a_declared_dependency(package: str, extras: list[str]) -> None:
    # What comes along only because another package asks for it may be gone in its next release.
    declared = {Requirement(text).name for text in PROJECT["dependencies"]}
    declared |= {Requirement(text).name for extra in extras for text in EXTRAS.get(extra, [])}
    names = {canonicalize_name(name) for name in declared}
    ours = {*sys.stdlib_module_names, "psdsim", "analysis", "realrun"}
    homes = packages_distributions()  # import name -> distributions: yaml -> PyYAML
    undeclared = {
        f"{one.source}, line {one.line}: {top}"
        for one in find_imports(find_modules(ROOT, [package]))
        if not one.typing_only and (top := one.target.split(".")[0]) not in ours
        if not names & {canonicalize_name(home) for home in homes.get(top, [top])}
    }
    assert sorted(undeclared) == []


@pytest.mark.parametrize("script, target", sorted(PROJECT["scripts"].items()))
def test_a_console_script_has_its_function(script: str, target: str) -> None:
    module, _, function = target.partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_the_wheel_takes_every_package_and_all_are_typed() -> None:
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    present = [name for name in ("psdsim", "analysis", "realrun") if (ROOT / name).is_dir()]
    assert wheel == present
    assert all((ROOT / name / "py.typed").is_file() for name in present)
    # hatchling leaves out what git ignores: package data in such a folder would be lost.
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    folders = {line.rstrip("/") for line in ignored if line.endswith("/")} - {"__pycache__"}
    packed = {path.name for name in present for path in (ROOT / name).rglob("*") if path.is_dir()}
    assert not folders & packed


MAKE = shutil.which("make")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
needs_make = pytest.mark.skipif(MAKE is None, reason="make is not installed")


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert MAKE is not None
    # Where make runs the tests, its own flags must not reach the make under test.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        [MAKE, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


@needs_make
def test_help_names_every_target() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)
    assert phony is not None
    targets = set(phony[1].split())
    assert {"demo", "test", "lint", "types", "bench", "notebook", "clean"} <= targets
    helped = re.findall(r"^make (\S+) ", make(ROOT, "help").stdout, re.M)
    assert {*helped, "help"} == targets


@needs_make
@pytest.mark.parametrize("python", ["an-old-python", "no-such-python"])
def test_a_python_that_is_too_old_or_missing_is_named(tmp_path: Path, python: str) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    old = tmp_path / "an-old-python"  # whatever the version check asks, it says no
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    done = make(tmp_path, f"PYTHON=./{python}", "test")
    assert done.returncode != 0
    assert f'psdsim needs Python 3.11 or newer, and "./{python}" is not that.' in done.stderr
    assert not (tmp_path / ".venv").exists()


@needs_make
def test_it_installs_once_and_again_when_a_version_changes(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    log = tmp_path / "log"
    fake = tmp_path / "python"  # writes down how it is called; `-m venv DIR` copies it there
    fake.write_text(
        f'#!/bin/sh\necho "$*" >> "{log}"\n'
        'test "$2" != venv || { mkdir -p "$3/bin"; cp -p "$0" "$3/bin/python"; }\n',
        encoding="utf-8",
    )
    fake.chmod(0o755)
    for name in ("python", "pyproject.toml", "constraints.txt"):
        os.utime(tmp_path / name, (1e9, 1e9))

    pytest_args = re.search(r"^PYTEST_ARGS = (.*)$", MAKEFILE, re.M)
    assert pytest_args is not None

    def calls() -> list[str]:
        done = make(tmp_path, "PYTHON=./python", "test")
        assert done.returncode == 0, done.stderr
        said = log.read_text(encoding="utf-8").splitlines()
        log.unlink()
        return [line for line in said if line.startswith("-m")]

    test = f"-m pytest {pytest_args[1]}"
    install = "-m pip install --quiet --constraint constraints.txt --editable .[dev,realrun,hf]"
    assert calls() == ["-m venv .venv", install, test]
    assert calls() == [test]
    os.utime(tmp_path / ".venv" / "installed-dev", (1.5e9, 1.5e9))
    (tmp_path / "constraints.txt").touch()
    assert calls() == [install, test]


@needs_make
@pytest.mark.parametrize("target", ["bench", "notebook"])
def test_a_target_with_nothing_to_run_fails(tmp_path: Path, target: str) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1e9, 1e9))
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in (
        "bin/python",
        "installed-dev",
        "installed-notebooks",
        "installed-smollm2",
    ):  # as if installed
        (tmp_path / ".venv" / name).touch()
    done = make(tmp_path, target)
    assert done.returncode != 0
    assert f"make {target}: there is no" in done.stderr


@needs_make
def test_the_readme_names_only_targets_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)
    assert phony is not None
    named = set(re.findall(r"`make ([a-z]+)|^make ([a-z]+)", readme, re.M))
    assert {a or b for a, b in named} <= set(phony[1].split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("broken", ["", ".venv/installed-dev", "smollm2", "lint", "types", "test"])
def test_ci_starts_afresh_and_fails_where_a_check_fails(tmp_path: Path, broken: str) -> None:
    checks = [".venv/installed-dev", "smollm2", "lint", "types", "test"]
    (tmp_path / "clone" / ".ci").mkdir(parents=True)
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / "clone" / ".ci")
    stale = tmp_path / "clone" / ".venv"
    stale.mkdir()
    fake = tmp_path / "bin" / "make"  # writes down the target; fails at the broken one
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "$2" >> log\ntest "$2" != "$BROKEN"\n', encoding="utf-8")
    fake.chmod(0o755)
    path = f"{fake.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "BROKEN": broken}
    done = subprocess.run([script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) == (broken == "")
    assert ("all checks passed" in done.stdout) == (broken == "")
    ran = (tmp_path / "clone" / "log").read_text(encoding="utf-8").split()
    assert ran == (checks[: checks.index(broken) + 1] if broken else checks)
    assert not stale.exists()
