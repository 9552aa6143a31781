"""Recipes: the paper's tables, ours, fields and files, and plans."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from small_runs import KINDS, begin

import iterant
from iterant.errors import RecipeError, UsageError
from iterant.nets import parameter_count
from iterant.training import RECIPES, Recipe, recipe
from iterant.training.recipe import label_changes, recipe_from_file
from iterant.training.run import plan
from iterant.training.trainer import build_network

OTHER: dict[str, Any] = {
    "name": "mine", "net": "ff", "width": 8, "head": (4, 2), "group_norm": True, "bounded": True,
    "hidden": 9, "isotropic": False, "messages": True, "masked": True, "size": 16, "count": 500,
    "problems": "start=any", "validation": 0.1, "data_seed": 3, "mirror": True,
    "objective": "pool", "iterations": 12,
    "alpha": 0.25, "pool_slots": 64, "pool_fresh": 0.4, "pool_stay": 0.5, "pool_swap": 0.2,
    "pool_damage": 0.1, "pool_damage_kinds": ("disc", "jitter"), "pool_noise": 0.1,
    "pool_noise_varied": True, "pool_shortest": 2, "pool_longest": 3, "pool_every": True,
    "pool_settle": 0.3,
    "pool_until_solved": True, "smoothing": 0.2, "places": 0.1, "optimizer": "sgd", "rate": 0.5,
    "throttle": True, "momentum": 0.8, "beta2": 0.95, "weight_decay": 0.0, "clip": 2.0,
    "average": 0.99, "batch": 20, "epochs": 3, "warmup": 1, "warmup_updates": 7,
    "schedule": "cosine", "hold": 0.5, "milestones": (2,), "decay": 0.5, "validate_every": 2,
    "restart_below": 0.9, "choose": "watch", "watch_every": 0, "watch_count": 7,
    "checkpoint_every": 4,
    "precision": "bf16", "notes": ("why",),
}  # fmt: skip
"""Another value for every field."""


def test_every_field_can_be_changed_by_a_file(tmp_path: Path) -> None:
    assert list(OTHER) == [field.name for field in fields(Recipe)]
    path = tmp_path / "mine.toml"
    lines = [
        f"{name} = {json.dumps(list(value) if isinstance(value, tuple) else value)}"
        for name, value in OTHER.items()
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    changed = recipe_from_file(path, recipe("paper", "mazes"))
    assert {name: getattr(changed, name) for name in OTHER} == OTHER


def test_former_names_of_fields_are_read(tmp_path: Path) -> None:
    """In JSON, files and flags; JSON is written with them."""
    old = {"pool_shake": 0.2, "pool_shake_varied": True, "pool_hard": True, "again_below": 0.5}
    new = Recipe(pool_noise=0.2, pool_noise_varied=True, pool_until_solved=True, restart_below=0.5)
    assert Recipe().changed(**old) == new
    assert new.described().items() >= old.items()
    assert len(new.described()) == len(fields(Recipe))
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in old.items()))
    assert recipe_from_file(path, Recipe()) == new


BAD: dict[str, list[Any]] = {
    "alpha": [-0.1, 1.1, float("nan"), "half", None, True], "iterations": [0, 2.5, "30", True],
    "rate": [0, float("inf"), None], "average": [0, 1, "yes"], "clip": [0, "no"], "hold": [1.0],
    "pool_longest": [0, 1.5], "pool_until_solved": [1, None],
    "pool_damage_kinds": [(), ("zero",), "zeros"],
    "weight_decay": [-1e-4], "head": [(0,), ("a",), 5], "milestones": [5, ("a",), (-1,)],
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
    assert repr(value) in message


@pytest.mark.parametrize("name", [field.name for field in fields(Recipe)])
def test_every_field_is_checked(name: str) -> None:
    with pytest.raises(RecipeError, match=name):
        Recipe().changed(**{name: object()})


@pytest.mark.parametrize(
    "content",
    [None, b"rate = ", b"\xff\xfe", b"rate = 1\nrate = 2", b"speed = 3", b"alpha = 2"],
)
def test_a_bad_recipe_file(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)
    for bad in (path, tmp_path, Path("/dev/zero")):
        with pytest.raises(UsageError) as caught:
            recipe_from_file(bad, Recipe())
        assert "\n" not in str(caught.value)


HYPERPARAMETERS: dict[tuple[str, str], dict[str, Any]] = {
    ("prefix-sums", "dt-recall"): {
        "optimizer": "adam", "rate": 0.001, "schedule": "steps", "milestones": (60, 100),
        "decay": 0.01, "warmup": 10, "epochs": 150, "clip": 1.0, "alpha": 1.0, "batch": 100,
        "throttle": False,
    },
    ("mazes", "dt-recall"): {
        "optimizer": "adam", "rate": 0.001, "schedule": "constant", "milestones": (), "warmup": 10,
        "epochs": 50, "clip": None, "alpha": 0.01, "batch": 50, "throttle": True,
    },
    ("mazes", "ff"): {
        "optimizer": "adam", "rate": 0.0001, "schedule": "steps", "milestones": (175,),
        "decay": 0.1, "warmup": 10, "epochs": 200, "clip": None,
    },
    ("chess", "dt-recall"): {
        "optimizer": "sgd", "rate": 0.01, "schedule": "steps", "milestones": (100, 110),
        "decay": 0.01, "warmup": 3, "epochs": 120, "clip": None, "momentum": 0.9, "alpha": 0.5,
        "batch": 300, "throttle": False,
    },
}  # fmt: skip
"""The paper's table of hyperparameters and its α; batches and throttle from the authors' code."""

SHARED: dict[str, Any] = {
    "objective": "progressive", "iterations": 30, "weight_decay": 2e-4, "validation": 0.2,
    "smoothing": 0.0, "average": None, "precision": "fp32", "group_norm": False, "size": None,
    "count": None, "width": None, "head": None,
}  # fmt: skip

PROBLEMS = ("prefix-sums", "mazes", "chess")
VARIANTS = ("dt", "dt-recall", "ff", "ff-recall")


@pytest.mark.parametrize(("problem", "net"), HYPERPARAMETERS)
def test_the_paper_recipes_follow_its_tables(problem: str, net: str) -> None:
    wanted = {**SHARED, **HYPERPARAMETERS[problem, net]}
    chosen = recipe("paper", problem, net).described()
    assert {name: chosen[name] for name in wanted} == wanted


def test_paper_code_differs_only_where_the_code_does() -> None:
    sums, chess = recipe("paper-code", "prefix-sums"), recipe("paper-code", "chess")
    assert sums.decay == chess.decay == 0.1
    assert (chess.warmup, chess.epochs, chess.milestones) == (10, 130, (100, 115))
    for problem in PROBLEMS:
        differing = {"name", "notes", "decay", "warmup", "epochs", "milestones"}
        paper, code = (recipe(word, problem).described() for word in ("paper", "paper-code"))
        assert {name for name in paper if paper[name] != code[name]} <= differing


def test_the_recipe_of_a_task_without_figures_in_the_paper() -> None:
    chosen = recipe("paper", "user-defined")
    assert (chosen.batch, chosen.epochs, chosen.rate) == (100, 50, 0.001)


@pytest.mark.parametrize("word", RECIPES)
@pytest.mark.parametrize("problem", [*PROBLEMS, "user-defined"])
@pytest.mark.parametrize("net", VARIANTS)
def test_recipes_round_trip_through_json(word: str, problem: str, net: str) -> None:
    chosen = recipe(word, problem, net)
    assert (chosen.name, chosen.net) == (word, net)
    assert Recipe().changed(**json.loads(json.dumps(chosen.described()))) == chosen


@pytest.mark.parametrize(
    ("problem", "count", "usual"), [("prefix-sums", 4402, 3_123_600), ("mazes", 622, 783_504)]
)
def test_the_best_recipe_trains_a_small_local_rule(problem: str, count: int, usual: int) -> None:
    chosen = recipe("best", problem)
    assert (chosen.name, chosen.net, chosen.objective) == ("best", "local-rule", "pool")
    assert recipe("best", problem, "local-rule") == chosen
    net, described = build_network(chosen, iterant.task(problem).spec, 0)
    assert described["kind"] == "local-rule"
    assert parameter_count(net) == count
    # Another network by the same recipe has the paper's width.
    other, _ = build_network(recipe("best", problem, "dt-recall"), iterant.task(problem).spec, 0)
    assert parameter_count(other) == usual


def test_a_changed_recipe_is_labelled() -> None:
    paper = recipe("paper", "mazes", "ff")
    assert label_changes(paper, "mazes") == paper
    other = paper.changed(rate=0.5)
    assert label_changes(other, "mazes") == other.changed(name="paper, changed")
    assert label_changes(label_changes(other, "mazes"), "mazes").name == "paper, changed"
    assert label_changes(Recipe(), "mazes") == Recipe()


def test_the_plan_equals_the_run(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")
    chosen = plan(iterant.task("prefix-sums"), Recipe().changed(**run.config["recipe"]))
    assert chosen["updates"] == run.status.step == 12
    assert chosen["updates_per_epoch"] * KINDS["progressive"]["epochs"] == chosen["updates"]
    assert json.loads(json.dumps(chosen["network"])) == run.config["net"]
    assert chosen["parameters"] == sum(
        weight.numel() for name, weight in run.load("best")[0].items() if name.startswith("net.")
    )
    assert (chosen["problems"], chosen["held_out"], chosen["size"]) == (40, 10, 8)
