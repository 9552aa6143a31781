"""Fields of a recipe: each can be changed, by name, flag or file, and refuses what is wrong."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import iterant
from iterant.errors import RecipeError, UnknownName
from iterant.training import Recipe, recipe
from iterant.training.build import build_network
from iterant.training.recipe import recipe_from_file

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
    def test_every_field_is_listed_here(self) -> None:
        assert list(OTHER) == [field.name for field in fields(Recipe)]

    @pytest.mark.parametrize("name", OTHER)
    def test_every_field_can_be_changed_and_nothing_else_changes(self, name: str) -> None:
        before = Recipe()
        after = before.changed(**{name: OTHER[name]})
        assert getattr(after, name) == OTHER[name] != getattr(before, name)
        assert after.changed(**{name: getattr(before, name)}) == before

    def test_every_field_can_be_changed_by_a_file(self, tmp_path: Path) -> None:
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
def test_bad_values_are_refused_in_a_line_that_names_them(name: str, value: Any) -> None:
    for make in (Recipe().changed, Recipe):
        with pytest.raises(RecipeError) as caught:
            make(**{name: value})
        message = str(caught.value)
        assert "\n" not in message
        assert name in message
        assert repr(value) in message


@pytest.mark.parametrize("name", [field.name for field in fields(Recipe)])
def test_no_field_takes_anything(name: str) -> None:
    with pytest.raises(RecipeError, match=name):
        Recipe().changed(**{name: object()})


class TestFiles:
    def test_this_folder(self) -> None:
        with pytest.raises(RecipeError, match=r"cannot read the recipe file \.: "):
            recipe_from_file(Path(), Recipe())

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match=r"cannot read the recipe file none\.toml"):
            recipe_from_file(tmp_path / "none.toml", Recipe())

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(RecipeError, match="cannot read"):
            recipe_from_file(tmp_path, Recipe())

    @pytest.mark.parametrize(
        "content", [b"rate = ", b"{'rate': 1}", b"\xff\xfe\x00", b"rate = 1\nrate = 2"]
    )
    def test_a_broken_file(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "broken.toml"
        path.write_bytes(content)
        with pytest.raises(RecipeError, match=r"broken\.toml is not a TOML file") as caught:
            recipe_from_file(path, Recipe())
        assert "\n" not in str(caught.value)

    def test_a_file_without_end_is_not_read_to_its_end(self) -> None:
        with pytest.raises(RecipeError, match="zero is larger than 1 MiB, too large for a recipe"):
            recipe_from_file(Path("/dev/zero"), Recipe())

    @pytest.mark.parametrize("content", ["speed = 3", "[optimizer]\nrate = 1", "alpha = 2"])
    def test_a_file_that_says_something_else(self, tmp_path: Path, content: str) -> None:
        path = tmp_path / "mine.toml"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(RecipeError):
            recipe_from_file(path, Recipe())
