"""The import statements of a source tree, and the rules of the layers they must keep.

Nothing is imported: modules are parsed, so that a module that is broken, slow or optional is
checked like any other, and so that an import inside a function counts too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGES = ("psdsim", "analysis", "realrun")

# From the bottom up; a module imports from its own layer and from those below.
LAYERS: tuple[tuple[str, frozenset[str]], ...] = (
    ("foundations", frozenset({"errors", "seeds", "console"})),
    ("parameters", frozenset({"acceptance", "latency", "workload", "hardware", "scenario"})),
    ("words", frozenset({"commands", "records", "stats"})),
    ("verdicts", frozenset({"verdict"})),
    ("policy", frozenset({"schedules"})),
    # Below the engine: a method is parts and parameters, for either executor to run.
    ("presets", frozenset({"methods"})),
    ("mechanism", frozenset({"engine"})),
    ("experiments", frozenset({"run", "compare", "sweep", "plan", "calibrate"})),
    ("composition", frozenset({"cli", "api", "__main__", "__init__"})),
)
RANK = {part: rank for rank, (_, parts) in enumerate(LAYERS) for part in parts}
LAYER_NAME = {part: name for name, parts in LAYERS for part in parts}

# What the packages beside psdsim may take from it: the highest layer, by name.
HIGHEST_FOR = {"analysis": "parameters", "realrun": "presets"}

# Top-level packages that only these modules (and what is below them) may import.
OWNERS: Mapping[str, tuple[str, ...]] = {
    "simpy": ("psdsim.engine",),
    "torch": ("realrun",),
    "random": (),  # randomness comes from a numpy Generator that is handed in
}

# What these modules may not import, beyond what the layers say.
BANNED: Mapping[str, tuple[str, ...]] = {
    # Policy knows no clock and no randomness, nor the truth that decides acceptance.
    "psdsim.schedules": (
        "time",
        "numpy.random",
        "psdsim.seeds",
        "psdsim.acceptance",
        "psdsim.verdict",
    ),
    # The only clock of the engine is the simulated one; it runs schedules, whoever made them.
    "psdsim.engine": ("time", "psdsim.methods"),
}


@dataclass(frozen=True)
class Import:
    """One imported module: by whom, on which line, and when the import runs."""

    source: str
    target: str
    line: int
    lazy: bool  # inside a function
    typing_only: bool  # under `if TYPE_CHECKING:`
    names: tuple[str, ...] = ()  # what `from target import ...` takes, where that isn't a module

    def within(self, package: str) -> bool:
        return is_within(self.target, package)


def is_within(module: str, package: str) -> bool:
    """Say whether `module` is `package` or lies below it."""
    return module == package or module.startswith(package + ".")


def find_modules(root: Path, packages: Iterable[str] = PACKAGES) -> dict[str, Path]:
    """Map the dotted name of every module of the packages under `root` to its file."""
    found: dict[str, Path] = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def find_imports(modules: Mapping[str, Path]) -> list[Import]:
    """Return every import of every module."""
    found: list[Import] = []
    for name, path in modules.items():
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for node, lazy, typing_only in _import_nodes(tree, lazy=False, typing_only=False):
            for target, names in _targets(node, package, modules):
                found.append(Import(name, target, node.lineno, lazy, typing_only, names))
    return found


def _import_nodes(
    node: ast.AST, *, lazy: bool, typing_only: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node, lazy, typing_only
    elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        for statement in node.body:
            yield from _import_nodes(statement, lazy=lazy, typing_only=True)
        for statement in node.orelse:
            yield from _import_nodes(statement, lazy=lazy, typing_only=typing_only)
    else:
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from _import_nodes(child, lazy=lazy, typing_only=typing_only)


def _targets(
    node: ast.Import | ast.ImportFrom, package: str, modules: Mapping[str, Path]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, ()
        return
    base = node.module or ""
    if node.level:  # relative: one dot is the package itself, each further one its parent
        above = package.split(".")[: len(package.split(".")) - (node.level - 1)]
        base = ".".join([*above, base] if base else above)
    plain = []
    for alias in node.names:
        dotted = f"{base}.{alias.name}"
        if dotted in modules or dotted == "numpy.random":
            yield dotted, ()
        else:
            plain.append(alias.name)
    if plain:
        yield base, tuple(plain)


def part_of(module: str) -> str:
    """Return the part of psdsim a module belongs to (`__init__` for the package itself)."""
    return module.split(".")[1] if "." in module else "__init__"


def layer_violations(imports: Iterable[Import]) -> list[str]:
    """Say which imports of psdsim go up, and which modules have no layer."""
    found: list[str] = []
    for one in imports:
        ends = [module for module in (one.source, one.target) if is_within(module, "psdsim")]
        unplaced = [part_of(module) for module in ends if part_of(module) not in RANK]
        if unplaced:
            found.append(f"psdsim.{unplaced[0]} has no layer; give it one in LAYERS")
            continue
        if not one.within("psdsim") or _only_the_version(one):
            continue
        to = part_of(one.target)
        if is_within(one.source, "psdsim"):
            limit = RANK[part_of(one.source)]
            layer = LAYER_NAME[part_of(one.source)]
        else:
            layer = HIGHEST_FOR[one.source.split(".")[0]]
            limit = next(rank for rank, (name, _) in enumerate(LAYERS) if name == layer)
        if RANK[to] > limit:
            found.append(f"{_place(one)}: imports {one.target} ({LAYER_NAME[to]}), above {layer}")
    return sorted(set(found))


def composition_violations(imports: Iterable[Import]) -> list[str]:
    """Say which modules tie theory, simulation and real runs together where they may not."""
    found: list[str] = []
    for one in imports:
        home, top = one.source.split(".")[0], one.target.split(".")[0]
        if home == top or top not in ("analysis", "realrun"):
            continue
        if home != "psdsim":
            found.append(f"{_place(one)}: {home} must not import {top}")
        elif part_of(one.source) not in ("cli", "api"):
            found.append(f"{_place(one)}: only psdsim.cli and psdsim.api may import {top}")
        elif not (one.lazy or one.typing_only):
            found.append(f"{_place(one)}: import {top} inside the function that needs it")
    return found


def ownership_violations(imports: Iterable[Import]) -> list[str]:
    """Say which modules import a package that belongs to others, or that they may not know."""
    found: list[str] = []
    for one in imports:
        owners = OWNERS.get(one.target.split(".")[0])
        if owners is not None and not any(is_within(one.source, owner) for owner in owners):
            allowed = " and ".join(owners) or "no module"
            found.append(f"{_place(one)}: imports {one.target}, which {allowed} may")
        for module, banned in BANNED.items():
            if is_within(one.source, module) and any(one.within(name) for name in banned):
                found.append(f"{_place(one)}: {module} must not import {one.target}")
    return found


def import_cycle(imports: Iterable[Import], modules: Iterable[str]) -> list[str]:
    """Return the modules of one cycle of imports that run at import time, or an empty list."""
    known = set(modules)
    graph: dict[str, set[str]] = {name: set() for name in known}
    for one in imports:
        if one.target in known and not (one.lazy or one.typing_only or _only_the_version(one)):
            graph[one.source].add(one.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def _only_the_version(one: Import) -> bool:
    """`psdsim.__version__` is set before psdsim imports anything: every module may read it."""
    return one.target == "psdsim" and one.names == ("__version__",)


def _place(one: Import) -> str:
    return f"{one.source}, line {one.line}"
