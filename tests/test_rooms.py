"""Each room imports only from rooms before it, and stays small and plainly named."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iterant import names

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "iterant"

# In the order of imports; `__main__` only starts the command line.
ROOMS = [
    "errors",
    "names",
    "runs",
    "tasks",
    "nets",
    "engine",
    "halting",
    "solving",
    "evaluation",
    "training",
    "draw",
    "analysis",
    "zoo",
    "experiments",
    "sweeps",
    "bench",
    "export",
    "web",
    "cli",
    "__main__",
]

MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]
SOURCES = sorted(
    path for folder in ("iterant", "tests") for path in (REPOSITORY / folder).rglob("*.py")
)


def dotted(path: Path) -> str:
    """The module's name: iterant/tasks/__init__.py is iterant.tasks."""
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(node: ast.AST, package: str) -> Iterator[str]:
    """The dotted names that an import statement reaches for, from inside ``package``."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*(above if node.level else []), *([node.module] if node.module else [])])
        # `from iterant import names` reaches for a room, `from iterant.names import task` too.
        yield from (f"{base}.{alias.name}" for alias in node.names)


def only_for_types(tree: ast.Module) -> set[ast.AST]:
    """Everything under ``if TYPE_CHECKING:``."""
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    ]
    return {inner for block in blocks for line in block.body for inner in ast.walk(line)}


def offences(source: str, module: str, is_package: bool = False) -> list[str]:
    """What a module imports from its own or an outer room that it must not."""
    tree = ast.parse(source)
    room = module.split(".")[1]
    package = module if is_package else module.rpartition(".")[0]
    # names.py speaks of what it looks up late; only its type hints may look ahead.
    forgiven = only_for_types(tree) if room == "names" else set()
    found = []
    for node in ast.walk(tree):
        if node in forgiven:
            continue
        for target in imported(node, package):
            parts = target.split(".")
            if parts[0] != "iterant" or target == "iterant.__version__":
                continue
            if len(parts) == 1 or parts[1] not in ROOMS:
                found.append(f"{module} imports {target}: name the room it comes from")
            elif ROOMS.index(parts[1]) > ROOMS.index(room):
                found.append(f"{module} imports {target}: {parts[1]} comes after {room}")
    return found


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_imports_only_from_rooms_before(path: Path) -> None:
    assert dotted(path).split(".")[1] in ROOMS, f"{path} is in no room; add its room to ROOMS"
    assert offences(path.read_text(), dotted(path), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("iterant.tasks.mazes", "import iterant.cli.main"),
        ("iterant.tasks.mazes", "from iterant import engine"),
        ("iterant.tasks.mazes", "from iterant.nets.layers import conv"),
        ("iterant.tasks.mazes", "from ..nets import layers"),
        ("iterant.engine", "from .solving import solve"),
        ("iterant.engine", "def late():\n    from iterant.training import train"),
        ("iterant.engine", "if TYPE_CHECKING:\n    from iterant.training import train"),
        ("iterant.engine", "from iterant import solve"),
        ("iterant.engine", "import iterant"),
        ("iterant.names", "from iterant.tasks.protocol import Task"),
    ],
)
def test_an_offending_import_is_seen(module: str, source: str) -> None:
    assert len(offences(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("iterant.tasks.mazes", "from .protocol import Batch"),
        ("iterant.tasks.mazes", "from iterant import errors, names"),
        ("iterant.cli.main", "from iterant.draw import picture"),
        ("iterant.runs.folders", "from iterant import __version__"),
        ("iterant.names", "if TYPE_CHECKING:\n    from iterant.tasks.protocol import Task"),
        ("iterant.engine", "from iterantly import engine"),
    ],
)
def test_a_decent_import_is_not(module: str, source: str) -> None:
    assert offences(source, module) == []


def compared_words(source: str) -> set[str]:
    """The string literals that a comparison or a match statement holds."""
    nodes = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare | ast.MatchValue)
    ]
    return {
        inner.value
        for node in nodes
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    }


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_only_names_and_the_command_line_compare_task_names(path: Path) -> None:
    if dotted(path).split(".")[1] not in ("names", "cli"):
        assert compared_words(path.read_text()).isdisjoint(names.known("task"))


def test_a_compared_task_name_is_seen() -> None:
    assert "mazes" in compared_words("if task.spec.name == 'mazes': pass")
    assert "chess" in compared_words("x = name in ('chess', 'go')")
    assert "chess" in compared_words("match name:\n    case 'chess': pass")
    assert compared_words("name = 'mazes'") == set()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_modules_have_a_subject(path: Path) -> None:
    assert path.stem not in {"util", "utils", "helper", "helpers", "common", "misc"}


def loaded_by(statement: str) -> set[str]:
    """The top-level packages that a fresh interpreter holds after a statement."""
    script = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(  # the command is our own interpreter and a literal
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_is_light() -> None:
    heavy = {"torch", "numpy", "matplotlib", "cyclopts", "rich", "chess", "zstandard"}
    assert loaded_by("import iterant").isdisjoint(heavy)
    assert "torch" in loaded_by("import iterant.tasks.protocol")
