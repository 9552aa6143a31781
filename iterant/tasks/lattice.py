"""The benchmark's maze images and the lattice of squares that they show.

    >>> squares = to_lattice(batch.inputs)       # (N, h, w) codes: 0 wall, 1 free, 2 start, 3 end
    >>> to_image(squares)                        # (N, 3, 2h + 6, 2w + 6) bytes 0 and 1

Shapes: N mazes, h by w squares; mazes of the benchmark are square, drawn ones need not be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError

BORDER = 3
"""Pixels of wall around the squares."""
COLOURS = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]], dtype=np.uint8)
"""Red, green, blue of a wall, a free square, the start, the end."""

_CODE_OF = np.full(8, 255, dtype=np.uint8)
_CODE_OF[COLOURS @ np.array([4, 2, 1])] = np.arange(4)


def to_pixels(squares: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(…, h, w) values doubled to two by two pixels with the border around, which is 0."""
    *lead, height, width = squares.shape
    pixels = np.zeros((*lead, 2 * height + 2 * BORDER, 2 * width + 2 * BORDER), dtype=np.uint8)
    inside = pixels[..., BORDER:-BORDER, BORDER:-BORDER]
    for down in range(2):
        for right in range(2):
            inside[..., down::2, right::2] = squares
    return pixels


def to_image(lattice: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, 3, H, W) bytes 0 and 1 for (N, h, w) codes of squares."""
    if lattice.ndim != 3 or (lattice.size and lattice.max() > 3):
        raise TaskError(
            f"a lattice is (N, h, w) with codes 0 to 3, got shape {lattice.shape} "
            f"with values up to {lattice.max() if lattice.size else 'nothing'}"
        )
    return to_pixels(np.stack([COLOURS[:, channel][lattice] for channel in range(3)], axis=1))


def to_lattice(images: Tensor | NDArray[Any]) -> NDArray[np.uint8]:
    """(N, h, w) codes of the squares in (N, 3, H, W) images, which must be the benchmark's."""
    array = images.detach().cpu().numpy() if isinstance(images, Tensor) else np.asarray(images)
    shape = array.shape
    smallest = 2 * BORDER + 2
    if array.ndim != 4 or shape[1] != 3 or min(shape[2:]) < smallest or shape[2] % 2 + shape[3] % 2:
        raise TaskError(
            f"maze images are (N, 3, H, W) with even sides of at least {smallest}, got {shape}"
        )
    if not np.isin(array, (0, 1)).all():
        raise TaskError("maze images hold 0 and 1 only; divide colours by 255 first")
    red, green, blue = (array[:, channel].astype(np.uint8) for channel in range(3))
    codes = _CODE_OF[red * 4 + green * 2 + blue]
    if (codes == 255).any():
        number, row, column = np.argwhere(codes == 255)[0]
        colour = tuple(array[number, :, row, column].astype(int).tolist())
        raise TaskError(
            f"a maze pixel is black, white, green or red, got red, green, blue {colour}"
        )
    squares: NDArray[np.uint8] = codes[:, BORDER:-BORDER:2, BORDER:-BORDER:2]
    if not np.array_equal(to_pixels(squares), codes):
        raise TaskError(
            "maze images have two by two pixels a square and three pixels of wall around; "
            "this one is shifted or of another scale"
        )
    return squares
