"""Recipes: the paper's tables, ours, fields and files, and plans."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from small_runs import KINDS, begin

import iterant
from iterant import registry
from iterant.errors import RecipeError, TaskError, UnknownName
from iterant.nets import paper_net, parameter_count
from iterant.training import RECIPES, Recipe, recipe
from iterant.training.recipe import label_changes, recipe_from_file
from iterant.training.run import plan
from iterant.training.trainer import build_network

OTHER: dict[str, Any] = {
    "name": "mine", "net": "ff", "width": 8, "head": (4, 2), "group_norm": True, "bounded": True,
    "hidden": 9, "isotropic": False, "messages": True, "masked": True, "size": 16, "count": 500,
    "validation": 0.1, "data_seed": 3, "mirror": True, "objective": "pool", "iterations": 12,
    "alpha": 0.25, "pool_slots": 64, "pool_fresh": 0.4, "pool_stay": 0.5, "pool_swap": 0.2,
    "pool_damage": 0.1, "pool_damage_kinds": ("disc", "jitter"), "pool_shake": 0.1,
    "pool_shake_varied": True, "pool_shortest": 2, "pool_longest": 3, "pool_every": True,
    "pool_settle": 0.3,
    "pool_hard": True, "smoothing": 0.2, "places": 0.1, "optimizer": "sgd", "rate": 0.5,
    "throttle": True, "momentum": 0.8, "beta2": 0.95, "weight_decay": 0.0, "clip": 2.0,
    "average": 0.99, "batch": 20, "epochs": 3, "warmup": 1, "warmup_updates": 7,
    "schedule": "cosine", "hold": 0.5, "milestones": (2,), "decay": 0.5, "validate_every": 2,
    "again_below": 0.9, "choose": "watch", "watch_every": 0, "watch_count": 7,
    "checkpoint_every": 4,
    "precision": "bf16", "notes": ("why",),
}  # fmt: skip
"""Another value for every field."""


class TestChanging:
    def test_every_field_is_covered(self) -> None:
        assert list(OTHER) == [field.name for field in fields(Recipe)]

    @pytest.mark.parametrize("name", OTHER)
    def test_change_one_field(self, name: str) -> None:
        before = Recipe()
        after = before.changed(**{name: OTHER[name]})
        assert getattr(after, name) == OTHER[name] != getattr(before, name)
        assert after.changed(**{name: getattr(before, name)}) == before

    def test_change_every_field_by_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.toml"
        lines = [
            f"{name} = {json.dumps(list(value) if isinstance(value, tuple) else value)}"
            for name, value in OTHER.items()
        ]
        path.write_text("\n".join(lines), encoding="utf-8")
        assert recipe_from_file(path, recipe("paper", "mazes")).described() == OTHER

    @pytest.mark.parametrize(
        ("word", "near"), [("widht", "width"), ("learning_rate", "rate"), ("batchsize", "batch")]
    )
    def test_a_wrong_name_gets_a_suggestion(self, word: str, near: str) -> None:
        with pytest.raises(RecipeError) as caught:
            Recipe().changed(**{word: 1})
        assert repr(word) in str(caught.value)
        assert near in str(caught.value)

    def test_a_wrong_recipe_gets_a_suggestion(self) -> None:
        with pytest.raises(UnknownName, match="did you mean 'paper'"):
            recipe("papper", "mazes")

    def test_a_wrong_network_gets_a_suggestion(self) -> None:
        with pytest.raises(UnknownName, match="did you mean 'dt-recall'"):
            build_network(Recipe(net="dt-recal"), iterant.task("mazes").spec, 0)
        with pytest.raises(UnknownName, match="ff-recall, local-rule; or module:Class"):
            build_network(Recipe(net="resnet"), iterant.task("mazes").spec, 0)


BAD: dict[str, list[Any]] = {
    "beta2": [-0.1, 1.0, "slow"],
    "hold": [-0.1, 1.0, None],
    "pool_settle": [-1, "a little", float("nan")],
    "pool_shake": [-0.1, "much"],
    "pool_shake_varied": [0.5, None],
    "pool_longest": [0, 1.5],
    "pool_hard": [1, None],
    "again_below": [-0.1, 1.1, None],
    "choose": ["test", None],
    "warmup_updates": [-1, 0.5],
    "alpha": [-0.1, 1.1, float("nan"), "half", None, True],
    "iterations": [0, -1, 2.5, "30", True],
    "rate": [0, -1e-3, float("inf"), float("nan"), "fast", None],
    "batch": [0, 1.5, None],
    "epochs": [0, -3],
    "count": [0, -1, 2.5, "all"],
    "width": [0, "wide"],
    "head": [(0,), ("a",), 5],
    "validation": [-0.1, 0.95, 1],
    "smoothing": [1.0, -0.1],
    "clip": [0, -1, "no"],
    "average": [0, 1, 1.5, "yes"],
    "weight_decay": [-1e-4, float("inf"), None],
    "warmup": [-1],
    "milestones": [5, ("a",), (-1,)],
    "decay": [2.0],
    "throttle": ["yes", 1, None],
    "objective": ["progresive", "", None],
    "optimizer": ["adm", 3],
    "schedule": ["cosin"],
    "precision": ["fp8", "bf-16"],
    "size": ["9", (1, 2, 3), 0, 1.5],
    "net": [None, 3],
    "pool_fresh": [1.5],
    "pool_stay": [-0.5],
    "pool_swap": [7],
    "places": [2],
    "data_seed": [-1],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_bad_values_are_refused_by_name(name: str, value: Any) -> None:
    for make in (Recipe().changed, Recipe):
        with pytest.raises(RecipeError) as caught:
            make(**{name: value})
        message = str(caught.value)
        assert "\n" not in message
        assert name in message
        assert repr(value) in message


@pytest.mark.parametrize("name", [field.name for field in fields(Recipe)])
def test_every_field_is_checked(name: str) -> None:
    with pytest.raises(RecipeError, match=name):
        Recipe().changed(**{name: object()})


class TestFiles:
    def test_a_folder(self) -> None:
        with pytest.raises(RecipeError, match=r"cannot read the recipe file \.: "):
            recipe_from_file(Path(), Recipe())

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match=r"cannot read the recipe file none\.toml"):
            recipe_from_file(tmp_path / "none.toml", Recipe())

    @pytest.mark.parametrize(
        "content", [b"rate = ", b"{'rate': 1}", b"\xff\xfe\x00", b"rate = 1\nrate = 2"]
    )
    def test_a_broken_file(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "broken.toml"
        path.write_bytes(content)
        with pytest.raises(RecipeError, match=r"broken\.toml is not a TOML file") as caught:
            recipe_from_file(path, Recipe())
        assert "\n" not in str(caught.value)

    def test_an_endless_file(self) -> None:
        with pytest.raises(RecipeError, match="zero is larger than 1 MiB, too large for a recipe"):
            recipe_from_file(Path("/dev/zero"), Recipe())

    @pytest.mark.parametrize("content", ["speed = 3", "[optimizer]\nrate = 1", "alpha = 2"])
    def test_a_file_with_wrong_fields(self, tmp_path: Path, content: str) -> None:
        path = tmp_path / "mine.toml"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(RecipeError):
            recipe_from_file(path, Recipe())


HYPERPARAMETERS: dict[tuple[str, str], dict[str, Any]] = {
    ("prefix-sums", "dt-recall"): {
        "optimizer": "adam", "rate": 0.001, "schedule": "steps", "milestones": (60, 100),
        "decay": 0.01, "warmup": 10, "epochs": 150, "clip": 1.0,
    },
    ("mazes", "dt-recall"): {
        "optimizer": "adam", "rate": 0.001, "schedule": "constant", "milestones": (), "warmup": 10,
        "epochs": 50, "clip": None,
    },
    ("mazes", "ff"): {
        "optimizer": "adam", "rate": 0.0001, "schedule": "steps", "milestones": (175,),
        "decay": 0.1, "warmup": 10, "epochs": 200, "clip": None,
    },
    ("chess", "dt-recall"): {
        "optimizer": "sgd", "rate": 0.01, "schedule": "steps", "milestones": (100, 110),
        "decay": 0.01, "warmup": 3, "epochs": 120, "clip": None, "momentum": 0.9,
    },
}  # fmt: skip
"""The paper's table of hyperparameters, row by row."""

TEXT: dict[str, dict[str, Any]] = {
    "prefix-sums": {"alpha": 1.0, "batch": 100, "throttle": False},
    "mazes": {"alpha": 0.01, "batch": 50, "throttle": True},
    "chess": {"alpha": 0.5, "batch": 300, "throttle": False},
}
"""The paper's α, and what it leaves out: batches, throttle."""

ARCHITECTURES = {
    "prefix-sums": (400, (400, 200), 3_123_600, "argmax"),
    "mazes": (128, (32, 8), 783_504, "argmax-open"),
    "chess": (512, (32, 8), 12_056_976, "two-best"),
}
"""Width and head of the paper's table, and the parameters and readouts that follow."""

PROBLEMS = tuple(TEXT)
VARIANTS = ("dt", "dt-recall", "ff", "ff-recall")


@pytest.mark.parametrize(("problem", "net"), HYPERPARAMETERS)
def test_the_table_of_hyperparameters(problem: str, net: str) -> None:
    made = recipe("paper", problem, net).described()
    assert {name: made[name] for name in HYPERPARAMETERS[problem, net]} == HYPERPARAMETERS[
        problem, net
    ]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_values_from_the_papers_text_and_code(problem: str) -> None:
    made = recipe("paper", problem).described()
    assert {name: made[name] for name in TEXT[problem]} == TEXT[problem]
    shared = {"objective": "progressive", "iterations": 30, "weight_decay": 2e-4,
              "validation": 0.2, "smoothing": 0.0, "average": None, "precision": "fp32",
              "group_norm": False, "size": None, "count": None}  # fmt: skip
    assert {name: made[name] for name in shared} == shared


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_table_of_architectures(problem: str) -> None:
    width, head, parameters, readout = ARCHITECTURES[problem]
    made = recipe("paper", problem)
    assert made.width is None
    assert made.head is None
    config = paper_net(problem, "dt-recall")
    assert (config.width, config.head, config.readout) == (width, head, readout)
    _, described = build_network(made.changed(width=8, head=(4,)), iterant.task(problem).spec, 0)
    assert described["config"]["readout"] == readout
    assert dict(iterant.nets.catalogue())[f"{problem} dt-recall"] == parameters


def test_training_sets_of_the_paper() -> None:
    sets = {name: (iterant.task(name).spec.train_size, iterant.task(name).spec.train_count)
            for name in PROBLEMS}  # fmt: skip
    assert sets == {
        "prefix-sums": (32, 10_000),
        "mazes": (9, 50_000),
        "chess": ((0, 600_000), 600_000),
    }


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("net", ["ff", "ff-recall"])
def test_feed_forward_networks_have_no_progressive_loss_and_no_throttle(
    problem: str, net: str
) -> None:
    made = recipe("paper", problem, net)
    assert (made.alpha, made.throttle) == (0.0, False)


def test_learning_rate_of_dt_on_prefix_sums() -> None:
    made = recipe("paper", "prefix-sums", "dt")
    assert (made.rate, made.alpha) == (1e-4, 1.0)
    assert any("1e-4" in note and "--rate 1e-3" in note for note in made.notes)


def test_paper_code_differs_only_where_the_code_does() -> None:
    sums, chess = recipe("paper-code", "prefix-sums"), recipe("paper-code", "chess")
    assert sums.decay == chess.decay == 0.1
    assert (chess.warmup, chess.epochs, chess.milestones) == (10, 130, (100, 115))
    for problem in PROBLEMS:
        differing = {"name", "notes", "decay", "warmup", "epochs", "milestones"}
        paper, code = (
            recipe("paper", problem).described(),
            recipe("paper-code", problem).described(),
        )
        assert {name for name in paper if paper[name] != code[name]} <= differing


@pytest.mark.parametrize("word", RECIPES)
@pytest.mark.parametrize("problem", [*PROBLEMS, "a-task-of-ones-own"])
@pytest.mark.parametrize("net", VARIANTS)
def test_recipes_round_trip_through_json(word: str, problem: str, net: str) -> None:
    made = recipe(word, problem, net)
    assert (made.name, made.net) == (word, net)
    assert registry.recipe(word, problem, net) == made
    assert Recipe().changed(**json.loads(json.dumps(made.described()))) == made


@pytest.mark.parametrize(("problem", "count"), [("prefix-sums", 4402), ("mazes", 622)])
def test_the_best_recipe_trains_a_small_local_rule(problem: str, count: int) -> None:
    made = recipe("best", problem)
    assert (made.name, made.net, made.objective) == ("best", "local-rule", "pool")
    assert recipe("best", problem, "local-rule") == made
    net, described = build_network(made, iterant.task(problem).spec, 0)
    assert described["kind"] == "local-rule"
    assert parameter_count(net) == count
    # Another network by the same recipe has the paper's width.
    other, _ = build_network(recipe("best", problem, "dt-recall"), iterant.task(problem).spec, 0)
    assert parameter_count(other) == ARCHITECTURES[problem][2]


def test_the_best_recipe_for_chess_trains_the_papers_network_at_half_its_width() -> None:
    made = recipe("best", "chess")
    assert (made.name, made.net, made.objective) == ("best", "dt-recall", "pool")
    net, _ = build_network(made, iterant.task("chess").spec, 0)
    assert parameter_count(net) == 3_080_592
    assert "--start" in made.notes[0]


def test_best_of_other_tasks_is_quick() -> None:
    best, quick = recipe("best", "knots"), recipe("quick", "knots")
    assert best.changed(name="quick", notes=()) == quick.changed(notes=())
    assert "quick" in best.notes[0]


def test_a_bad_seed_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="seed must be a whole number"):
        iterant.training.train("prefix-sums", seed=-1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_changed_recipe_is_labelled() -> None:
    paper = recipe("paper", "mazes", "ff")
    assert label_changes(paper, "mazes") == paper
    other = paper.changed(rate=0.5)
    assert label_changes(other, "mazes") == other.changed(name="paper, changed")
    assert label_changes(label_changes(other, "mazes"), "mazes").name == "paper, changed"
    assert label_changes(Recipe(), "mazes") == Recipe()


def test_the_plan_equals_the_run(tmp_path: Path) -> None:
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
def test_plans_of_the_paper(task: str, parameters: int, updates: int) -> None:
    made = plan(iterant.task(task), recipe("paper", task))
    assert (made.parameters, made.updates) == (parameters, updates)


def test_a_plan_refuses_what_a_run_refuses() -> None:
    with pytest.raises(RecipeError, match="batch of 9000"):
        plan(iterant.task("prefix-sums"), recipe("paper", "prefix-sums").changed(batch=9000))
