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

import math
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from iterant.tasks.protocol import Description

Cells = NDArray[np.uint8]

TALL, WIDE = 4, 2
"""Cells per character of dots."""
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bit of each dot in the code point of a braille character, by row and column."""
_VIVID = 60
"""A colour is grey if its largest and smallest channel differ by less."""
_FEW = 4
"""Colours with at most this many cells fill their characters, to be visible."""


def terminal(
    description: Description, console: Console | None = None, *, lines: int | None = None
) -> Text:
    """The description in colour, or as plain text if the terminal has no colours.

        >>> rich.print(terminal(task.describe(batch), lines=20))

    A description that is wider than the terminal or taller than ``lines`` is drawn in dots or
    reduced.
    """
    console = console or Console()
    body = Text(description.text.rstrip("\n"))
    if has_colours(console):
        body = _coloured(description, console.width, math.inf if lines is None else lines)
    parts = [
        Text(description.title, style="bold"),
        body,
        Text(description.caption, style="dim"),
    ]
    return Text("\n").join(part for part in parts if part.plain)


def legend(description: Description, console: Console) -> Text:
    """One line: what the colours of `terminal` stand for, or the characters without colours."""
    coloured = has_colours(console)
    entries = [
        Text.assemble(("■", entry.colour) if coloured else entry.sign, (f" {entry.meaning}", "dim"))
        for entry in description.legend
        if entry.colour or not coloured
    ]
    return Text("   ").join(entries)


def has_colours(console: Console) -> bool:
    """Whether the terminal has colours; of 16, rich takes the nearest."""
    return console.color_system is not None and not console.no_color


def _coloured(description: Description, width: int, lines: float) -> Text:
    """In colour, in the first of the ways that fits."""
    cells = description.cells.copy()
    for arrow in description.arrows:  # a tint at both ends instead
        tint = np.array(Color.parse(arrow.colour).get_truecolor())
        for end in (arrow.start, arrow.end):
            cells[end] = (cells[end].astype(int) + tint) // 2
    if description.glyphs:
        board = _board(description, cells, width)
        if board is not None and board.plain.count("\n") < lines:
            return board

    def fit(cells: Cells) -> bool:
        return cells.shape[1] <= width and len(cells) <= 2 * lines

    cells = cells if fit(cells) else merge_blocks(cells)
    return _halves(cells) if fit(cells) else _dots(cells, width, lines)


def _board(description: Description, cells: Cells, width: int) -> Text | None:
    """One line per row of cells, with glyphs and labels; None if it is too wide."""
    rows, columns = cells.shape[:2]
    margin = max(map(len, description.row_labels), default=-1) + 1
    room = min(3, (width - margin) // columns)
    if room < max(len(glyph.text) for glyph in description.glyphs):
        return None
    glyphs = {(glyph.row, glyph.column): glyph for glyph in description.glyphs}
    lines = []
    for row in range(rows):
        label = description.row_labels[row] if row < len(description.row_labels) else ""
        line = Text(label.ljust(margin))
        for column in range(columns):
            letter = glyphs.get((row, column))
            colour = Color.parse(letter.colour) if letter else None
            style = Style(color=colour, bgcolor=_colour(cells[row, column]), bold=bool(letter))
            line.append((letter.text if letter else "").center(room), style)
        lines.append(line)
    if description.column_labels:
        labels = (label.center(room)[:room] for label in description.column_labels)
        lines.append(Text(" " * margin + "".join(labels)))
    return Text("\n").join(lines)


def _halves(cells: Cells) -> Text:
    """Two rows of cells per line."""
    lines = []
    for top in range(0, len(cells), 2):
        line = Text()
        below = cells[top + 1] if top + 1 < len(cells) else [None] * cells.shape[1]
        pairs = zip(map(_colour, cells[top]), map(_colour, below), strict=True)
        for (upper, lower), run in groupby(pairs):
            line.append("▀" * len(list(run)), Style(color=upper, bgcolor=lower))
        lines.append(line)
    return Text("\n").join(lines)


def _colour(cell: Cells | None) -> Color | None:
    return None if cell is None else Color.from_rgb(*(int(part) for part in cell))


def _dots(cells: Cells, width: int, lines: float) -> Text:
    """In braille dots, reduced by their maximal ranks if they do not fit."""
    ranks, styles = rank_cells(cells)
    rare = [rank for rank in range(2, len(styles)) if (ranks == rank).sum() <= _FEW]
    factor = max(1.0, cells.shape[1] / (WIDE * width), len(cells) / (TALL * max(1, lines - 1)))
    if factor > 1:
        if len(styles) > 2:
            ranks[ranks == 1] = 0  # thin walls would merge
        for axis in (0, 1):
            count = max(1, int(ranks.shape[axis] / factor))
            first = np.arange(count) * ranks.shape[axis] // count
            ranks = np.maximum.reduceat(ranks, first, axis=axis)
    padded = np.pad(ranks, ((0, -ranks.shape[0] % TALL), (0, -ranks.shape[1] % WIDE)))
    parts = padded.reshape(len(padded) // TALL, TALL, -1, WIDE).swapaxes(1, 2)  # (r, c, 4, 2)
    best = parts.max(axis=(2, 3))
    # Beside a colour, grey is left out: a character has one colour.
    shown = parts >= np.where(best > 1, 2, 1)[..., None, None]
    signs = ((shown | np.isin(best, rare)[..., None, None]) * _BITS).sum(axis=(2, 3)) + 0x2800
    texts = []
    for line_signs, line_ranks in zip(signs.tolist(), best.tolist(), strict=True):
        pairs = zip(line_ranks, map(chr, line_signs), strict=True)
        line = Text()
        for rank, run in groupby(pairs, key=lambda pair: pair[0]):
            line.append("".join(sign for _, sign in run), styles[rank])
        texts.append(line)
    if factor > 1:
        note = Text(f"drawn {factor:.2g} times smaller; only what has a colour", style="dim")
        note.truncate(width, overflow="ellipsis")
        texts.append(note)
    return Text("\n").join(texts)


def rank_cells(cells: Cells) -> tuple[NDArray[np.int64], list[Style]]:
    """(R, C) ranks: 0 not drawn, 1 dark grey, from 2 a colour, the rarer the higher; and styles."""
    numbers = cells.astype(np.int64) @ np.array([65536, 256, 1])
    vivid = np.ptp(cells.astype(int), axis=2) > _VIVID
    colours, first, counts = np.unique(numbers[vivid], return_index=True, return_counts=True)
    ranks = (~vivid & (cells.mean(axis=2) < 128)).astype(np.int64)
    styles = [Style(), Style(color=Color.from_rgb(120, 120, 120))]
    for index in np.argsort(-counts, kind="stable"):
        ranks[numbers == colours[index]] = len(styles)
        # Mixed with white: dots are small, and many terminals are dark.
        lighter = 0.6 * cells[vivid][first[index]] + 0.4 * 255
        styles.append(Style(color=Color.from_rgb(*lighter), bold=True))
    return ranks, styles


def merge_blocks(cells: Cells) -> Cells:
    """Every 2 × 2 block as one cell if all blocks are uniform; otherwise the cells unchanged.

    The benchmark's mazes have such blocks, offset by 1 because of a border of 3.
    """
    for border in (0, 1):
        padded = np.pad(cells, ((border, border), (border, border), (0, 0)), mode="edge")
        small = padded[::2, ::2]
        if np.array_equal(small.repeat(2, axis=0).repeat(2, axis=1), padded):
            return small
    return cells
