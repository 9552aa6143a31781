"""`scripts/ship` at a tiny scale: what it writes, takes over and refuses."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import iterant
from iterant.draw.figure import save_png
from iterant.io import read_weights, write_result
from iterant.zoo import card
from iterant.zoo.loading import CARD

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "ship"
WORDS = ("--trained-on", "40 strings", "--how", "in a second")
Ship = Callable[..., Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny network for strings, trained from seed 4."""
    out = tmp_path_factory.mktemp("trained") / "run"
    small: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 2, "count": 40, "epochs": 1}
    small |= {"batch_size": 16, "monitor_every": 0, "recipe": "paper", "device": "cpu"}
    return iterant.train("prefix-sums", seed=4, out=out, **small).path


@pytest.fixture
def ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ship:
    """Run the script in a folder of its own and return the folder it wrote."""
    monkeypatch.chdir(tmp_path)
    task = iterant.task("prefix-sums")
    save_png(task.describe(task.sample(1, size=5, seed=1)), tmp_path / "seen.png")

    def shipped(source: Path, *words: str) -> Path:
        options = ["sums", str(source), *words, "--to", "zoo", "--folder", "results"]
        monkeypatch.setattr(sys, "argv", ["ship", *options])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        return tmp_path / "zoo" / "sums"

    return shipped


def result(name: str, solved: int, twice: int) -> str:
    """A result of measure-network on 20 problems of 32 bits."""
    test = {"problems": 20, "solved": {"10": solved, "20": twice}, "test seed": 9}
    write_result(name, {"tests": {"32:20:10": test}}, seed=0, folder="results")
    return name


def test_ship_a_run_and_edit_its_card(ship: Ship, run: Path, tmp_path: Path) -> None:
    words = ("--results", result("one", 20, 20), "--picture", "seen.png", "What it shows", "--half")
    folder = ship(run, *WORDS, *words, "--note", "a note")
    old = card(str(folder))
    keys = ("name", "task", "problems", "seed", "how")
    assert [old[key] for key in keys] == ["sums", "prefix-sums", "", 4, "in a second"]
    figure = {"problems": 20, "iterations": 10, "solved": 20, "twice": 20, "seed": 9}
    assert old["figures"] == {"32": figure}
    assert old["notes"] == ["a note", "stored as float16, computes in float32"]
    text = (folder / CARD).read_text(encoding="utf-8")
    assert "| 32 | 20 | 9 | 10 | 20 = 100.00 % (83.89 to 100.00) | 20 |" in text
    assert "![What it shows](seen.png)" in text
    assert (folder / "seen.png").read_bytes() == (tmp_path / "seen.png").read_bytes()
    assert {tensor.dtype for tensor in read_weights(folder)[1].values()} == {torch.float16}

    before = {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
    ship(folder, "--again", "--note", "another note")
    assert before == {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
    now = card(str(folder))
    assert now == {**old, "notes": ["another note", "stored as float16, computes in float32"]}


@pytest.mark.parametrize("counts", [(19, 20), (20, 19)])
def test_failures_must_be_described(ship: Ship, run: Path, counts: tuple[int, int]) -> None:
    with pytest.raises(SystemExit, match="size 32 show failures"):
        ship(run, *WORDS, "--results", result("lost", *counts))
    with pytest.raises(SystemExit, match="does not say its how; give --how"):
        ship(run, "--trained-on", "40 strings")
    assert not Path("zoo/sums").exists()
