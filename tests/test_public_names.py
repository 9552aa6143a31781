"""What other code may rely on: these names, no more and no fewer."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import iterant
from iterant.errors import MissingExtra

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

ROOMS = [
    module.name
    for module in pkgutil.walk_packages(iterant.__path__, "iterant.")
    if not module.name.endswith("__main__")
]


def test_the_public_names_are_exactly_these() -> None:
    assert set(iterant.__all__) == PUBLIC
    assert len(iterant.__all__) == len(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(iterant, name) is getattr(iterant, name)
    assert name in dir(iterant)


def test_type_checkers_are_told_the_same() -> None:
    tree = ast.parse(Path(iterant.__file__).read_text())
    told = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert told | {"__version__"} == PUBLIC


def test_a_public_name_comes_from_where_type_checkers_are_told() -> None:
    tree = ast.parse(Path(iterant.__file__).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("iterant."):
            for alias in node.names:
                there = getattr(importlib.import_module(str(node.module)), alias.name)
                assert getattr(iterant, alias.name) is there


def test_an_unknown_name_is_an_attribute_error() -> None:
    name = "sovle"
    with pytest.raises(AttributeError, match=re.escape("no attribute 'sovle'")):
        getattr(iterant, name)


def test_the_version_is_the_installed_one() -> None:
    assert iterant.__version__ == version("iterant")
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", iterant.__version__)


@pytest.mark.parametrize("name", ROOMS)
def test_every_name_a_module_offers_is_there(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except MissingExtra as error:
        pytest.skip(str(error))
    except ModuleNotFoundError as error:
        if error.name != "triton":  # it comes with torch for GPUs only
            raise
        pytest.skip(str(error))
    offered = getattr(module, "__all__", [])
    assert [word for word in offered if not hasattr(module, word)] == []
    assert len(set(offered)) == len(offered)
