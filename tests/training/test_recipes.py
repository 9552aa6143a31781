"""Recipes: the paper's tables, ours, fields and files, and plans."""

from __future__ import annotations

import json
import reprlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from small_runs import KINDS, uninterrupted

import iterant
from iterant.errors import RecipeError, UsageError
from iterant.io import RunFolder
from iterant.io.files import read_toml
from iterant.training import RECIPES, Recipe, recipe
from iterant.training.recipe import OLD_NAMES, recipe_from_json
from iterant.training.run import run_summary


def test_fields_of_every_type_can_be_changed_by_a_file(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "name": "mine", "width": 8, "head": [4, 2], "bounded": True, "size": [3, 7],
        "grad_clip": 2.0, "alpha": 1, "milestones": [], "notes": ["why"],
    }  # fmt: skip
    path = tmp_path / "mine.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in changes.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    paper = recipe("paper", "mazes")
    changed = paper.changed(**read_toml(path))
    assert json.loads(json.dumps(changed.described())) == {
        **json.loads(json.dumps(paper.described())), **changes,
    }  # fmt: skip


def test_former_names_of_fields_are_read(tmp_path: Path) -> None:
    """In JSON, files and arguments; tests/golden has them as flags."""
    assert not OLD_NAMES.keys() & {field.name for field in fields(Recipe)}
    best = recipe("best", "prefix-sums").described()
    old: dict[str, Any] = {name: best[now] for name, now in OLD_NAMES.items()}
    old |= {"schedule": "hold", "pool_hard": True, "again_below": 0.5}
    new = Recipe(
        **{now: best[now] for now in OLD_NAMES.values()}
        | {"schedule": "wsd", "pool_until_solved": True, "restart_below": 0.5}
    )
    assert Recipe().changed(**old) == recipe_from_json(json.loads(json.dumps(old))) == new
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in old.items()))
    assert Recipe().changed(**read_toml(path)) == new


def test_recipes_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """Whatever removed fields they have; to resume, only with the values that are left."""
    stored = json.loads(json.dumps(recipe("best", "mazes").described()))
    before = {**stored, "choose": "validation", "pool_damage_kinds": ["zeros", "noise", "another"]}
    assert recipe_from_json(before, resume=True) == recipe("best", "mazes")
    for changes in ({"choose": "watch"}, {"pool_damage_kinds": ["disc"]}):
        assert recipe_from_json({**before, **changes}) == recipe("best", "mazes")
        config = {**uninterrupted()["pool"].config, "recipe": {**before, **changes}}
        RunFolder.create(path := tmp_path / str(*changes), config)
        with pytest.raises(RecipeError, match="resume it with the version that began it"):
            iterant.train(resume=path)


BAD: dict[str, list[Any]] = {
    "alpha": [-0.1, 1.1, float("nan"), "half", None, True], "iterations": [0, 2.5, "30", True],
    "lr": [0, float("inf"), None], "ema_decay": [0, 1, "yes"], "grad_clip": [0, "no"],
    "stable_fraction": [1.0], "schedule": ["hold"], "pool_longest": [0, 1.5],
    "pool_until_solved": [1, None], "weight_decay": [-1e-4], "head": [(0,), ("a",), 5, (1,) * 101],
    "milestones": [5, ("a",), (-1,)],
    "validation": [0.95], "objective": ["progresive", None], "precision": ["fp8"],
    "size": ["9", (1, 2, 3), (-1, 5), 1.5], "net": [None], "data_seed": [-1], "notes": [(1,)],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_bad_values_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(RecipeError) as caught:
        Recipe(**{name: value})
    message = str(caught.value)
    assert "\n" not in message
    assert name in message
    assert reprlib.repr(value) in message


def test_every_field_is_checked() -> None:
    for field in fields(Recipe):
        with pytest.raises(RecipeError, match=field.name):
            Recipe().changed(**{field.name: object()})


@pytest.mark.parametrize(
    "text", ["lr = ", "lr = 1\nlr = 2", "lr = 1\nrate = 1", "speed = 3", "alpha = 2"]
)
def test_a_bad_recipe_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    for bad in (tmp_path / "mine.toml", tmp_path / "none.toml", tmp_path, Path("/dev/zero")):
        with pytest.raises(UsageError) as caught:
            Recipe().changed(**read_toml(bad))
        assert "\n" not in str(caught.value)


HYPERPARAMETERS: dict[tuple[str, str], dict[str, Any]] = {
    ("prefix-sums", "dt-recall"): {
        "optimizer": "adam", "lr": 0.001, "schedule": "steps", "milestones": (60, 100),
        "lr_decay": 0.01, "warmup_epochs": 10, "epochs": 150, "grad_clip": 1.0, "alpha": 1.0,
        "batch_size": 100, "throttle": False,
    },
    ("mazes", "dt-recall"): {
        "optimizer": "adam", "lr": 0.001, "schedule": "constant", "milestones": (),
        "warmup_epochs": 10, "epochs": 50, "grad_clip": None, "alpha": 0.01, "batch_size": 50,
        "throttle": True,
    },
    ("mazes", "ff"): {
        "optimizer": "adam", "lr": 0.0001, "schedule": "steps", "milestones": (175,),
        "lr_decay": 0.1, "warmup_epochs": 10, "epochs": 200, "grad_clip": None,
    },
    ("chess", "dt-recall"): {
        "optimizer": "sgd", "lr": 0.01, "schedule": "steps", "milestones": (100, 110),
        "lr_decay": 0.01, "warmup_epochs": 3, "epochs": 120, "grad_clip": None, "momentum": 0.9,
        "alpha": 0.5, "batch_size": 300, "throttle": False,
    },
}  # fmt: skip
"""The paper's table of hyperparameters and its α; batches and throttle from the authors' code.

tests/golden has all fields of these recipes.
"""


@pytest.mark.parametrize(("problem", "net"), HYPERPARAMETERS)
def test_the_paper_recipes_follow_its_tables(problem: str, net: str) -> None:
    wanted = {"iterations": 30, "weight_decay": 2e-4, **HYPERPARAMETERS[problem, net]}
    chosen = recipe("paper", problem, net).described()
    assert {name: chosen[name] for name in wanted} == wanted


@pytest.mark.parametrize("word", RECIPES)
@pytest.mark.parametrize("problem", ["prefix-sums", "mazes", "chess", "user-defined"])
@pytest.mark.parametrize("net", ["dt", "dt-recall", "ff", "ff-recall"])
def test_recipes_round_trip_through_json(word: str, problem: str, net: str) -> None:
    chosen = recipe(word, problem, net)
    assert (chosen.name, chosen.net) == (word, net)
    assert Recipe().changed(**json.loads(json.dumps(chosen.described()))) == chosen


def test_the_default_recipe_of_mazes_is_the_one_that_learns_on_a_cpu() -> None:
    assert recipe("quick", "mazes").changed(name="best") == recipe("best", "mazes")
    assert recipe("quick", "mazes", "local-rule") == recipe("quick", "mazes")
    other = recipe("quick", "mazes", "mine:Net")  # best is not made for other networks
    assert (other.net, other.problems, other.pool_slots) == ("mine:Net", "", 512)
    assert recipe("best", "mazes", "dt").width is None, "the paper's, not that of a local rule"


@pytest.mark.parametrize(
    ("changes", "name"), [({}, "paper"), ({"lr": 0.5}, "paper, changed"), ({"name": "my"}, "my")]
)
def test_a_changed_recipe_is_labelled(tmp_path: Path, changes: dict[str, Any], name: str) -> None:
    named = recipe("paper", "prefix-sums", "ff").changed(**changes)
    run = iterant.train("prefix-sums", recipe=named, out=tmp_path / "run", time_limit=1e-9)
    assert run.config["recipe"]["name"] == name


def test_the_plan_equals_the_run() -> None:
    run = uninterrupted()["progressive"]
    chosen = run_summary(iterant.task("prefix-sums"), Recipe().changed(**run.config["recipe"]))
    assert chosen["steps"] == run.status.step == 12
    assert chosen["steps_per_epoch"] * KINDS["progressive"]["epochs"] == chosen["steps"]
    assert json.loads(json.dumps(chosen["network"])) == run.config["net"]
    assert (chosen["problems"], chosen["held_out"], chosen["size"]) == (40, 10, 8)
