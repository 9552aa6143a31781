"""What other code may rely on: these names, no more and no fewer."""

from __future__ import annotations

import ast
import importlib
from importlib.metadata import version
from pathlib import Path

import pytest

import iterant

PUBLIC = {
    "IterantError",
    "__version__",
    "analyze",
    "errors",
    "evaluate",
    "last",
    "load",
    "solve",
    "task",
    "think",
    "train",
}


def test_the_public_names_are_exactly_these() -> None:
    assert sorted(iterant.__all__) == sorted(PUBLIC)
    assert set(dir(iterant)) >= PUBLIC
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        iterant.sovle  # noqa: B018
    assert iterant.__version__ == version("iterant")


def test_type_checkers_see_the_same_objects() -> None:
    typed = {"__version__"}
    for node in ast.walk(ast.parse(Path(iterant.__file__).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("iterant"):
            for alias in node.names:
                module = importlib.import_module(str(node.module))
                assert getattr(iterant, alias.name) is getattr(module, alias.name)
                typed.add(alias.name)
    assert typed == PUBLIC
