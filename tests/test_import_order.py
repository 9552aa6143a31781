"""Packages import only from packages before them, look-ups by string included."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iterant import registry

PACKAGE = Path(registry.__file__).resolve().parent

# Lowest first; a package may import from itself and from those before it.
ORDER = [
    "errors", "threads", "bounds", "formatting", "progress", "registry", "rng", "io", "tasks",
    "nets", "engine", "halting", "solving", "evaluation", "training", "zoo", "draw", "analysis",
    "runner", "experiments", "bench", "export", "web", "cli", "__main__",
]  # fmt: skip

# The registry's entries name what they load; notebooks draw a batch or a curve through it, and the
# worker of a sweep finds the job of its plan.
LATE = {"picture", "job"}

MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def dotted(path: Path) -> str:
    """The module's name: iterant/tasks/__init__.py is iterant.tasks."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Dotted names that a module imports or looks up by string, from inside ``package``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = [*(above if node.level else []), *([node.module] if node.module else [])]
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "registry.find":
            kind = node.args[0]
            if isinstance(kind, ast.Constant) and kind.value not in LATE:
                places = registry.LOCATIONS[str(kind.value)].values()
                yield from (where.partition(":")[0] for where in places)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            words = [word for word in node.args if isinstance(word, ast.Constant)]
            yield from (str(word.value) for word in words)


def upward(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Imports of a module that point to a package after its own."""
    own = module.split(".")[1]
    package = module if is_package else module.rpartition(".")[0]
    tree = ast.parse(source)
    if own == "registry":  # its type hints may name what it loads late
        tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    found = []
    for target in imports(tree, package):
        parts = target.split(".")
        if parts[0] != "iterant" or target == "iterant.__version__":
            continue
        if len(parts) == 1 or parts[1] not in ORDER:
            found.append(f"{module} imports {target}: name the package it comes from")
        elif ORDER.index(parts[1]) > ORDER.index(own):
            found.append(f"{module} imports {target}: {parts[1]} comes after {own}")
    return found


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_imports_point_downwards(path: Path) -> None:
    assert dotted(path).split(".")[1] in ORDER
    assert upward(path.read_text(), dotted(path), is_package=path.name == "__init__.py") == []


def compared_words(source: str) -> set[str]:
    """The string literals that a comparison or a match statement holds."""
    return {
        inner.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare | ast.MatchValue)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    }


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_only_the_command_line_compares_task_names(path: Path) -> None:
    if dotted(path).split(".")[1] not in ("registry", "cli"):
        assert compared_words(path.read_text()).isdisjoint(registry.known("task"))


def test_importing_the_package_is_light() -> None:
    script = "import iterant, sys\nprint(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    heavy = {"torch", "numpy", "matplotlib", "cyclopts", "rich", "chess", "zstandard"}
    assert heavy.isdisjoint(done.stdout.split())
