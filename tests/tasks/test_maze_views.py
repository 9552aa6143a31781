"""Mazes as text: read, described, read again; and drawings that name their mistake."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iterant.errors import TaskError
from iterant.tasks.mazes.task import Mazes, to_lattice
from iterant.tasks.mazes.text import read_maze
from iterant.tasks.protocol import Batch

TASK = Mazes()


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


@pytest.mark.parametrize("size", [3, 9, 21])
def test_generated_mazes_read_back(size: int) -> None:
    batch = TASK.sample(3, size=size, seed=2)
    for index in range(3):
        again = TASK.encode(TASK.describe(batch, index).text)
        assert torch.equal(again.inputs[0], batch.inputs[index])
        assert torch.equal(again.targets[0], batch.targets[index])


def test_spaces_small_letters_and_line_ends() -> None:
    expected = [[2, 1, 3]]
    for text in ["S E", "s.e", "\nS.G\n", "#####\r\n#S.E#\r\n#####\r\n"]:
        assert read_maze(text).tolist() == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one line"),
        ("\n\n", "at least one line"),
        ("S..\n#E", "line 1 has 3 characters, line 2 has 2"),
        ("S.\n\n.E", "line 2 has 0"),
        (".E", "without start"),
        ("S.", "without end"),
        ("S.S\n..E", "one start .S., got a second at line 1, column 3"),
        ("SE.\n..G", "one end .E or G., got a second at line 2, column 3"),
        ("S.\n?E", "'\\?' at line 2, column 1"),
        ("S\tE", r"'\\t' at line 1, column 2"),
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


def test_a_right_answer_is_laid_over() -> None:
    batch = TASK.encode("S..\n##.\nE..")
    drawn = TASK.describe(batch, prediction=batch.targets)
    assert drawn.text.splitlines() == ["#####", "#S**#", "###*#", "#E**#", "#####"]
    assert drawn.cells[3, 3].tolist() == [0, 255, 0]
    assert drawn.cells[3, 5].tolist() == [0, 114, 178]
    assert "0 pixels wrong" in drawn.caption


def test_wrong_pixels_are_marked() -> None:
    batch = TASK.encode("S..\n##.\nE..")
    answer = batch.targets.clone()
    answer[0, 3, 3] = 0  # a pixel of the start
    answer[0, 3, 5] = 0  # a pixel of the path
    answer[0, 5, 3] = 1  # a pixel of a wall
    answer[0, 2, 7] = 1  # a pixel of the wall around
    drawn = TASK.describe(batch, prediction=answer)
    assert drawn.text.splitlines() == ["###x#", "#so*#", "#x#*#", "#E**#", "#####"]
    colours = [tuple(drawn.cells[place].tolist()) for place in [(3, 4), (3, 5), (5, 3), (3, 6)]]
    assert colours == [(0, 255, 0), (204, 121, 167), (230, 159, 0), (0, 114, 178)]
    assert "4 pixels wrong" in drawn.caption


def test_an_unknown_answer_is_not_judged() -> None:
    batch = TASK.encode("S#E")
    answer = torch.zeros_like(batch.targets)
    answer[0, 3:5, 3:5] = 1
    drawn = TASK.describe(batch, prediction=answer)
    assert "not known" in drawn.caption
    assert drawn.text.splitlines()[1] == "#S#E#"
    with pytest.raises(TaskError, match="shape"):
        TASK.describe(batch, prediction=answer[:, 1:])


def test_lattice_of_a_drawing() -> None:
    assert to_lattice(TASK.encode("SE").inputs).shape == (1, 1, 2)
