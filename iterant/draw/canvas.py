"""Paint one description on matplotlib axes.

Everything is drawn in units of cells, x a column and y a row, so that glyphs and arrows keep their
position and proportion at any size. matplotlib's global state is neither read nor set.
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

# It ships with matplotlib, so pictures are equal everywhere, and it has chess pieces.
FONT = FontProperties(family="DejaVu Sans")
INK = "#333333"

_EM = 0.8
"""The font size of a glyph, in cells."""
_FIT = 0.86
"""The largest width of a glyph, in cells."""


def paint(axes: Axes, description: Description) -> None:
    """Paint cells, glyphs, arrows and labels; not the title and the caption."""
    rows, columns = description.cells.shape[:2]
    axes.imshow(description.cells, interpolation="nearest", aspect="equal", resample=False)
    _draw_glyphs(axes, description.glyphs)
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
    """The width of a line of text in pixels, with hinting."""
    font = FontProperties(family=FONT.get_family(), weight=weight, size=size)
    width, _, _ = RendererAgg(1, 1, dpi=72).get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def _draw_glyphs(axes: Axes, glyphs: Sequence[Glyph]) -> None:
    """Draw all glyphs of one colour as one shape: hundreds of bits are as fast as one."""
    colours = dict.fromkeys(glyph.colour for glyph in glyphs)
    for colour in colours:
        group = [
            (glyph.text, glyph.row, glyph.column) for glyph in glyphs if glyph.colour == colour
        ]
        # A chess piece gets a body in the opposite brightness, which its lines enclose, with a
        # rim that sets it off from any cell. Digits need none.
        bodies = [part for place in group if not place[0].isascii() for part in _bodies(*place)]
        if bodies:
            red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
            fill = "#202020" if 0.3 * red + 0.6 * green + 0.1 * blue > 128 else "#ffffff"
            axes.add_collection(
                PolyCollection(bodies, facecolors=fill, edgecolors=fill, linewidths=1.2)
            )
        whole = Outline.make_compound_path(*(_ink(*place) for place in group))
        axes.add_patch(PathPatch(whole, facecolor=colour, edgecolor="none", zorder=1.1))


@lru_cache(maxsize=8192)
def _ink(text: str, row: int, column: int) -> Outline:
    """The shape of a glyph, centred on its cell by its ink; cached for the next frame."""
    # Measured at size 100, because small sizes are rounded.
    large = TextPath((0, 0), text, size=100, prop=FONT, usetex=False)
    shape = Affine2D().scale(0.01).transform_path(large)
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
def _bodies(text: str, row: int, column: int) -> tuple[NDArray[np.float64], ...]:
    """The areas that the lines of a glyph enclose."""
    outlines = _ink(text, row, column).to_polygons(closed_only=True)
    return tuple(np.asarray(outline, dtype=np.float64) for outline in outlines)


def _arrow(arrow: Arrow) -> Polygon:
    """A filled arrow between the centres of two cells."""
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
