"""Small changes to problems are right by a second way, and only tasks that can offer them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iterant import registry
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
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch, Flips, HasNearMisses, Shortens

SUMS, MAZES = PrefixSums(), Mazes()


def test_who_offers_what() -> None:
    offers = {
        word: [kind.__name__ for kind in (Flips, Shortens, HasNearMisses) if isinstance(task, kind)]
        for word in registry.known("task")
        for task in [registry.task(word)]
    }
    assert offers == {"prefix-sums": ["Flips"], "mazes": ["Shortens", "HasNearMisses"], "chess": []}


@given(bits=st.text("01", min_size=1, max_size=40), data=st.data())
def test_a_flipped_string_is_the_string_written_with_that_bit_flipped(
    bits: str, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(bits) - 1))
    written = bits[:index] + ("1" if bits[index] == "0" else "0") + bits[index + 1 :]
    flipped, wanted = SUMS.flip(SUMS.encode(bits), index), SUMS.encode(written)
    assert torch.equal(flipped.inputs, wanted.inputs)
    assert torch.equal(flipped.targets, wanted.targets)


def test_each_string_can_have_its_own_bit_flipped() -> None:
    batch = SUMS.sample(5, size=5, seed=1)
    together = SUMS.flip(batch, torch.arange(5))
    for row in range(5):
        alone = SUMS.flip(batch[row : row + 1], row)
        assert torch.equal(together.inputs[row], alone.inputs[0])
        assert torch.equal(together.targets[row], alone.targets[0])


@pytest.mark.parametrize("index", [-1, 5])
def test_a_bit_outside_the_string_is_refused(index: int) -> None:
    with pytest.raises(TaskError, match=f"from 0 to 4, got {index}"):
        SUMS.flip(SUMS.sample(2, size=5), index)


def way_of(squares: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> list[tuple[int, int]]:
    (start, end) = (np.argwhere(squares == code)[0].tolist() for code in (START, END))
    return shortest_path(squares != WALL, tuple(start), tuple(end))


@pytest.mark.parametrize("size", [3, 5, 9, 13])
def test_a_moved_end_is_two_squares_along_the_old_way(size: int) -> None:
    batch = MAZES.sample(60, size=size, seed=2)
    shorter, rows = MAZES.shorten(batch)
    before, after = to_lattice(batch.inputs), to_lattice(shorter.inputs)
    ways = [way_of(squares) for squares in before]
    assert rows.tolist() == [row for row, way in enumerate(ways) if len(way) > 3]
    for place, row in enumerate(rows.tolist()):
        way = way_of(after[place])
        assert way == ways[row][:-2]
        changed = {tuple(square) for square in np.argwhere(after[place] != before[row]).tolist()}
        assert changed == {ways[row][-1], way[-1]}
        on_way = np.zeros_like(after[place])
        on_way[tuple(np.array(way).T)] = 1
        assert np.array_equal(shorter.targets[place].numpy(), to_pixels(on_way))
        assert shorter.extras["path_length"][place] == len(way) - 1


def test_ways_that_are_too_short_are_refused_where_there_is_no_other() -> None:
    with pytest.raises(TaskError, match="take larger mazes"):
        MAZES.shorten(MAZES.encode("S.E"))
    kept, rows = MAZES.shorten(MAZES.encode("S..E"))
    assert (int(kept.targets.sum()), rows.tolist()) == (8, [0])


def test_an_unknown_way_cannot_be_shortened() -> None:
    with pytest.raises(TaskError, match="known way"):
        MAZES.shorten(MAZES.encode("S#E"))


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
    batch, prediction = MAZES.encode(LOOP), drawn(squares)
    found = MAZES.misses(prediction, batch)
    assert (bool(found.connected[0]), bool(found.valid[0])) == (connected, valid)
    assert found.wrong[0] == (prediction != batch.targets).sum()


def test_one_of_two_valid_ways_is_the_labelled_one() -> None:
    batch = MAZES.encode(LOOP)
    ways = [drawn(["***", "..*", "..*"]), drawn(["*..", "*..", "***"])]
    wrong = sorted(int(MAZES.misses(way, batch).wrong[0]) for way in ways)
    assert wrong == [0, 24]


def test_a_loose_pixel_spoils_a_way() -> None:
    batch = MAZES.sample(3, size=5, seed=1)
    assert MAZES.misses(batch.targets, batch).valid.all()
    loose = batch.targets.clone()
    loose[1, 0, 0] = 1
    found = MAZES.misses(loose, batch)
    assert found.wrong.tolist() == [0, 1, 0]
    assert found.connected.tolist() == [True] * 3
    assert found.valid.tolist() == [True, False, True]


def test_only_labelled_mazes_of_the_same_shape_are_compared() -> None:
    batch = MAZES.sample(2, size=5)
    with pytest.raises(TaskError, match="cannot be compared"):
        MAZES.misses(batch.targets[:1], batch)
    with pytest.raises(TaskError, match="cannot be compared"):
        MAZES.misses(batch.targets, Batch(batch.inputs, batch.targets - 2))


def test_the_image_of_a_shortened_maze_is_the_benchmarks() -> None:
    shorter, _ = MAZES.shorten(MAZES.sample(4, size=9, seed=3))
    assert np.array_equal(to_image(to_lattice(shorter.inputs)), shorter.inputs.numpy())
