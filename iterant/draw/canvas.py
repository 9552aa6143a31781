"""One description on one matplotlib axes: the only module that matplotlib is painted through.

Everything is drawn in units of cells, x a column and y a row, so that glyphs and arrows keep
their place and proportion at any size. Nothing here reads or sets matplotlib's global state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import atan2, hypot

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.collections import PolyCollection
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch, Polygon
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray

from iterant.tasks.protocol import Arrow, Description, Glyph

# It ships with matplotlib, so pictures look alike everywhere, and it has the chess pieces.
FONT = FontProperties(family="DejaVu Sans")
INK = "#333333"

_EM = 0.8
"""A glyph's font size, in cells."""
_FIT = 0.86
"""The widest a glyph may be, in cells."""


def paint(axes: Axes, description: Description) -> None:
    """Cells, glyphs, arrows and labels; the title and the caption are the caller's to place."""
    rows, columns = description.cells.shape[:2]
    axes.imshow(description.cells, interpolation="nearest", aspect="equal", resample=False)
    _draw_signs(axes, description.glyphs)
    for arrow in description.arrows:
        axes.add_patch(_arrow(arrow))
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_frame_on(False)
    row_labels = dict(enumerate(description.row_labels))
    column_labels = dict(enumerate(description.column_labels))
    axes.set_yticks(list(row_labels), list(row_labels.values()))
    axes.set_xticks(list(column_labels), list(column_labels.values()))
    axes.tick_params(length=0, labelcolor=INK)
    axes.tick_params(top=False, labeltop=False, bottom=True, labelbottom=True)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontfamily(FONT.get_family())


def text_width(text: str, size: int, weight: str = "normal") -> float:
    """How many pixels wide a line of text comes out, hinting included."""
    font = FontProperties(family=FONT.get_family(), weight=weight, size=size)
    width, _, _ = RendererAgg(1, 1, dpi=72).get_text_width_height_descent(text, font, ismath=False)
    return float(width)


@lru_cache(maxsize=512)
def _outline(text: str) -> Outline:
    """A glyph's shape at font size 1 (measured large: small sizes are rounded)."""
    shape = TextPath((0, 0), text, size=100, prop=FONT, usetex=False)
    return Affine2D().scale(0.01).transform_path(shape)


def _draw_signs(axes: Axes, glyphs: Sequence[Glyph]) -> None:
    """All glyphs, those of one colour as one shape: hundreds of bits take no longer than one."""
    colours = dict.fromkeys(glyph.colour for glyph in glyphs)
    for colour in colours:
        group = [
            (glyph.text, glyph.row, glyph.column) for glyph in glyphs if glyph.colour == colour
        ]
        # Digits are read by their contrast; a figure such as a chess piece has a body, which its
        # lines enclose, and a rim that sets it off from any square.
        bodies = [part for place in group if not place[0].isascii() for part in _parts(*place)]
        if bodies:
            body = _opposite(colour)
            axes.add_collection(
                PolyCollection(bodies, facecolors=body, edgecolors=body, linewidths=1.2)
            )
        whole = Outline.make_compound_path(*(_ink(*place) for place in group))
        axes.add_patch(PathPatch(whole, facecolor=colour, edgecolor="none", zorder=1.1))


@lru_cache(maxsize=8192)
def _ink(text: str, row: int, column: int) -> Outline:
    """A glyph centred on its cell by its ink, not by its line of text; kept for the next frame."""
    shape = _outline(text)
    box = shape.get_extents()
    size = min(_EM, _FIT / box.width) if box.width else _EM
    place = (
        Affine2D()
        .translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2)
        .scale(size, -size)
        .translate(column, row)
    )
    return place.transform_path(shape)


@lru_cache(maxsize=1024)
def _parts(text: str, row: int, column: int) -> tuple[NDArray[np.float64], ...]:
    """What the lines of a figure enclose."""
    outlines = _ink(text, row, column).to_polygons(closed_only=True)
    return tuple(np.asarray(outline, dtype=np.float64) for outline in outlines)


def _opposite(colour: str) -> str:
    """Dark for light figures, light for dark figures."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#202020" if 0.3 * red + 0.6 * green + 0.1 * blue > 128 else "#ffffff"


def _arrow(arrow: Arrow) -> Polygon:
    """A filled arrow from the middle of one cell to the middle of another."""
    (y0, x0), (y1, x1) = arrow.start, arrow.end
    length = hypot(x1 - x0, y1 - y0)
    if length == 0:
        return Polygon([(x0, y0)] * 3, visible=False)
    head, half_shaft, half_head = min(0.45, length / 2), 0.08, 0.24
    along = [
        (0.0, half_shaft),
        (length - head, half_shaft),
        (length - head, half_head),
        (length, 0.0),
        (length - head, -half_head),
        (length - head, -half_shaft),
        (0.0, -half_shaft),
    ]
    turn = Affine2D().rotate(atan2(y1 - y0, x1 - x0)).translate(x0, y0)
    return Polygon(
        turn.transform(along), facecolor=arrow.colour, edgecolor="none", alpha=0.7, zorder=2
    )
