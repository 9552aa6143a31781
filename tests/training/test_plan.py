"""A plan says what the run then is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_runs import KINDS, begin

import iterant
from iterant.errors import RecipeError
from iterant.training.build import plan
from iterant.training.recipe import Recipe
from iterant.training.recipes import recipe


def test_the_plan_is_what_the_run_becomes(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")
    made = plan(iterant.task("prefix-sums"), Recipe().changed(**run.config["recipe"]))
    assert made.updates == run.status.step == 12
    assert made.updates_per_epoch * KINDS["progressive"]["epochs"] == made.updates
    assert json.loads(json.dumps(made.network)) == run.config["net"]
    assert made.parameters == sum(
        weight.numel() for name, weight in run.load("best")[0].items() if name.startswith("net.")
    )
    assert (made.problems, made.held_out, made.size) == (40, 10, 8)


@pytest.mark.parametrize(
    ("task", "parameters", "updates"),
    [("prefix-sums", 3_123_600, 12_000), ("mazes", 783_504, 40_000)],
)
def test_the_papers_figures(task: str, parameters: int, updates: int) -> None:
    made = plan(iterant.task(task), recipe("paper", task))
    assert (made.parameters, made.updates) == (parameters, updates)


def test_what_the_run_would_refuse_is_refused() -> None:
    with pytest.raises(RecipeError, match="batch of 9000"):
        plan(iterant.task("prefix-sums"), recipe("paper", "prefix-sums").changed(batch=9000))
