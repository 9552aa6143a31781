"""Which recipe a command means: the same as in Python, of the network that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import iterant
from iterant.cli.train import resolve_recipe
from iterant.training import recipe


@pytest.mark.parametrize("problem", ["prefix-sums", "mazes", "chess"])
@pytest.mark.parametrize("word", ["paper", "paper-code", "quick", "best"])
def test_a_command_has_the_recipe_that_python_has(word: str, problem: str) -> None:
    base, chosen = resolve_recipe(iterant.task(problem), word, None, {})
    assert base == chosen == recipe(word, problem)


def test_the_best_recipe_brings_its_own_network_unless_told_otherwise(tmp_path: Path) -> None:
    mazes = iterant.task("mazes")
    assert resolve_recipe(mazes, "best", None, {})[1].net == "local-rule"
    assert resolve_recipe(mazes, "best", None, {"net": "dt-recall"})[1] == recipe(
        "best", "mazes", "dt-recall"
    )
    file = tmp_path / "mine.toml"
    file.write_text("rate = 0.5", encoding="utf-8")
    assert resolve_recipe(mazes, "best", file, {})[1].net == "local-rule"
    file.write_text('net = "dt"', encoding="utf-8")
    assert resolve_recipe(mazes, "paper", file, {})[1] == recipe("paper", "mazes", "dt")
