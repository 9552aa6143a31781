"""Recipes: the paper's tables, written out once more, and ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import iterant
from iterant import registry
from iterant.errors import TaskError
from iterant.nets import paper_net, parameter_count
from iterant.training import RECIPES, Recipe, recipe
from iterant.training.build import build_network
from iterant.training.recipes import label_changes

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
def test_what_the_text_and_the_code_add(problem: str) -> None:
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


def test_training_sets_are_the_papers() -> None:
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


def test_sums_without_recall_train_slower() -> None:
    made = recipe("paper", "prefix-sums", "dt")
    assert (made.rate, made.alpha) == (1e-4, 1.0)
    assert any("1e-4" in note and "--rate 1e-3" in note for note in made.notes)


def test_the_code_where_it_differs_from_the_table() -> None:
    sums, chess = recipe("paper-code", "prefix-sums"), recipe("paper-code", "chess")
    assert sums.decay == chess.decay == 0.1
    assert (chess.warmup, chess.epochs, chess.milestones) == (10, 130, (100, 115))
    for problem in PROBLEMS:
        told = {"name", "notes", "decay", "warmup", "epochs", "milestones"}
        paper, code = (
            recipe("paper", problem).described(),
            recipe("paper-code", problem).described(),
        )
        assert {name for name in paper if paper[name] != code[name]} <= told


@pytest.mark.parametrize("net", VARIANTS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_notes_name_every_disagreement(problem: str, net: str) -> None:
    paper, code = recipe("paper", problem, net), recipe("paper-code", problem, net)
    said = " ".join(paper.notes)
    words = {"decay": "decay", "warmup": "warm-up", "epochs": "epochs", "milestones": "milestones"}
    for name, word in words.items():
        if getattr(paper, name) != getattr(code, name):
            assert word in said
            assert "--recipe paper-code" in said
            assert word in " ".join(code.notes)
    assert ("open pixels" in said) == (problem == "mazes")


@pytest.mark.parametrize("word", RECIPES)
@pytest.mark.parametrize("problem", [*PROBLEMS, "a-task-of-ones-own"])
@pytest.mark.parametrize("net", VARIANTS)
def test_every_recipe_is_whole_and_survives_json(word: str, problem: str, net: str) -> None:
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
    assert "scripts/train-chess" in made.notes[0]


def test_where_no_recipe_is_better_best_says_so() -> None:
    best, quick = recipe("best", "knots"), recipe("quick", "knots")
    assert best.changed(name="quick", notes=()) == quick.changed(notes=())
    assert "quick" in best.notes[0]


def test_a_seed_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="seed must be a whole number"):
        iterant.training.train("prefix-sums", seed=-1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_changed_recipe_does_not_go_by_its_name() -> None:
    paper = recipe("paper", "mazes", "ff")
    assert label_changes(paper, "mazes") == paper
    other = paper.changed(rate=0.5)
    assert label_changes(other, "mazes") == other.changed(name="paper, changed")
    assert label_changes(label_changes(other, "mazes"), "mazes").name == "paper, changed"
    assert label_changes(Recipe(), "mazes") == Recipe()
