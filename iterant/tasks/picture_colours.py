"""What each pixel of a drawn maze is, by its colour: wall, way, start or end.

    >>> kinds_of(colours)                        # (H, W, 3) to (H, W)

Vivid green and red are the spots, any other bright paint is somebody's drawing on a way. Of the
rest, what is dark is wall: dark beside the light around it, since one side of a photograph is often
darker than the other.

Shapes: H by W pixels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from iterant.errors import TaskError
from iterant.tasks.carving import END, FREE, START, WALL

Pixels = NDArray[np.uint8]

_CONTRAST = 50
"""Of 255, between the mean of what is dark and the mean of what is light."""
_ROWS = 256
"""Looked at together, so that working memory does not grow with the picture."""
_TILES = 6
"""A side, in each of which the lightest pixels are the paper."""
_PAPER = 90
"""Per cent of a tile's pixels that are darker than its paper, or as dark."""
_UNEVEN = 0.12
"""Of the brightest: paper that differs less is lit evenly, and its picture is left as it is."""


def kinds_of(colours: Pixels) -> Pixels:
    """(H, W) WALL, FREE, START or END for every pixel, by its colour."""
    kinds = np.empty(colours.shape[:2], dtype=np.uint8)
    light = np.empty(colours.shape[:2], dtype=np.uint8)
    for top in range(0, len(colours), _ROWS):
        part = slice(top, top + _ROWS)
        red, green, blue = (colours[part, :, place].astype(np.int16) for place in range(3))
        most, least = (np.maximum(np.maximum(red, green), blue),
                       np.minimum(np.minimum(red, green), blue))  # fmt: skip
        spread = most - least
        vivid = (spread * 20 > most * 9) & (most > 95)
        # Red within 20 degrees of hue, green within 45; any other bright paint is no wall.
        is_red = vivid & (red == most) & (np.abs(green - blue) * 3 < spread)
        is_green = vivid & (green == most) & (np.abs(blue - red) * 4 < spread * 3)
        painted = vivid & (most > 150) & ~is_red & ~is_green
        # Whole numbers up to 255,000: more than the 16 bits of the parts can hold.
        light[part] = colours[part].astype(np.int32) @ np.array([299, 587, 114]) // 1000
        kinds[part] = np.select([is_green, is_red, painted], [START, END, FREE], 255)
    plain = kinds == 255
    _evenly_lit(light, plain)
    limit = _threshold(np.bincount(light[plain], minlength=256))
    kinds[plain] = np.where(light[plain] > limit, FREE, WALL)
    return kinds


def _threshold(counts: NDArray[np.int64]) -> float:
    """Between dark and light: Otsu's, where the two sides lie furthest apart."""
    values = np.arange(256)
    below = np.cumsum(counts)
    above = below[-1] - below
    sums = np.cumsum(counts * values)
    with np.errstate(invalid="ignore", divide="ignore"):
        dark, bright = sums / below, (sums[-1] - sums) / above
        apart = np.nan_to_num(below * above * (bright - dark) ** 2.0)
    best = np.flatnonzero(apart == apart.max())
    limit = int(best[len(best) // 2])
    if not (below[limit] and above[limit]) or bright[limit] - dark[limit] < _CONTRAST:
        raise TaskError(
            "the picture shows no maze: there are no dark walls beside light ways; "
            "draw walls dark, ways light, the start green and the end red"
        )
    return float(limit)


def _evenly_lit(light: Pixels, plain: NDArray[np.bool_]) -> None:
    """Make (H, W) lightness in place what even light would have made it.

    Paper is the lightest part of every tile; a plane through it is how the light falls. Tiles that
    hold nothing but wall say nothing about paper.
    """
    papers = _papers(light, plain)
    if len(papers) < _TILES:
        return
    sides, values = papers[:, :2], papers[:, 2]
    kept = values > np.median(values) / 2
    shape = np.column_stack([sides, np.ones(len(sides))])
    slopes, *_ = np.linalg.lstsq(shape[kept], values[kept], rcond=None)
    height, width = light.shape
    corners = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]]) @ slopes
    if corners.min() <= 0 or np.ptp(corners) < _UNEVEN * corners.max():
        return
    across = slopes[1] * (np.arange(width) + 0.5) / width + slopes[2]
    for top in range(0, height, _ROWS):
        rows = np.arange(top, min(top + _ROWS, height))
        paper = slopes[0] * (rows[:, None] + 0.5) / height + across
        even = light[rows] * (corners.max() / paper)
        light[rows] = np.minimum(even, 255)


def _papers(light: Pixels, plain: NDArray[np.bool_]) -> NDArray[np.float64]:
    """A row a tile: how far down and across its middle lies, of 1, and how light its paper is."""
    edges = [np.linspace(0, side, _TILES + 1).astype(np.int64) for side in light.shape]
    found = []
    for row in range(_TILES):
        for column in range(_TILES):
            part = (slice(*edges[0][row : row + 2]), slice(*edges[1][column : column + 2]))
            seen = light[part][plain[part]]
            if seen.size:
                middle = ((row + 0.5) / _TILES, (column + 0.5) / _TILES)
                found.append((*middle, float(np.percentile(seen, _PAPER))))
    return np.array(found, dtype=np.float64).reshape(-1, 3)
