"""The maze task: samples, text, descriptions, verdicts and edits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from numpy.typing import NDArray
from test_grid import mazes, plain_path

from iterant.errors import TaskError
from iterant.tasks.inputs import gather
from iterant.tasks.mazes.grid import END, START, from_image, to_image, to_pixels
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.protocol import Batch

TASK = Mazes()


def solution(cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The path by breadth-first search, as cells."""
    path = np.zeros_like(cells)
    path[tuple(np.array(plain_path(cells)).T)] = 1
    return path


@pytest.mark.parametrize("size", [9, 13, 33, 59])
def test_mazes_of_the_authors_generator(size: int, shared_data: Path) -> None:
    with np.load(shared_data / "mazes-format" / f"authors_generator_maze_{size}.npz") as file:
        inputs, solutions = file["inputs"], file["solutions"]
        length, ends = file["length"], file["start_end"]
    grids = from_image(inputs)
    assert grids.shape[1:] == (size, size)
    assert np.array_equal(to_image(grids), inputs)
    for maze, cells in enumerate(grids):
        path = solution(cells)
        assert np.array_equal(np.kron(path, np.ones((2, 2))), solutions[maze][3:-3, 3:-3])
        assert path.sum() - 1 == length[maze]
        column, row, end_column, end_row = (2 * ends[maze]).tolist()
        assert cells[row, column] == START
        assert cells[end_row, end_column] == END
    assert solutions.sum() == solutions[:, 3:-3, 3:-3].sum()
    ours = TASK.sample(2, size=size)
    assert ours.inputs.shape[1:] == inputs.shape[1:]
    assert ours.targets.shape[1:] == solutions.shape[1:]


@pytest.mark.parametrize(("size", "count"), [(3, 50), (13, 80), (59, 3)])
def test_targets_are_the_path(size: int, count: int) -> None:
    batch = TASK.sample(count, size=size, seed=6)
    paths = np.stack([solution(cells) for cells in from_image(batch.inputs)])
    assert np.array_equal(to_pixels(paths), batch.targets.numpy())
    assert np.array_equal(paths.sum(axis=(1, 2)), batch.extras["path_length"] + 1)


def test_encoding_a_drawn_maze() -> None:
    batch = TASK.encode("S.#\n#.#\n#.G")
    assert batch.inputs.shape == (1, 3, 12, 12)
    assert from_image(batch.inputs).tolist() == [[[2, 1, 0], [0, 1, 0], [0, 1, 3]]]
    assert batch.targets[0, 3:-3:2, 3:-3:2].tolist() == [[1, 1, 0], [0, 1, 0], [0, 1, 1]]
    assert batch.extras["path_length"].tolist() == [4]
    assert batch.extras["solvable"].tolist() == [True]
    assert batch.labelled
    with pytest.raises(TaskError, match="at most 2001 squares per side"):
        TASK.encode("S" + 2000 * "." + "E")


@given(mazes())
@settings(deadline=None, max_examples=60)
def test_text_reads_back(cells: NDArray[np.uint8]) -> None:
    text = "\n".join("".join("#.SE"[code] for code in row) for row in cells)
    batch = TASK.encode(text)
    described = TASK.describe(batch).text
    inner = "\n".join(line[1:-1] for line in described.splitlines()[1:-1])
    again = TASK.encode(described)
    assert torch.equal(again.inputs, batch.inputs)
    assert torch.equal(again.targets, batch.targets)
    # A ring of walls drawn by hand is the one that the description draws.
    assert text in (inner.replace("*", "."), described.replace("*", "."))


def test_a_prediction_is_laid_over_the_maze() -> None:
    batch = TASK.encode("S..\n##.\nE..")
    problem = TASK.describe(Batch(batch.inputs, torch.full_like(batch.targets, -1)))
    assert np.array_equal(problem.cells, (batch.inputs[0].permute(1, 2, 0) * 255).numpy())
    assert problem.text.splitlines() == ["#####", "#S..#", "###.#", "#E..#", "#####"]
    right = TASK.describe(batch, prediction=batch.targets)
    assert [entry.sign for entry in right.legend] == ["#", "S", "E", "*"]
    assert right.text.splitlines() == ["#####", "#S**#", "###*#", "#E**#", "#####"]
    answer = batch.targets.clone()
    answer[0, 3, 3] = 0  # a pixel of the start
    answer[0, 3, 5] = 0  # a pixel of the path
    answer[0, 5, 3] = 1  # a pixel of a wall
    answer[0, 2, 7] = 1  # a pixel of the wall around
    wrong = TASK.describe(batch, prediction=answer)
    assert wrong.text.splitlines() == ["###x#", "#so*#", "#x#*#", "#E**#", "#####"]
    assert len({tuple(wrong.cells[place]) for place in [(3, 4), (3, 5), (5, 3), (3, 6)]}) == 4
    assert "path of 7 squares, 4 squares wrong" in wrong.caption


@pytest.mark.parametrize("size", [3, 5, 9, 13])
def test_shortened_mazes(size: int) -> None:
    batch = TASK.sample(60, size=size, seed=2)
    shorter, rows = TASK.shorten(batch)
    before, after = from_image(batch.inputs), from_image(shorter.inputs)
    paths = [plain_path(cells) for cells in before]
    assert rows.tolist() == [row for row, path in enumerate(paths) if len(path) > 3]
    for place, row in enumerate(rows.tolist()):
        path = plain_path(after[place])
        assert path == paths[row][:-2]
        changed = {tuple(cell) for cell in np.argwhere(after[place] != before[row]).tolist()}
        assert changed == {paths[row][-1], path[-1]}
        assert np.array_equal(shorter.targets[place].numpy(), to_pixels(solution(after[place])))
        assert shorter.extras["path_length"][place] == len(path) - 1
    with pytest.raises(TaskError, match=r"no known path .*; sample larger mazes"):
        TASK.shorten(TASK.encode("S.E"))


def test_a_maze_without_a_path() -> None:
    [problem] = gather(TASK, "S#E").problems
    batch = problem.batch
    assert not batch.labelled
    assert batch.extras["solvable"].tolist() == [False]
    assert problem.unsolvable == "no way leads from start to end"
    with pytest.raises(TaskError, match="no known path"):
        TASK.shorten(batch)
    answer = torch.zeros_like(batch.targets)
    answer[0, 3:5, 3:5] = 1
    drawn = TASK.describe(batch, prediction=answer)
    assert "not known" in drawn.caption
    assert drawn.text.splitlines()[1] == "#S#E#"


# A loop: two ways of one length, of which the label is one.
LOOP = "S..\n.#.\n..E"


@pytest.mark.parametrize(
    ("marked", "connected", "words"),
    [
        (["***", "..*", "..*"], True, "another shortest way from start to end"),
        (["*..", "*..", "***"], True, "one way from start to end"),
        (["***", "*.*", "***"], True, "with more marked beside a shortest way"),
        (["***", "..*", "*.*"], True, "with more marked beside a shortest way"),
        (["***", "...", "..*"], False, "start and end are not joined"),
        (["...", "...", "..."], False, "no way is marked"),
        (["**.", "***", "..*"], False, "start and end are not joined"),  # through the wall
    ],
)
def test_which_answers_are_paths(marked: list[str], connected: bool, words: str) -> None:
    batch = TASK.encode(LOOP)
    cells = np.array([[sign == "*" for sign in line] for line in marked], dtype=np.uint8)
    prediction = torch.from_numpy(to_pixels(cells)).long()[None]
    misses, verdict = TASK.near_misses(prediction, batch), TASK.verdict(batch, 0, prediction)
    valid = words.endswith("from start to end")
    assert (bool(misses.connected[0]), bool(misses.valid[0])) == (connected, valid)
    assert misses.wrong[0] == (prediction != batch.targets).sum()
    assert verdict.legal is valid
    assert verdict.words.endswith(words)
    count = int(cells.sum())
    assert TASK.answer_text(batch, 0, prediction) == f"{count} squares: {verdict.words}"


def test_a_longer_way_is_a_way_but_not_a_shortest() -> None:
    batch = TASK.encode("S..\n.#.\nE..")
    cells = np.array([[1, 1, 1], [0, 0, 1], [1, 1, 1]], dtype=np.uint8)
    prediction = torch.from_numpy(to_pixels(cells)).long()[None]
    verdict = TASK.verdict(batch, 0, prediction)
    assert (verdict.legal, "4 squares longer" in verdict.words) == (True, True)
    assert not TASK.any_right(prediction, batch)[0]


@pytest.mark.parametrize(
    ("maze", "kind", "words"),
    [
        (LOOP, "start=any", "loops or open rooms"),
        ("S.\n.E", "", "loops or open rooms"),
        ("S.#.\n.E##\n####\n.#.#", "", "loops or open rooms"),  # beside cells that are cut off
        (LOOP, "start=any,p=0.1", ""),
        (LOOP, "start=any,walls=0.3", ""),
        (".S.\n##.\nE..", "", "the start is not a dead end"),
        (".S.\n##.\nE..", "start=any", ""),
        ("S..\n##.\nE..", "", ""),
    ],
)
def test_what_a_maze_has_that_those_of_training_lack(maze: str, kind: str, words: str) -> None:
    what = TASK.unlike(TASK.encode(maze), 0, kind)
    assert words in what
    assert bool(words) == bool(what)


def test_a_loose_pixel_is_no_valid_path() -> None:
    batch = TASK.sample(3, size=5, seed=1)
    loose = batch.targets.clone()
    loose[1, 0, 0] = 1
    misses = TASK.near_misses(loose, batch)
    assert misses.wrong.tolist() == [0, 1, 0]
    assert misses.connected.tolist() == [True] * 3
    assert misses.valid.tolist() == [True, False, True]
    assert TASK.verdict(batch, 1, loose).legal is False
    assert [kind.name for kind in TASK.kinds(TASK.encode(LOOP))] == ["squares of way 0 to 9"]
