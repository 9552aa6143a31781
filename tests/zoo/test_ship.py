"""`scripts/ship` at a tiny scale: what it writes, what it takes over, what it refuses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest
import torch

import iterant
from iterant.draw.figure import save_png
from iterant.errors import UsageError
from iterant.io import read_weights, write_result
from iterant.zoo import card
from iterant.zoo.cards import CARD, Figure, card_markdown

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "ship"
Ship = Callable[..., Path]


@pytest.fixture(scope="module")
def script() -> Any:
    spec = spec_from_loader("ship", SourceFileLoader("ship", str(SCRIPT)))
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    sys.modules["ship"] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two tiny networks for strings, trained from seeds 4 and 3."""
    folder = tmp_path_factory.mktemp("trained")
    small: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 2, "count": 40, "batch": 16}
    small |= {"epochs": 1, "watch_every": 0, "recipe": "paper", "device": "cpu"}
    return [
        iterant.train("prefix-sums", seed=seed, out=folder / f"s{seed}", **small).path
        for seed in (4, 3)
    ]


@pytest.fixture
def ship(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ship:
    """The script with its words, in a folder of its own; gives the folder it wrote."""
    monkeypatch.chdir(tmp_path)

    def shipped(name: str, source: Path, *words: str) -> Path:
        given = ["ship", name, str(source), *words, "--to", "zoo", "--folder", "results"]
        monkeypatch.setattr(sys, "argv", given)
        script.main()
        return tmp_path / "zoo" / name

    return shipped


def result(name: str, **sizes: tuple[int, int, int]) -> str:
    """A result of measure-network: by size problems, solved, solved at twice."""
    figures = {
        size.replace("_", " "): {
            "problems": of, "iterations": 10, "solved": one, "solved at twice": two, "test seed": 9,
        }
        for size, (of, one, two) in sizes.items()
    }  # fmt: skip
    write_result(name, figures, seed=0, folder="results")
    return name


def drawn(folder: Path) -> Path:
    """A picture for a card."""
    task = iterant.task("prefix-sums")
    return save_png(task.describe(task.sample(1, size=5, seed=1)), folder / "seen.png")


WORDS = ("--trained-on", "40 strings", "--how", "in a second")


def test_ship_a_run(ship: Ship, runs: list[Path], tmp_path: Path) -> None:
    name = result("one", size_32=(20, 20, 20), size_64=(10, 10, 10))
    picture = drawn(tmp_path)
    words = ("--results", name, "--picture", str(picture), "What it shows", "--note", "a note")
    made = card(str(folder := ship("sums", runs[0], *WORDS, *words, "--command", "iterant train")))
    assert (made.name, made.task, made.seed, made.how) == ("sums", "prefix-sums", 4, "in a second")
    assert made.figures == {32: Figure(20, 10, 20, 20, 9), 64: Figure(10, 10, 10, 10, 9)}
    assert made.notes == ("a note",)
    text = (folder / CARD).read_text(encoding="utf-8")
    assert text == card_markdown(made)
    assert "![What it shows](seen.png)" in text
    assert (folder / "seen.png").read_bytes() == picture.read_bytes()


def test_edit_a_card(ship: Ship, runs: list[Path]) -> None:
    folder = ship("sums", runs[0], *WORDS, "--results", result("one", size_32=(9, 9, 9)), "--half")
    before = {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
    first = card(str(folder))
    ship("sums", folder, "--again", "--note", "another note")
    assert before == {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
    now = card(str(folder))
    assert now.notes == ("another note", "stored as float16, computes in float32")
    assert (now.how, now.figures, now.commit) == (first.how, first.figures, first.commit)
    tensors = read_weights(folder)[1]
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}


def test_replace_a_network(ship: Ship, runs: list[Path], tmp_path: Path) -> None:
    picture = drawn(tmp_path)
    words = ("--failures", "all of them", "--picture", str(picture), "What it shows")
    name = result("one", size_2=(20, 20, 20))
    folder = ship("sums", runs[0], *WORDS, *words, "--results", name, "--note", "of that one")
    old = read_weights(folder)[1]
    other = result("two", size_2=(20, 15, 14))
    ship("sums", runs[1], "--again", "--half", "--how", "again", "--results", other)
    now = card(str(folder))
    assert (now.seed, now.how, now.results) == (3, "again", ("two",))
    assert (now.trained_on, now.failures) == ("40 strings", "all of them")
    assert now.pictures == {"seen.png": "What it shows"}
    assert now.notes == ("stored as float16, computes in float32",), "notes are of one network"
    assert now.figures == {2: Figure(20, 10, 15, 14, 9)}
    tensors = read_weights(folder)[1]
    assert not torch.equal(tensors["projection.weight"].float(), old["projection.weight"])
    assert len(list(folder.glob("*.safetensors"))) == 1


@pytest.mark.parametrize("counts", [(20, 19, 20), (20, 20, 19)])
def test_failures_must_be_described(
    ship: Ship, runs: list[Path], counts: tuple[int, int, int], tmp_path: Path
) -> None:
    name = result("lost", size_32=counts)
    with pytest.raises(UsageError, match="size 32 show failures"):
        ship("sums", runs[0], *WORDS, "--results", name)
    assert not (tmp_path / "zoo" / "sums").exists()


def test_missing_arguments(ship: Ship, runs: list[Path]) -> None:
    with pytest.raises(UsageError, match="does not say its how; give --how"):
        ship("sums", runs[0], "--trained-on", "40 strings")
