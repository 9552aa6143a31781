"""Cells as dots, eight to a character: four rows and two columns of them in one braille sign.

    >>> dots(cells)                  # (63, 63, 3): 16 lines of 32 characters
    >>> dots(*thinned(cells, 160, 80))

Twice as many rows as half blocks show, for terminals in which those do not fit. A character has
one colour of its own, so what is grey is drawn by its dark cells alone (walls) and what has a
colour goes before it: the rarest colour first, an end (a whole character) before a way. Cells that
are light and grey are not drawn; the terminal's own background stands for them.

Shapes: R rows and C columns of cells; r lines and c characters.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.style import Style
from rich.text import Text

Cells = NDArray[np.uint8]
Ranks = NDArray[np.int64]
"""(R, C): 0 not drawn, 1 dark and grey, 2 and more a colour, the rarer the higher."""

TALL, WIDE = 4, 2
"""Cells of a character."""
_SIGNS = 0x2800
_VALUES = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Of the dots in a character's number, by row and column."""
_VIVID = 60
"""Of 255, between the strongest and the weakest part of a colour: less is grey."""
_DARK = 128
_GREY = Style(color=Color.from_rgb(120, 120, 120))
_LIGHTER = 0.4
"""Of the way to white: dots are small, and many terminals are dark."""
_FEW = 4
"""Cells of a colour in the whole picture: so few are seen only if their character is full."""


def dots(cells: Cells, ranks: Ranks | None = None) -> Text:
    """A line for every four rows, a character for every two columns."""
    found = ranked(cells) if ranks is None else ranks
    rows, columns = (-(-side // part) for side, part in zip(found.shape, (TALL, WIDE), strict=True))
    padded = np.zeros((rows * TALL, columns * WIDE), dtype=np.int64)
    padded[: found.shape[0], : found.shape[1]] = found
    parts = padded.reshape(rows, TALL, columns, WIDE).swapaxes(1, 2)  # (r, c, 4, 2)
    best = parts.max(axis=(2, 3))
    # Beside a colour, grey is left out: both would have the one colour of the character.
    least = np.where(best > 1, 2, 1)[..., None, None]
    seldom = [rank for rank in range(2, found.max() + 1) if (found == rank).sum() <= _FEW]
    whole = np.isin(best, seldom)[..., None, None]
    signs = (((parts >= least) | whole) * _VALUES).sum(axis=(2, 3)) + _SIGNS
    styles = [None, _GREY, *(_style(number) for number in _colours(cells))]
    lines = []
    for line_signs, line_ranks in zip(signs.tolist(), best.tolist(), strict=True):
        line, place = Text(), 0
        for rank, run in groupby(line_ranks):
            length = len(list(run))
            line.append("".join(map(chr, line_signs[place : place + length])), styles[rank])
            place += length
        lines.append(line)
    return Text("\n").join(lines)


def ranked(cells: Cells) -> Ranks:
    """What each cell is drawn as."""
    numbers = _numbers(cells)
    ranks: Ranks = (cells.mean(axis=2) < _DARK).astype(np.int64)
    ranks[_vivid(cells)] = 0
    for rank, number in enumerate(_colours(cells), start=2):
        ranks[numbers == number] = rank
    return ranks


def thinned(ranks: Ranks, columns: int, rows: int) -> tuple[Ranks, float]:
    """The ranks in so much room, and how many times smaller they came out.

    Each stands for the highest of several. Grey is left out then: thin walls would run together.
    """
    factor = max(1.0, ranks.shape[1] / columns, ranks.shape[0] / rows)
    if factor == 1.0:
        return ranks, 1.0
    coloured = np.where(ranks > 1, ranks, 0)
    for axis in (0, 1):
        count = max(1, int(coloured.shape[axis] / factor))
        first = np.arange(count) * coloured.shape[axis] // count
        coloured = np.maximum.reduceat(coloured, first, axis=axis)
    return coloured, factor


def _vivid(cells: Cells) -> NDArray[np.bool_]:
    spread: NDArray[np.bool_] = cells.max(axis=2).astype(int) - cells.min(axis=2) > _VIVID
    return spread


def _numbers(cells: Cells) -> NDArray[np.int64]:
    """Every colour as one number."""
    whole: NDArray[np.int64] = cells.astype(np.int64) @ np.array([65536, 256, 1])
    return whole


def _colours(cells: Cells) -> list[int]:
    """The numbers of all colours that are not grey, the commonest first."""
    found, counts = np.unique(_numbers(cells)[_vivid(cells)], return_counts=True)
    order: list[int] = found[np.argsort(-counts, kind="stable")].tolist()
    return order


def _style(number: int) -> Style:
    parts = (number >> 16, number >> 8 & 255, number & 255)
    lighter = (part + _LIGHTER * (255 - part) for part in parts)
    return Style(color=Color.from_rgb(*lighter), bold=True)
