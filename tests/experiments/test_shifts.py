"""Tests on mazes unlike the paper's: records that can be continued, tables and heat maps."""

from __future__ import annotations

import hashlib
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from iterant.draw.plots import heat_maps_figure
from iterant.errors import RunError, UsageError
from iterant.experiments.figures import pictures, save_pictures
from iterant.experiments.records import ANY, keep_record, read_records
from iterant.experiments.report import results_page
from iterant.experiments.shifts import (
    BENCHMARKS,
    GRID,
    MAZE_EXPERIMENTS,
    MazeTest,
    maze_hard,
    measure_mazes,
    measure_test,
)
from iterant.io import read_lines
from iterant.tasks.mazes.grid import descend, distances, from_image
from iterant.zoo import load
from iterant.zoo.loading import folder_of

TINY = tuple(MazeTest(5, f"start={start},p=0", 4) for start in ("dead-end", "any"))


def keep_cells(
    folder: Path, seed: int, solved: dict[str, int], model: str = "mine", problems: int = 100
) -> None:
    """A record of 100 mazes of each kind: this many by any shortest path, one fewer exactly."""
    tests = {
        f"{name}:{problems}:1000": {
            "problems": problems, "solved": {"1000": count - 1, "4000": count},
            ANY: {"1000": count, "4000": count}, "answers changed": 2,
        }
        for name, count in solved.items()
    }  # fmt: skip
    about = {"model": model, "seed": seed, "finished": True, "reduced": {}, "studies": {},
             "parameters": 1234, "tests": tests}  # fmt: skip
    keep_record(folder, f"{model}-s{seed}", about, seed)


def test_the_grid_is_that_of_knutson_et_al() -> None:
    assert len(GRID) == len({test.key for test in GRID}) == 10 * 11 * 2
    assert GRID[0].key == "9 start=dead-end,p=0:100:1000"
    assert GRID[-1].key == "99 start=any,p=0.99:100:9801"


def test_it_needs_neither_rich_nor_cyclopts() -> None:
    """Networks are also tested where only torch, numpy and safetensors are installed."""
    code = "import sys; sys.modules.update(rich=None, cyclopts=None, matplotlib=None); import "
    subprocess.run([sys.executable, "-c", f"{code}iterant.experiments.shifts"], check=True)


def without_seconds(path: Path) -> list[dict[str, Any]]:
    tests = [line["figures"]["tests"] for line in read_lines(path)]
    return [{key: {**test, "seconds": 0} for key, test in some.items()} for some in tests]


def test_an_interrupted_grid_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "mazes.jsonl"
    lines: list[str] = []
    assert measure_mazes(["mazes"], TINY, path, budget=1e-9, say=lines.append) == 2
    assert not path.exists()
    assert not lines
    assert measure_mazes(["mazes"], TINY[:1], path, say=lines.append) == 0
    first = path.read_bytes()
    assert measure_mazes(["mazes"], TINY, path, processes=2, say=lines.append) == 0
    assert [line.partition(", ")[2].partition(" in ")[0] for line in lines] == [
        "mazes-s0, 5 start=dead-end,p=0: 4 and 4 of 4", "mazes-s0, 5 start=any,p=0: 4 and 4 of 4"
    ]  # fmt: skip
    assert path.read_bytes().startswith(first), "what was measured keeps its commit and machine"
    one, other = without_seconds(path)
    measure_mazes(["mazes"], TINY, tmp_path / "all.jsonl", say=lines.append)
    assert without_seconds(tmp_path / "all.jsonl") == [one | other]
    assert [(record.model, record.seed) for record in read_records(path).all] == [("mazes", 0)] * 2
    with pytest.raises(RunError, match="recorded twice"):
        read_records(path, tmp_path / "all.jsonl")


def test_two_networks_of_one_name_and_seed_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        shutil.copytree(folder_of("mazes"), tmp_path / folder / "m-s0")
    with pytest.raises(UsageError, match="two networks are m-s0"):
        measure_mazes([tmp_path / "a" / "m-s0", tmp_path / "b" / "m-s0"], TINY, tmp_path / "x")


class Forgetful:
    """Marks the right path until iteration 2,000, then nothing; never at rest."""

    def __init__(self, path: Tensor, depth: int | None = None) -> None:
        self.path, self.depth = path, depth

    def read(self, inputs: Tensor) -> Tensor:
        return inputs

    def start(self, inputs: Tensor) -> Tensor:
        return torch.zeros(len(inputs), 1, 1, 1)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return features + 1

    def answer(self, features: Tensor) -> Tensor:
        marked = self.path * (features[:, 0] < 2000)
        return torch.stack([1 - marked, marked], dim=1)


def test_answers_that_change_later_are_counted() -> None:
    test = MazeTest(5, "start=any,p=0.5", 3)
    _, batch = test.sample()
    net: Any = Forgetful(batch.targets.float())
    figures = measure_test(net, test)
    assert figures["solved"] == figures[ANY] == {"1000": 3, "4000": 0}
    assert (figures["answers changed"], figures["at rest"]) == (3, 0)
    net = Forgetful(batch.targets.float(), depth=12)
    assert measure_test(net, test)["solved"] == {"12": 3}, "feed-forward: after its last layer"
    figures = measure_test(load("mazes"), MazeTest(5, "start=any,p=0", 3))
    assert figures["solved"] == {"1000": 3, "4000": 3}
    assert (figures["answers changed"], figures["at rest"]) == (0, 3)
    assert figures["most iterations"] < 100, "nothing is computed once the state is at rest"


def test_published_mazes_are_known_by_their_content(
    maze_hard_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="not a half of Maze-Hard"):
        maze_hard(maze_hard_files)
    with pytest.raises(UsageError, match="no file all__inputs"):
        maze_hard(maze_hard_files.parent)
    files = [maze_hard_files / f"all__{name}.npy" for name in ("inputs", "labels")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    monkeypatch.setitem(BENCHMARKS, digest, "maze-hard-test")
    hard, unique = maze_hard(maze_hard_files, count=2)
    assert (hard.key, unique.key) == (
        "30 maze-hard-test:2:1000", "29 start=any,path=100-140:2:1000"
    )  # fmt: skip
    assert measure_test(load("mazes"), hard)["solved"] == {"1000": 2, "4000": 2}


@pytest.fixture
def maze_hard_files(tmp_path: Path) -> Path:
    """Two mazes of 30×30 without loops in Maze-Hard's files: 1 wall, 2 free, 3 start, 4 goal."""
    folder = tmp_path / "maze-30x30"
    folder.mkdir()
    _, batch = MazeTest(29, "start=any,p=0", 2).sample()
    mazes = np.pad(from_image(batch.inputs), ((0, 0), (0, 1), (0, 1)))
    inputs = np.array([1, 2, 3, 4], dtype=np.uint8)[mazes].reshape(2, -1)
    steps = distances(mazes)
    labels = np.where(descend(mazes, steps).reshape(2, -1) & (inputs == 2), 5, inputs)
    for name, array in (("inputs", inputs), ("labels", labels)):
        np.save(folder / f"all__{name}.npy", array)
    return folder


def test_table_and_heat_maps_are_means_over_seeds(tmp_path: Path) -> None:
    cells = ("9 start=dead-end,p=0", "9 start=any,p=0.1", "99 start=any,p=0.1")
    for seed, counts in enumerate([(100, 99, 100), (100, 100, 97)]):
        keep_cells(tmp_path, seed, dict(zip(cells, counts, strict=True)))
    keep_cells(tmp_path, 0, {"201 start=any,p=0.1": 95}, model="other")
    # Of two tests of one seed the one with more mazes counts, whichever is read first.
    keep_cells(tmp_path / "a", 0, {cells[0]: 1}, problems=10)
    keep_cells(tmp_path / "z", 1, {cells[0]: 1}, problems=10)
    records = read_records(tmp_path)
    mine, other, *published = MAZE_EXPERIMENTS["maze-shifts"].make_table(records)
    assert mine == {
        "network": "mine", "parameters": "1,234", "trained on": "the paper's mazes", "seeds": "2",
        "dead end, no loops": "100.00 %", "anywhere, no loops": "", "dead end, loops": "",
        "anywhere, loops": "99.00 %",
        "lowest cell": "98.50 % (n = 99, p = 0.1, start anywhere)",
        "cells with ≥ 99 % in every seed": "2 of 3", "exact, all cells": "98.33 %",
        "answers changed after 4 times the iterations": "12 of 600", "201×201, p = 0.1": "",
        "source": "",
    }  # fmt: skip
    assert other["201×201, p = 0.1"] == "95.00 %"
    assert [row["source"] for row in published] == ["arXiv 2410.03020"] * 3
    dead_end, anywhere = pictures(MAZE_EXPERIMENTS["maze-shifts"], records)["maze-shifts-mine"]
    assert dead_end.values[0][0] == 100
    assert (anywhere.values[1][0], anywhere.values[1][-1]) == (99.5, 98.5)
    assert sum(not math.isnan(value) for row in anywhere.values for value in row) == 2
    texts = [text.get_text() for text in heat_maps_figure([anywhere]).axes[0].texts]
    assert texts == ["99.5", "98.5"]
    paths = save_pictures(MAZE_EXPERIMENTS["maze-shifts"], records, tmp_path / "figures")
    assert {path.stem for path in paths} == {"maze-shifts-mine"}, "not of 201×201 alone"


def test_nearly_all_is_not_shown_as_all(tmp_path: Path) -> None:
    cells = {test.name: 100 for test in GRID}
    for seed in range(3):
        keep_cells(tmp_path, seed, cells | {"9 start=any,p=0.1": 99 + min(seed, 1)})
    (row, *_) = MAZE_EXPERIMENTS["maze-shifts"].make_table(read_records(tmp_path))
    assert row["anywhere, loops"] == "99.99 %", "all but one of 30,000"
    assert row["dead end, loops"] == "100.00 %"


def test_maze_hard_beside_published_numbers(tmp_path: Path) -> None:
    for seed, count in enumerate([100, 98]):
        keep_cells(tmp_path / "runs", seed, {"30 maze-hard-test": count, "30 maze-hard": 100})
    records = read_records(tmp_path / "runs")
    rows = MAZE_EXPERIMENTS["maze-hard"].make_table(records)
    assert rows[0] == {
        "network": "mine", "mazes": "Maze-Hard, test half", "parameters": "1,234",
        "exact": "98.00 ± 1.00 %", "any shortest path": "99.00 ± 1.00 %", "seeds": "2",
        "note": "100 mazes", "source": "",
    }  # fmt: skip
    page = results_page(tmp_path).partition("## Past the paper")[2]
    assert "| mine | Maze-Hard, test half | 1,234 | 98.00 ± 1.00 % |" in page
    assert "results/figures/maze-shifts" not in page, "no network was tested on the grid"
