"""The maze task: samples, text, descriptions, verdicts and edits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.tasks.mazes.generate import (
    END,
    START,
    WALL,
    shortest_path,
    to_image,
    to_lattice,
    to_pixels,
)
from iterant.tasks.mazes.task import Mazes, read_maze
from iterant.tasks.protocol import Batch

TASK = Mazes()


def path_of(squares: NDArray[np.uint8]) -> list[tuple[int, int]]:
    start, end = (tuple(np.argwhere(squares == code)[0].tolist()) for code in (START, END))
    return shortest_path(squares != WALL, start, end)


def solution(lattice: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The path by breadth-first search, as squares."""
    path = np.zeros_like(lattice)
    path[tuple(np.array(path_of(lattice)).T)] = 1
    return path


@pytest.mark.parametrize("size", [9, 13, 33, 59])
def test_mazes_of_the_authors_generator(size: int, shared_data: Path) -> None:
    with np.load(shared_data / "mazes-format" / f"authors_generator_maze_{size}.npz") as file:
        inputs, solutions = file["inputs"], file["solutions"]
        length, ends = file["length"], file["start_end"]
    lattice = to_lattice(inputs)
    assert lattice.shape[1:] == (size, size)
    assert np.array_equal(to_image(lattice), inputs)
    for maze, squares in enumerate(lattice):
        path = solution(squares)
        assert np.array_equal(np.kron(path, np.ones((2, 2))), solutions[maze][3:-3, 3:-3])
        assert path.sum() - 1 == length[maze]
        column, row, end_column, end_row = (2 * ends[maze]).tolist()
        assert squares[row, column] == START
        assert squares[end_row, end_column] == END
    assert solutions.sum() == solutions[:, 3:-3, 3:-3].sum()
    ours = TASK.sample(2, size=size)
    assert ours.inputs.shape[1:] == inputs.shape[1:]
    assert ours.targets.shape[1:] == solutions.shape[1:]


@pytest.mark.parametrize(("size", "count"), [(3, 50), (9, 50), (13, 80), (59, 3), (101, 1)])
def test_targets_are_the_path(size: int, count: int) -> None:
    batch = TASK.sample(count, size=size, seed=6)
    assert batch.inputs.shape == (count, 3, 2 * size + 6, 2 * size + 6)
    for squares, target, length in zip(
        to_lattice(batch.inputs), batch.targets.numpy(), batch.extras["path_length"], strict=True
    ):
        path = solution(squares)
        assert np.array_equal(np.kron(path, np.ones((2, 2))), target[3:-3, 3:-3])
        assert path.sum() == length + 1
        assert target.sum() == 4 * path.sum()


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = TASK.sample(70, size=9, seed=2)
    monkeypatch.setattr("iterant.tasks.mazes.task._CHUNK", 3 * 24**2)
    assert torch.equal(TASK.sample(70, size=9, seed=2).inputs, whole.inputs)
    assert torch.equal(TASK.sample(70, size=9, seed=2).targets, whole.targets)


def test_encoding_a_drawn_maze() -> None:
    batch = TASK.encode("S.#\n#.#\n#.G")
    assert batch.inputs.shape == (1, 3, 12, 12)
    assert to_lattice(batch.inputs).tolist() == [[[2, 1, 0], [0, 1, 0], [0, 1, 3]]]
    assert batch.targets[0, 3:-3:2, 3:-3:2].tolist() == [[1, 1, 0], [0, 1, 0], [0, 1, 1]]
    assert batch.extras["path_length"].tolist() == [4]
    assert batch.extras["solvable"].tolist() == [True]
    assert batch.labelled


@st.composite
def drawn_mazes(draw: st.DrawFn) -> str:
    """Any rectangle of walls and free squares with one start and one end."""
    height, width = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    signs = draw(st.lists(st.sampled_from("#."), min_size=height * width, max_size=height * width))
    start, end = draw(st.permutations(range(height * width)))[:2]
    signs[start], signs[end] = "S", "E"
    return "\n".join("".join(signs[r * width : (r + 1) * width]) for r in range(height))


@given(drawn_mazes())
@settings(deadline=None, max_examples=60)
def test_text_reads_back(text: str) -> None:
    batch = TASK.encode(text)
    described = TASK.describe(batch).text
    inner = [line[1:-1] for line in described.splitlines()[1:-1]]
    again = TASK.encode(described)
    assert torch.equal(again.inputs, batch.inputs)
    assert torch.equal(again.targets, batch.targets)
    # A ring of walls drawn by hand is the one that the description draws.
    unsolved = [part.replace("*", ".") for part in ("\n".join(inner), described)]
    assert text in unsolved


def test_spaces_small_letters_and_line_ends() -> None:
    expected = [[2, 1, 3]]
    for text in ["S E", "s.e", "\nS.G\n", "#####\r\n#S.E#\r\n#####\r\n"]:
        assert read_maze(text).tolist() == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1 has 0"),
        ("\n\n", "line 1 has 0"),
        ("S..\n#E", "line 1 has 3 characters, line 2 has 2"),
        ("S.\n\n.E", "line 2 has 0"),
        (".E", "one start .S., got 0"),
        ("S.", "one end .E or G., got 0"),
        ("S.S\n..E", "one start .S., got 2"),
        ("SE.\n..G", "one end .E or G., got 2"),
        ("S.\n?E", "'\\?' in line 2"),
        ("S\tE", r"'\\t' in line 1"),
    ],
)
def test_wrong_drawings_are_refused(text: str, said: str) -> None:
    with pytest.raises(TaskError, match=said) as caught:
        TASK.encode(text)
    assert "\n" not in str(caught.value)


def test_the_picture_has_the_papers_colours() -> None:
    batch = TASK.sample(1, size=9, seed=1)
    drawn = TASK.describe(Batch(batch.inputs, torch.full_like(batch.targets, -1)))
    assert drawn.cells.shape == (24, 24, 3)
    assert np.array_equal(drawn.cells, (batch.inputs[0].permute(1, 2, 0) * 255).numpy())
    lines = drawn.text.splitlines()
    assert len(lines) == 11
    assert {len(line) for line in lines} == {11}
    assert set(drawn.text) == set("#.SE\n")


def test_a_prediction_is_laid_over_the_maze() -> None:
    batch = TASK.encode("S..\n##.\nE..")
    right = TASK.describe(batch, prediction=batch.targets)
    assert right.text.splitlines() == ["#####", "#S**#", "###*#", "#E**#", "#####"]
    assert "0 pixels wrong" in right.caption
    answer = batch.targets.clone()
    answer[0, 3, 3] = 0  # a pixel of the start
    answer[0, 3, 5] = 0  # a pixel of the path
    answer[0, 5, 3] = 1  # a pixel of a wall
    answer[0, 2, 7] = 1  # a pixel of the wall around
    wrong = TASK.describe(batch, prediction=answer)
    assert wrong.text.splitlines() == ["###x#", "#so*#", "#x#*#", "#E**#", "#####"]
    colours = [tuple(wrong.cells[place].tolist()) for place in [(3, 4), (3, 5), (5, 3), (3, 6)]]
    assert colours == [(0, 255, 0), (204, 121, 167), (230, 159, 0), (0, 114, 178)]
    assert "4 pixels wrong" in wrong.caption


@pytest.mark.parametrize("size", [3, 5, 9, 13])
def test_shortened_mazes(size: int) -> None:
    batch = TASK.sample(60, size=size, seed=2)
    shorter, rows = TASK.shorten(batch)
    before, after = to_lattice(batch.inputs), to_lattice(shorter.inputs)
    ways = [path_of(squares) for squares in before]
    assert rows.tolist() == [row for row, way in enumerate(ways) if len(way) > 3]
    for place, row in enumerate(rows.tolist()):
        way = path_of(after[place])
        assert way == ways[row][:-2]
        changed = {tuple(square) for square in np.argwhere(after[place] != before[row]).tolist()}
        assert changed == {ways[row][-1], way[-1]}
        assert np.array_equal(shorter.targets[place].numpy(), to_pixels(solution(after[place])))
        assert shorter.extras["path_length"][place] == len(way) - 1


def test_a_maze_without_a_path() -> None:
    batch = TASK.encode("S#E")
    assert not batch.labelled
    assert batch.extras["solvable"].tolist() == [False]
    with pytest.raises(TaskError, match="no known path"):
        TASK.shorten(batch)
    answer = torch.zeros_like(batch.targets)
    answer[0, 3:5, 3:5] = 1
    drawn = TASK.describe(batch, prediction=answer)
    assert "not known" in drawn.caption
    assert drawn.text.splitlines()[1] == "#S#E#"


def test_short_paths_are_left_out() -> None:
    with pytest.raises(TaskError, match="larger mazes"):
        TASK.shorten(TASK.encode("S.E"))
    kept, rows = TASK.shorten(TASK.encode("S..E"))
    assert (int(kept.targets.sum()), rows.tolist()) == (8, [0])


# A loop: two ways of one length, of which the label is one.
LOOP = "S..\n.#.\n..E"


def drawn(squares: list[str]) -> torch.Tensor:
    """A prediction from a drawing: * is predicted."""
    grid = np.array([[sign == "*" for sign in line] for line in squares], dtype=np.uint8)
    return torch.from_numpy(to_pixels(grid)).long()[None]


@pytest.mark.parametrize(
    ("squares", "connected", "valid"),
    [
        (["***", "..*", "..*"], True, True),
        (["*..", "*..", "***"], True, True),
        (["***", "*.*", "***"], True, False),  # both ways at once
        (["***", "..*", "*.*"], True, False),  # a loose square
        (["***", "...", "..*"], False, False),  # a gap
        (["...", "...", "..."], False, False),
        (["**.", "***", "..*"], False, False),  # through the wall
    ],
)
def test_near_misses_of_a_maze_with_a_loop(
    squares: list[str], connected: bool, valid: bool
) -> None:
    batch, prediction = TASK.encode(LOOP), drawn(squares)
    found = TASK.near_misses(prediction, batch)
    assert (bool(found.connected[0]), bool(found.valid[0])) == (connected, valid)
    assert found.wrong[0] == (prediction != batch.targets).sum()


def test_a_loose_pixel_is_no_valid_path() -> None:
    batch = TASK.sample(3, size=5, seed=1)
    assert TASK.near_misses(batch.targets, batch).valid.all()
    loose = batch.targets.clone()
    loose[1, 0, 0] = 1
    found = TASK.near_misses(loose, batch)
    assert found.wrong.tolist() == [0, 1, 0]
    assert found.connected.tolist() == [True] * 3
    assert found.valid.tolist() == [True, False, True]


def test_a_verdict_needs_whole_cells_and_nothing_beside_the_path() -> None:
    mazes = Mazes()
    batch = mazes.sample(1, size=9, seed=0)
    assert mazes.verdict(batch, 0, batch.targets).keeps
    corner, extra = batch.targets.clone(), batch.targets.clone()
    corner[0, 0, 0] = 1
    extra[0, :2, :2] = 1
    for prediction in (corner, torch.zeros_like(corner)):
        assert not mazes.verdict(batch, 0, prediction).keeps
    (row, column) = (batch.targets[0] == 1).nonzero()[0].tolist()
    extra[0, row : row + 2, column : column + 2] = 0
    assert not mazes.verdict(batch, 0, extra).keeps
