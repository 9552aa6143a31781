"""Descriptions as coloured text in a terminal.

    >>> console = rich.console.Console()
    >>> console.print(terminal(task.describe(batch), console), soft_wrap=True)

Cells with glyphs (boards, bits) are three columns wide, or one where that does not fit. Cells
without (mazes) are half a character tall, two in one "▀", so that they are about square. Larger
descriptions are drawn in braille dots, 4 × 2 cells per character, and even larger ones are reduced.

A character of dots has one colour. Grey cells show only where they are dark (walls); coloured
cells have precedence, the rarest colour first: an end (drawn as a full character) before a path.
Light grey cells are not drawn; the background of the terminal stands for them.

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
"""(R, C): 0 not drawn, 1 dark grey, from 2 on a colour, the rarer the higher."""

TALL, WIDE = 4, 2
"""Cells per character."""
_BRAILLE = 0x2800
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bit of each dot in the code point, by row and column."""
_VIVID = 60
"""A colour is grey if its largest and smallest channel differ by less."""
_DARK = 128
_GREY = Style(color=Color.from_rgb(120, 120, 120))
_LIGHTER = 0.4
"""Dots are mixed with this share of white: they are small, and many terminals are dark."""
_FEW = 4
"""Colours with at most this many cells fill their characters, to be visible."""


def dots(cells: Cells, ranks: Ranks | None = None) -> Text:
    """Cells in braille dots; ``ranks`` replaces those of the cells."""
    ranks = rank_cells(cells) if ranks is None else ranks
    rows, columns = (-(-side // part) for side, part in zip(ranks.shape, (TALL, WIDE), strict=True))
    padded = np.zeros((rows * TALL, columns * WIDE), dtype=np.int64)
    padded[: ranks.shape[0], : ranks.shape[1]] = ranks
    parts = padded.reshape(rows, TALL, columns, WIDE).swapaxes(1, 2)  # (r, c, 4, 2)
    best = parts.max(axis=(2, 3))
    # Beside a colour, grey is left out: a character has one colour.
    least = np.where(best > 1, 2, 1)[..., None, None]
    rare = [rank for rank in range(2, ranks.max() + 1) if (ranks == rank).sum() <= _FEW]
    whole = np.isin(best, rare)[..., None, None]
    signs = (((parts >= least) | whole) * _BITS).sum(axis=(2, 3)) + _BRAILLE
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


def rank_cells(cells: Cells) -> Ranks:
    """The rank of each cell."""
    numbers = _numbers(cells)
    ranks: Ranks = (cells.mean(axis=2) < _DARK).astype(np.int64)
    ranks[_vivid(cells)] = 0
    for rank, number in enumerate(_colours(cells), start=2):
        ranks[numbers == number] = rank
    return ranks


def reduce_ranks(ranks: Ranks, columns: int, rows: int) -> tuple[Ranks, float]:
    """Ranks reduced to ``columns`` and ``rows`` by their maxima, and the factor.

    If they are reduced, grey is left out: thin walls would merge.
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
    """Every colour as one integer."""
    whole: NDArray[np.int64] = cells.astype(np.int64) @ np.array([65536, 256, 1])
    return whole


def _colours(cells: Cells) -> list[int]:
    """All colours that are not grey, the commonest first."""
    colours, counts = np.unique(_numbers(cells)[_vivid(cells)], return_counts=True)
    order: list[int] = colours[np.argsort(-counts, kind="stable")].tolist()
    return order


def _style(number: int) -> Style:
    parts = (number >> 16, number >> 8 & 255, number & 255)
    lighter = (part + _LIGHTER * (255 - part) for part in parts)
    return Style(color=Color.from_rgb(*lighter), bold=True)


_HALF = "▀"
_CONTRAST = 60
"""The least difference in brightness between a glyph and its cell."""


def terminal(
    description: Description, console: Console | None = None, *, lines: int | None = None
) -> Text:
    """The description in colour, or as plain text if the terminal has no colours.

        >>> rich.print(terminal(task.describe(batch), lines=20))

    With ``lines``, a description that is wider than the terminal or taller than ``lines`` is drawn
    in dots or reduced; without, one that is too wide is plain text.
    """
    console = console or Console()
    heading = Text(description.title, style="bold")
    body = _coloured(description, console.width, lines) if has_colours(console) else None
    parts = [heading, body if body is not None else Text(description.text.rstrip("\n"))]
    if description.caption:
        parts.append(Text(description.caption, style="dim"))
    return Text("\n").join(part for part in parts if part.plain)


def has_colours(console: Console) -> bool:
    """Whether the terminal has at least 256 colours."""
    return console.color_system in ("256", "truecolor", "windows") and not console.no_color


def _coloured(description: Description, width: int, lines: int | None) -> Text | None:
    """In colour, or None if the terminal is too narrow and ``lines`` is not given."""
    if description.glyphs:
        board = _board(description, width)
        if lines is None or (board is not None and board.plain.count("\n") < lines):
            return board
    rows = len(description.cells) if lines is None else 2 * lines
    cells = _with_moves(description)
    if cells.shape[1] > width or len(cells) > rows:
        cells = merge_blocks(cells)
    if cells.shape[1] <= width and len(cells) <= rows:
        return _halves(cells)
    return None if lines is None else _smaller(crop_border(cells), width, lines)


def _smaller(cells: Cells, width: int, lines: int) -> Text:
    """In dots, reduced if they do not fit; blurred if nothing has a colour."""
    if cells.shape[1] <= width and len(cells) <= 2 * lines:
        return _halves(cells)
    ranks, factor = reduce_ranks(rank_cells(cells), WIDE * max(1, width), TALL * max(1, lines - 1))
    if factor == 1.0:
        return dots(cells)
    if not ranks.any():
        return _halves(reduce_cells(cells, width, 2 * lines))
    note = Text(f"drawn {factor:.2g} times smaller; only what has a colour", style="dim")
    note.truncate(width, overflow="ellipsis")
    return Text("\n").join([dots(cells, ranks), note])


def crop_border(cells: Cells) -> Cells:
    """Cells whose uniform border is reduced to one cell."""
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


def reduce_cells(cells: Cells, columns: int, rows: int) -> Cells:
    """Cells reduced by averaging until they fit."""
    factor = max(cells.shape[1] / max(1, columns), len(cells) / max(1, rows))
    if factor <= 1:
        return cells
    from PIL import Image

    size = (max(1, int(cells.shape[1] / factor)), max(1, int(len(cells) / factor)))
    return np.asarray(Image.fromarray(cells).resize(size, Image.Resampling.BOX))


def merge_blocks(cells: Cells) -> Cells:
    """Every 2 × 2 block as one cell if all blocks are uniform; otherwise the cells unchanged.

    The benchmark's mazes have such blocks, offset by 1 because of a border of 3.
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
    """Two rows of cells per line."""
    lines = []
    for top in range(0, len(cells), 2):
        line = Text()
        below = cells[top + 1] if top + 1 < len(cells) else [None] * cells.shape[1]
        pairs = zip(map(_colour, cells[top]), map(_colour, below), strict=True)
        for (upper, lower), run in groupby(pairs):
            line.append(_HALF * len(list(run)), Style(color=upper, bgcolor=lower))
        lines.append(line)
    return Text("\n").join(lines)


def _board(description: Description, width: int) -> Text | None:
    """One line per row of cells, with glyphs and labels; None if it is too wide."""
    rows, columns = description.cells.shape[:2]
    margin = max(map(len, description.row_labels), default=-1) + 1
    room = min(3, (width - margin) // columns)
    if room < max(len(glyph.text) for glyph in description.glyphs):
        return None
    cells = _readable(_with_moves(description), description.glyphs)
    glyphs = {(glyph.row, glyph.column): glyph for glyph in description.glyphs}
    labels = dict(enumerate(description.row_labels))
    lines = []
    for row in range(rows):
        line = Text(labels.get(row, "").ljust(margin))
        for column in range(columns):
            glyph = glyphs.get((row, column))
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
    """The cells, tinted at both ends of each arrow instead of drawing it."""
    cells = description.cells.copy()
    for arrow in description.arrows:
        tint = np.array(Color.parse(arrow.colour).get_truecolor())
        for row, column in (arrow.start, arrow.end):
            cells[row, column] = (cells[row, column].astype(int) + tint) // 2
    return cells


def _readable(cells: Cells, glyphs: tuple[Glyph, ...]) -> Cells:
    """The cells, all darkened if a light glyph would be hard to see."""
    weights = np.array([0.3, 0.6, 0.1])
    for glyph in glyphs:
        brightness = weights @ np.array(Color.parse(glyph.colour).get_truecolor())
        if 0 < brightness - weights @ cells[glyph.row, glyph.column] < _CONTRAST:
            return (cells * 0.8).astype(np.uint8)
    return cells


def _colour(cell: Cells | None) -> Color | None:
    return None if cell is None else Color.from_rgb(*(int(part) for part in cell))
