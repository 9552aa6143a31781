"""Images of the benchmark and the lattices they show are two forms of one thing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.tasks.mazes.generate import to_image, to_lattice, to_pixels

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7))


@given(arrays(np.uint8, SHAPES, elements=st.integers(0, 3)))
@settings(deadline=None, max_examples=50)
def test_there_and_back(lattice: NDArray[np.uint8]) -> None:
    image = to_image(lattice)
    assert image.shape == (len(lattice), 3, 2 * lattice.shape[1] + 6, 2 * lattice.shape[2] + 6)
    assert np.array_equal(to_lattice(image), lattice)
    assert np.array_equal(to_lattice(torch.from_numpy(image).float()), lattice)


def test_colours_and_places() -> None:
    image = to_image(np.array([[[0, 1], [2, 3]]], dtype=np.uint8))[0]
    assert image[:, 3, 3].tolist() == [0, 0, 0]
    assert image[:, 4, 5].tolist() == [1, 1, 1]
    assert image[:, 5, 4].tolist() == [0, 1, 0]
    assert image[:, 6, 6].tolist() == [1, 0, 0]
    assert image[:, :3].sum() == image[:, -3:].sum() == 0
    assert to_pixels(np.ones((1, 1), dtype=np.uint8)).sum() == 4


def shifted() -> NDArray[Any]:
    return np.roll(to_image(np.ones((1, 3, 3), dtype=np.uint8)), 1, axis=3)


def coloured() -> NDArray[Any]:
    image = to_image(np.ones((2, 3, 3), dtype=np.uint8))
    image[1, :, 4, 4] = (0, 0, 1)
    return image


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (np.zeros((3, 12, 12)), "even sides"),
        (np.zeros((1, 1, 12, 12)), "even sides"),
        (np.zeros((1, 3, 13, 12)), "even sides"),
        (np.zeros((1, 3, 6, 6)), "at least 8"),
        (np.full((1, 3, 12, 12), 255), "divide"),
        (np.full((1, 3, 12, 12), np.nan), "divide"),
        (shifted(), "shifted"),
        (coloured(), r"\(0, 0, 1\)"),
    ],
)
def test_other_images_are_refused(image: NDArray[Any], said: str) -> None:
    with pytest.raises(TaskError, match=said):
        to_lattice(image)


def test_other_lattices_are_refused() -> None:
    with pytest.raises(TaskError, match="codes 0 to 3"):
        to_image(np.full((1, 2, 2), 4, dtype=np.uint8))
    with pytest.raises(TaskError, match="codes 0 to 3"):
        to_image(np.zeros((2, 2), dtype=np.uint8))
