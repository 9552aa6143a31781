"""A problem and its answer in a terminal, in colours where there are any.

    >>> console = rich.console.Console()
    >>> console.print(terminal(task.describe(batch), console), soft_wrap=True)

Cells with signs on them (boards, bits) are three columns wide where there is room, one where
there is not; plain cells (mazes) are half a character tall, two above one another in one "▀", so
that they come out about square. What is too large for that is drawn in dots,
and what is too large for dots is made smaller, which is said below it.

Cells as dots, eight to a character: four rows and two columns of them in one braille sign.

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
from rich.console import Console
from rich.style import Style
from rich.text import Text

from iterant.tasks.protocol import Description, Glyph

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


_HALF = "▀"
_CONTRAST = 60
"""Of 255: less between a sign and its cell is hard to read."""


def terminal(
    description: Description, console: Console | None = None, *, lines: int | None = None
) -> Text:
    """The description as a terminal shows it; its plain text where that cannot be shown.

        >>> rich.print(terminal(task.describe(batch), lines=20))

    With ``lines``, what is wider than the terminal or takes more lines than that is drawn in dots
    or made smaller; without, it is given as text where it is too wide.
    """
    console = console or Console()
    heading = Text(description.title, style="bold")
    body = _coloured(description, console.width, lines) if has_colours(console) else None
    parts = [heading, body if body is not None else Text(description.text.rstrip("\n"))]
    if description.caption:
        parts.append(Text(description.caption, style="dim"))
    return Text("\n").join(part for part in parts if part.plain)


def has_colours(console: Console) -> bool:
    """Whether the terminal has enough colours to draw in."""
    return console.color_system in ("256", "truecolor", "windows") and not console.no_color


def _coloured(description: Description, width: int, lines: int | None) -> Text | None:
    """In colours, or None where the terminal is too narrow and nothing may be made smaller."""
    if description.glyphs:
        signs = _signs(description, width)
        if lines is None or (signs is not None and signs.plain.count("\n") < lines):
            return signs
    rows = len(description.cells) if lines is None else 2 * lines
    cells = _with_moves(description)
    if cells.shape[1] > width or len(cells) > rows:
        cells = squeezed(cells)
    if cells.shape[1] <= width and len(cells) <= rows:
        return _halves(cells)
    return None if lines is None else _smaller(narrow_framed(cells), width, lines)


def _smaller(cells: Cells, width: int, lines: int) -> Text:
    """In dots, made smaller where even those have no room; blurred where nothing has a colour."""
    if cells.shape[1] <= width and len(cells) <= 2 * lines:
        return _halves(cells)
    ranks, factor = thinned(ranked(cells), WIDE * max(1, width), TALL * max(1, lines - 1))
    if factor == 1.0:
        return dots(cells)
    if not ranks.any():
        return _halves(fitted(cells, width, 2 * lines))
    said = Text(f"drawn {factor:.2g} times smaller; only what has a colour", style="dim")
    said.truncate(width, overflow="ellipsis")
    return Text("\n").join([dots(cells, ranks), said])


def narrow_framed(cells: Cells) -> Cells:
    """The cells with a frame of one cell where there was a wider one of one colour."""
    height, width = cells.shape[:2]
    depth, most = 0, (min(height, width) - 1) // 2
    while depth < most:
        ring = np.ones((height, width), dtype=np.bool_)
        ring[depth + 1 : height - depth - 1, depth + 1 : width - depth - 1] = False
        if (cells[ring] != cells[0, 0]).any():
            break
        depth += 1
    cut = max(0, depth - 1)
    return cells[cut : height - cut, cut : width - cut]


def fitted(cells: Cells, columns: int, rows: int) -> Cells:
    """The cells made smaller until they fit, each the mean of those that it stands for."""
    factor = max(cells.shape[1] / max(1, columns), len(cells) / max(1, rows))
    if factor <= 1:
        return cells
    from PIL import Image

    size = (max(1, int(cells.shape[1] / factor)), max(1, int(len(cells) / factor)))
    return np.asarray(Image.fromarray(cells).resize(size, Image.Resampling.BOX))


def squeezed(cells: Cells) -> Cells:
    """Every 2×2 square as one cell, where all are of one colour; else the cells themselves.

    The benchmark's mazes are such images, but for a border of 3: its squares begin at 1.
    """
    for border in (0, 1):
        padded = np.pad(cells, ((border, border), (border, border), (0, 0)), mode="edge")
        if padded.shape[0] % 2 or padded.shape[1] % 2:
            continue
        small = padded[::2, ::2]
        if np.array_equal(np.repeat(np.repeat(small, 2, axis=0), 2, axis=1), padded):
            return small
    return cells


def _halves(cells: Cells) -> Text:
    """Two rows of cells a line."""
    lines = []
    for top in range(0, len(cells), 2):
        line = Text()
        below = cells[top + 1] if top + 1 < len(cells) else [None] * cells.shape[1]
        pairs = zip(map(_colour, cells[top]), map(_colour, below), strict=True)
        for (upper, lower), run in groupby(pairs):
            line.append(_HALF * len(list(run)), Style(color=upper, bgcolor=lower))
        lines.append(line)
    return Text("\n").join(lines)


def _signs(description: Description, width: int) -> Text | None:
    """A line a row of cells, with the labels around."""
    rows, columns = description.cells.shape[:2]
    margin = max(map(len, description.row_labels), default=-1) + 1
    room = min(3, (width - margin) // columns)
    if room < max(len(glyph.text) for glyph in description.glyphs):
        return None
    cells = _readable(_with_moves(description), description.glyphs)
    signs = {(glyph.row, glyph.column): glyph for glyph in description.glyphs}
    labels = dict(enumerate(description.row_labels))
    lines = []
    for row in range(rows):
        line = Text(labels.get(row, "").ljust(margin))
        for column in range(columns):
            glyph = signs.get((row, column))
            style = Style(
                bgcolor=_colour(cells[row, column]),
                color=Color.parse(glyph.colour) if glyph else None,
                bold=glyph is not None,
            )
            line.append((glyph.text if glyph else "").center(room), style)
        lines.append(line)
    if description.column_labels:
        below = "".join(label.center(room)[:room] for label in description.column_labels)
        lines.append(Text(" " * margin + below))
    return Text("\n").join(lines)


def _with_moves(description: Description) -> Cells:
    """The cells, tinted where an arrow starts and ends: a terminal has no room for its shaft."""
    cells = description.cells.copy()
    for arrow in description.arrows:
        tint = np.array(Color.parse(arrow.colour).get_truecolor())
        for row, column in (arrow.start, arrow.end):
            cells[row, column] = (cells[row, column].astype(int) + tint) // 2
    return cells


def _readable(cells: Cells, glyphs: tuple[Glyph, ...]) -> Cells:
    """The cells, all somewhat darker where light signs would be lost: they have no outline here."""
    weights = np.array([0.3, 0.6, 0.1])
    for glyph in glyphs:
        sign = weights @ np.array(Color.parse(glyph.colour).get_truecolor())
        if 0 < sign - weights @ cells[glyph.row, glyph.column] < _CONTRAST:
            return (cells * 0.8).astype(np.uint8)
    return cells


def _colour(cell: Cells | None) -> Color | None:
    return None if cell is None else Color.from_rgb(*(int(part) for part in cell))
