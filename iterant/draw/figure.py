"""Descriptions as pictures: figures, arrays, PNG and SVG files.

>>> save_png(task.describe(batch, 0, prediction=batch.targets), "maze.png")
PosixPath('maze.png')

Cells, glyphs and arrows are drawn in units of cells, x a column and y a row. A cell of `picture` is
a whole number of pixels, so that nothing is blurred.
"""

from __future__ import annotations

import importlib
import io
import sys
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iterant.errors import UsageError
from iterant.io.files import PathLike, check_writable_file, quoted, write_atomic
from iterant.tasks.protocol import Description, Glyph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as Outline

Drawable = Description | Sequence[Description]
"""One description, or several for one picture."""

_DPI = 100
_MARGIN = 14
"""Pixels around panels."""
_LARGEST = 20_000
"""Pixels of the longest side of a picture."""
_INK = "#333333"
_STYLE: Any = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same picture everywhere
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": _INK,
    "axes.labelsize": 9,
    "axes.labelcolor": _INK,
    "xaxis.labellocation": "left",
    "xtick.labelsize": 9,
    "xtick.labelcolor": _INK,
    "ytick.labelsize": 9,
    "ytick.labelcolor": _INK,
}
_EM, _WIDEST = 0.8, 0.86
"""The font size of a glyph and its largest width, in cells."""


def picture(what: Drawable, *, scale: int | None = None) -> Figure:
    """A figure of one description, or of several in a grid; ``scale`` is pixels per cell.

    >>> picture([task.describe(batch, 0), task.describe(batch, 1)]).savefig("two.pdf")
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    descriptions = [what] if isinstance(what, Description) else what
    if not descriptions:
        raise UsageError("there is nothing to draw: the list of descriptions is empty")
    if scale is not None and scale < 1:
        raise UsageError(f"scale must be at least 1, got {scale}")
    figure = Figure(dpi=_DPI, facecolor="white")
    to_fractions = figure.transFigure.inverted
    panels, cells, extents = [], [], []
    with rc_context(_STYLE):
        for description in descriptions:
            height, width = description.cells.shape[:2]
            # About 600 pixels per side; glyphs need 26 per cell to be readable.
            least = 26 if description.glyphs else 1
            size = scale or min(max(600 // max(height, width), least), 64)
            cells.append(Bbox.from_bounds(0, 0, width * size, height * size))
            axes = figure.add_axes(cells[-1].transformed(to_fractions()).bounds)
            paint(axes, description)
            panels.append(axes)
            extents.append((axes.get_tightbbox() or cells[-1]).extents)

    # Whole pixels from the lower left corner of the cells to the edges of their panel.
    left, down, right, up = np.ceil(np.array(extents) * (-1, -1, 1, 1) - 1e-3).astype(int).T
    wide, tall = max(left + right) + _MARGIN, up + down + _MARGIN
    # About square, and at least two side by side unless they are long strips.
    columns = max(round(sqrt(len(panels) * max(tall) / wide)), 2 if wide < 2 * max(tall) else 1, 1)
    columns = min(columns, len(panels))
    heights = [max(tall[first : first + columns]) for first in range(0, len(panels), columns)]
    width, height = columns * wide + _MARGIN, sum(heights) + _MARGIN
    if max(width, height) > _LARGEST:
        raise UsageError(
            f"the picture would be {width} by {height} pixels and at most {_LARGEST} per side "
            "are drawn; draw fewer problems, or give a smaller scale"
        )
    # Slightly more than whole, so that rounding does not remove a pixel.
    figure.set_size_inches((width + 1e-3) / _DPI, (height + 1e-3) / _DPI)
    for index, axes in enumerate(panels):
        row, column = divmod(index, columns)
        x = _MARGIN + column * wide + left[index]
        y = height - _MARGIN - sum(heights[:row]) - up[index]
        axes.set_position(cells[index].translated(x, y).transformed(to_fractions()))
    return figure


def paint(axes: Axes, description: Description) -> None:
    """Paint cells, glyphs, arrows and labels; the caption is wrapped to the width of the axes."""
    from matplotlib.patches import FancyArrow

    axes.imshow(description.cells, interpolation="nearest", aspect="equal", resample=False)
    _draw_glyphs(axes, description.glyphs)
    for arrow in description.arrows:
        (y, x), (end_y, end_x) = arrow.start, arrow.end
        length = min(0.45, float(np.hypot(end_x - x, end_y - y)) / 2)
        axes.add_patch(FancyArrow(
            x, y, end_x - x, end_y - y, width=0.16, head_width=0.48, head_length=length,
            length_includes_head=True, facecolor=arrow.colour, edgecolor="none", alpha=0.7,
            zorder=2,
        ))  # fmt: skip
    rows, columns = description.cells.shape[:2]
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), frame_on=False)
    axes.set_yticks(range(len(description.row_labels)), description.row_labels)
    axes.set_xticks(range(len(description.column_labels)), description.column_labels)
    axes.tick_params(length=0, top=False, labeltop=False, bottom=True, labelbottom=True)
    axes.set_title(description.title, parse_math=False)
    # A letter is about 0.075 inches wide.
    letters = max(32, int(axes.get_window_extent().width / axes.figure.dpi / 0.075))
    axes.set_xlabel(textwrap.fill(description.caption, letters), parse_math=False, ma="left")


def _draw_glyphs(axes: Axes, glyphs: Sequence[Glyph]) -> None:
    """Draw all glyphs of one colour as one shape: hundreds of bits are as fast as one."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline
    from matplotlib.transforms import Affine2D

    for colour in dict.fromkeys(glyph.colour for glyph in glyphs):
        ink, enclosed = [], []
        for glyph in (glyph for glyph in glyphs if glyph.colour == colour):
            move = Affine2D().translate(glyph.column, glyph.row)
            ink.append(move.transform_path(_outline(glyph.text)))
            # A chess piece gets a body in the opposite brightness, which its lines enclose, with a
            # rim that sets it off from any cell. Digits need none.
            enclosed += [] if glyph.text.isascii() else ink[-1].to_polygons()
        if enclosed:
            fill = "#202020" if np.dot(to_rgb(colour), (0.3, 0.6, 0.1)) > 0.5 else "#ffffff"
            axes.add_collection(
                PolyCollection(enclosed, facecolors=fill, edgecolors=fill, linewidths=1.2)
            )
        shape = Outline.make_compound_path(*ink)
        axes.add_patch(PathPatch(shape, facecolor=colour, edgecolor="none", zorder=1.1))


@lru_cache(maxsize=256)
def _outline(text: str) -> Outline:
    """The shape of a glyph in units of cells, with the centre of its ink at the origin."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    # DejaVu has chess pieces. Measured at size 100, because small sizes are rounded.
    large = TextPath((0, 0), text, size=100, prop=FontProperties(family="DejaVu Sans"))
    box = large.get_extents()
    size = min(_EM / 100, _WIDEST / box.width) if box.width else _EM / 100
    centre = Affine2D().translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2)
    return centre.scale(size, -size).transform_path(large)


def show(description: Description, ax: Axes | None = None) -> Axes:
    """Draw the description on ``ax``, or on a new figure, which a notebook shows at once.

        >>> show(task.describe(batch))
        >>> show(task.describe(batch), ax=axes[0])      # among your own plots

    The figure is not registered with pyplot, so memory does not grow with many of them.
    """
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.add_subplot() if ax is None else ax
    paint(axes, description)
    notebook = sys.modules.get("IPython")
    if ax is None and notebook is not None and notebook.get_ipython() is not None:
        display = importlib.import_module("IPython.display").display
        display({"image/png": figure_png(figure)}, raw=True)
    return axes


def pixels(what: Drawable, *, scale: int | None = None) -> NDArray[np.uint8]:
    """(height, width, 3) colours of this picture: a frame of an animation."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(picture(what, scale=scale))
    canvas.draw()
    return np.array(canvas.buffer_rgba(), dtype=np.uint8)[..., :3]


def png(what: Drawable, *, scale: int | None = None) -> bytes:
    """This picture as the bytes of a PNG file, as notebooks show it."""
    return figure_png(picture(what, scale=scale))


def save_picture(what: Drawable, path: PathLike, *, scale: int | None = None) -> Path:
    """Write a .png, or an .svg for print, and return its path."""
    return write_figure(picture(what, scale=scale), path)


save_png = save_picture


def check_picture(path: PathLike) -> Path:
    """Check, before long work, that a .png or .svg can be written to this path."""
    target = Path(path)
    if target.suffix.lower() not in (".png", ".svg"):
        raise UsageError(f"pictures are written as .png or .svg, got {quoted(target)}")
    return check_writable_file(target)


def write_figure(figure: Figure, path: PathLike, about: str = "") -> Path:
    """Write any figure as .png or .svg, by the suffix; ``about`` is a description inside an SVG.

    The same figure gives the same bytes.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    target = check_picture(path)
    content = io.BytesIO()
    if target.suffix.lower() == ".png":
        content.write(figure_png(figure))
    else:
        metadata = {"Date": None, "Creator": "iterant", "Description": about or None}
        with rc_context({"svg.hashsalt": "iterant", "svg.fonttype": "path"}):
            FigureCanvasSVG(figure).print_svg(content, metadata=metadata)
    write_atomic(target, content.getvalue())
    return target


def figure_png(figure: Figure) -> bytes:
    """Any figure as the bytes of a PNG file, independent of the backend in use."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    content = io.BytesIO()
    FigureCanvasAgg(figure).print_png(content, metadata={"Software": "iterant"})
    return content.getvalue()
