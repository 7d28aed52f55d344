"""Every source file is short, documented and free of paths that mean something on one machine."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from import_graph import find_modules

ROOT = Path(__file__).parents[2]
MODULES = find_modules(ROOT)

# A file with more lines than this holds more than one idea.
MAX_LINES = {"psdsim": 299, "analysis": 299, "realrun": 299, "repro": 299, "tests": 400}


def too_long(root: Path, limits: dict[str, int]) -> list[str]:
    found = []
    for folder, limit in limits.items():
        for path in sorted((root / folder).rglob("*.py")):
            n_lines = len(path.read_text(encoding="utf-8").splitlines())
            if n_lines > limit:
                found.append(f"{path.relative_to(root)}: {n_lines} lines, at most {limit}")
    return found


def test_files_are_short() -> None:
    assert too_long(ROOT, MAX_LINES) == []


def test_a_long_file_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "psdsim").mkdir()
    (tmp_path / "psdsim" / "fits.py").write_text("x = 1\n" * 299, encoding="utf-8")
    (tmp_path / "psdsim" / "long.py").write_text("x = 1\n" * 300, encoding="utf-8")
    assert too_long(tmp_path, MAX_LINES) == ["psdsim/long.py: 300 lines, at most 299"]


def undocumented(source: str) -> list[str]:
    """Return the public modules, functions, classes and methods without a docstring of their own.

    Read from the text, since an object's docstring may be inherited or made up by a decorator.
    """
    tree = ast.parse(source)
    found = [] if ast.get_docstring(tree) else ["the module"]
    return found + [name for name, node in _public(tree, "") if not ast.get_docstring(node)]


def _public(
    parent: ast.Module | ast.ClassDef, prefix: str
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in parent.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        marks = {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}
        # The getter documents its setter, the base class what an override keeps.
        if node.name.startswith("_") or marks & {"setter", "deleter", "overload", "override"}:
            continue
        yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _public(node, prefix + node.name + ".")


@pytest.mark.parametrize("module", sorted(MODULES))
def test_public_names_are_documented(module: str) -> None:
    # A private module has public names for its neighbours; those are documented all the same.
    assert undocumented(MODULES[module].read_text(encoding="utf-8")) == []


def test_a_missing_docstring_would_be_seen() -> None:
    source = '''
class Documented:
    """Yes."""
    def method(self): ...
    @property
    def length(self): ...
    @length.setter
    def length(self, value): ...
    @typing.override
    def inherited(self): ...
    def _private(self): ...
    def __len__(self): ...
def function():
    def inner(): ...
async def coroutine(): "Yes."
class Bare: ...
'''
    assert undocumented(source) == [
        "the module",
        "Documented.method",
        "Documented.length",
        "function",
        "Bare",
    ]


@pytest.mark.parametrize("module", sorted(m for m in MODULES if not m.startswith("realrun")))
def test_what_a_module_exports_exists(module: str) -> None:
    if module.endswith("__main__"):
        pytest.skip("importing it would run the program")
    loaded = importlib.import_module(module)
    exported = getattr(loaded, "__all__", [])
    assert len(set(exported)) == len(exported)
    assert [name for name in exported if not hasattr(loaded, name)] == []


# The root of an absolute path into somebody's machine, where a path can begin.
MACHINE_PATH = re.compile(
    r"(?<![\w./:<>)}\]*-])/(?:work|tmp|home|root|Users|mnt|opt)\b|\bfile:/|\b[A-Z]:\\Users\b"
)
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".cff", ".yaml", ".yml", ".ipynb", ".cfg", ".sh"}
TEXT_NAMES = {"Makefile", "run", ".gitignore"}
# Made by tools, never committed; `data` and `fixtures` hold real logs, paths and all.
SKIPPED = {"build", "dist", "out", "shared", "data", "fixtures", "__pycache__", "node_modules"}


def text_files(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        if path.is_dir():
            hidden = path.name.startswith(".") and path.name not in (".ci", ".github")
            if not (hidden or path.name in SKIPPED or path.name.endswith(".egg-info")):
                yield from text_files(path)
        elif path.suffix in TEXT_SUFFIXES or path.name in TEXT_NAMES:
            yield path


def machine_paths(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in text_files(root)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]


def test_no_text_names_a_path_of_one_machine() -> None:
    assert machine_paths(ROOT) == []


def test_the_texts_are_seen() -> None:
    seen = {str(path.relative_to(ROOT)) for path in text_files(ROOT)}
    assert {"Makefile", ".ci/run", "pyproject.toml", "psdsim/errors.py", "README.md"} <= seen


@pytest.mark.parametrize("folder", ["work", "tmp", "home", "root", "Users"])
def test_a_path_of_one_machine_would_be_seen(tmp_path: Path, folder: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(
        f"fine\nrun `/{folder}/me/x`\nhttps://example.org/{folder}/page\n"
        f"fine: framework/{folder}/x, <root>/{folder}/x\n",
        encoding="utf-8",
    )
    assert machine_paths(tmp_path) == [f"docs/page.md:2: run `/{folder}/me/x`"]
