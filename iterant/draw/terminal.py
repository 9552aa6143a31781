"""A problem and its answer in a terminal, in colours where there are any.

    >>> console = rich.console.Console()
    >>> console.print(terminal(task.describe(batch), console), soft_wrap=True)

Cells with signs on them (boards, bits) are three columns wide where there is room, one where
there is not; plain cells (mazes) are half a character tall, two above one another in one "▀", so
that they come out about square. What is too large for that is drawn in dots (`iterant.draw.dots`),
and what is too large for dots is made smaller, which is said below it.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from iterant.draw.dots import TALL, WIDE, dots, ranked, thinned
from iterant.tasks.protocol import Description, Glyph

Cells = NDArray[np.uint8]

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
