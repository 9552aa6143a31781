"""Descriptions as pictures: figures, arrays, PNG and SVG files.

>>> save_png(task.describe(batch, 0, prediction=batch.targets), "maze.png")
PosixPath('maze.png')

All lengths are pixels: a figure has one dot per pixel and a cell a whole number of pixels, so that
nothing is blurred.
"""

from __future__ import annotations

import importlib
import io
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iterant.errors import UsageError
from iterant.io.files import PathLike, check_writable_file, quoted, write_atomic
from iterant.tasks.protocol import Description

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


DPI = 100  # any number would do, because every length is in pixels
_TITLE, _LABEL, _CAPTION = 15, 13, 12
_LINE = 1.45
_MARGIN = 14
_TARGET = 600
"""The longer side that cells are enlarged to."""
_READABLE = 26
"""The smallest cell in which a glyph is readable."""
_LARGEST = 20_000


@dataclass(frozen=True)
class _Panel:
    """A description and the sizes of its parts."""

    description: Description
    scale: int
    left: int
    """Width of the row labels."""
    top: int
    """Height of the title."""
    under: int
    """Height of the column labels."""
    caption: tuple[str, ...]
    text_width: int
    """Width of the title, which does not wrap, and of the caption."""

    @classmethod
    def of(cls, description: Description, scale: int | None) -> _Panel:
        from iterant.draw.canvas import text_width

        cells = description.cells
        labels = [text_width(label, _LABEL) for label in description.row_labels]
        title = text_width(description.title, _TITLE, "bold")
        if scale is None:
            longer = max(cells.shape[:2])
            scale = min(max(_TARGET // longer, _READABLE if description.glyphs else 1), 64)
        width = max(cells.shape[1] * scale, title, 240)
        # The mean width of a letter of DejaVu Sans is about 0.58 of its height.
        caption = textwrap.wrap(description.caption, int(width / (0.58 * _CAPTION)))
        return cls(
            description=description,
            scale=scale,
            left=ceil(max(labels)) + 8 if labels else 0,
            top=ceil(_LINE * _TITLE) + 4 if description.title else 0,
            under=ceil(_LINE * _LABEL) + 4 if description.column_labels else 0,
            caption=tuple(caption),
            text_width=ceil(max([title, *(text_width(line, _CAPTION) for line in caption)])),
        )

    @property
    def cells_size(self) -> tuple[int, int]:
        """Width and height of the cells alone."""
        rows, columns = self.description.cells.shape[:2]
        return columns * self.scale, rows * self.scale

    @property
    def width(self) -> int:
        return self.left + max(self.cells_size[0], self.text_width)

    @property
    def height(self) -> int:
        lines = ceil(_LINE * _CAPTION * len(self.caption))
        return self.top + self.cells_size[1] + self.under + (lines + 6 if lines else 0)


def sheet(
    descriptions: Sequence[Description], *, columns: int | None = None, scale: int | None = None
) -> Figure:
    """A figure with one panel per description, ``columns`` side by side (None: about square).

    ``scale`` is pixels per cell (None: as many as fit a screen).
    """
    if not descriptions:
        raise UsageError("there is nothing to draw: the list of descriptions is empty")
    for name, value in (("columns", columns), ("scale", scale)):
        if value is not None and value < 1:
            raise UsageError(f"{name} must be at least 1, got {value}")
    panels = [_Panel.of(description, scale) for description in descriptions]
    wide = max(panel.width for panel in panels)
    if columns is None:
        highest = max(panel.height for panel in panels)
        about_square = round(sqrt(len(panels) * highest / wide))
        columns = max(1, about_square, 2 if wide < 2 * highest else 1)
    columns = min(columns, len(panels))
    grid = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    tall = [max(panel.height for panel in row) for row in grid]
    figure = _figure(columns * (wide + _MARGIN) + _MARGIN, sum(tall) + _MARGIN * (len(tall) + 1))
    top = _MARGIN
    for row, height in zip(grid, tall, strict=True):
        for place, panel in enumerate(row):
            _place(figure, panel, _MARGIN + place * (wide + _MARGIN), top)
        top += height + _MARGIN
    return figure


def _figure(width: int, height: int) -> Figure:
    """An empty white figure of exactly this size in pixels."""
    from matplotlib.figure import Figure

    if max(width, height) > _LARGEST:
        raise UsageError(
            f"the picture would be {width} by {height} pixels and at most {_LARGEST} a side "
            "are drawn; draw fewer problems, or give a smaller scale"
        )
    # Slightly more than whole, so that rounding does not remove a pixel.
    figure = Figure(figsize=((width + 1e-3) / DPI, (height + 1e-3) / DPI), dpi=DPI)
    figure.set_facecolor("white")
    return figure


def _place(figure: Figure, panel: _Panel, left: int, top: int) -> None:
    """Draw title, cells and caption of a panel."""
    from iterant.draw.canvas import FONT, INK, paint

    full_width, full_height = figure.get_size_inches() * DPI
    width, height = panel.cells_size
    x, y = left + panel.left, top + panel.top
    bottom = full_height - (y + height)
    axes = figure.add_axes(
        (x / full_width, bottom / full_height, width / full_width, height / full_height)
    )
    paint(axes, panel.description)
    axes.tick_params(labelsize=_LABEL * 72 / DPI, pad=4)

    def write(text: str, size: int, y: float, weight: str) -> None:
        figure.text(
            x / full_width,
            1 - y / full_height,
            text,
            va="top",
            color=INK,
            fontsize=size * 72 / DPI,
            fontfamily=FONT.get_family(),
            fontweight=weight,
            parse_math=False,
        )

    write(panel.description.title, _TITLE, top, "bold")
    for line, text in enumerate(panel.caption):
        write(text, _CAPTION, y + height + panel.under + 6 + line * _LINE * _CAPTION, "normal")


Drawable = Description | Sequence[Description]
"""One description, or several for one picture."""


def picture(what: Drawable, *, scale: int | None = None) -> Figure:
    """A figure of one description, or of several side by side; ``scale`` is pixels per cell.

    >>> picture([task.describe(batch, 0), task.describe(batch, 1)]).savefig("two.pdf")
    """
    return sheet([what] if isinstance(what, Description) else what, scale=scale)


def pixels(what: Drawable, *, scale: int | None = None) -> NDArray[np.uint8]:
    """(height, width, 3) colours of this figure: a frame of an animation.

    >>> pixels(task.describe(batch)).shape[2]
    3
    """
    return _rendered(picture(what, scale=scale))


def png(what: Drawable, *, scale: int | None = None) -> bytes:
    """This figure as the bytes of a PNG file, as notebooks show it."""
    return _png(picture(what, scale=scale))


def save_png(what: Drawable, path: PathLike, *, scale: int | None = None) -> Path:
    """Write a .png atomically and return its path."""
    target = check_png(path)
    write_atomic(target, png(what, scale=scale))
    return target


def save_picture(what: Drawable, path: PathLike, *, scale: int | None = None) -> Path:
    """Write a .png, or an .svg for print, and return its path.

    >>> save_picture(task.describe(batch), "maze.svg")
    PosixPath('maze.svg')
    """
    target = check_picture(path)
    if target.suffix.lower() == ".png":
        return save_png(what, target, scale=scale)
    from iterant.draw.plots import svg

    write_atomic(target, svg(picture(what, scale=scale)))
    return target


def check_picture(path: PathLike) -> Path:
    """Check, before long work, that a .png or .svg can be written to this path."""
    return check_png(path, ".svg")


def check_png(path: PathLike, *others: str) -> Path:
    """Check that a .png, or one of the other suffixes, can be written to this path."""
    target = Path(path)
    if target.suffix.lower() not in (".png", *others):
        raise UsageError(
            f"pictures are written as {' or '.join(['.png', *others])}, got {quoted(target)}; "
            f"try {quoted(target.with_suffix('.png') if target.name else target / 'picture.png')}"
        )
    return check_writable_file(target)


def show(description: Description, ax: Axes | None = None) -> Axes:
    """Draw the description on ``ax``, or on a new figure, which a notebook shows at once.

        >>> show(task.describe(batch))
        >>> show(task.describe(batch), ax=axes[0])      # among your own plots

    The figure is not registered with pyplot, so memory does not grow with many of them.
    """
    from matplotlib.figure import Figure

    from iterant.draw.canvas import paint

    axes = Figure(layout="constrained").add_subplot() if ax is None else ax
    paint(axes, description)
    axes.set_title(description.title, parse_math=False)
    caption, figure = description.caption, axes.get_figure(root=True)
    if figure is not None:  # wrapped to about the width of the axes
        points = 72 * axes.get_position().width * float(figure.get_size_inches()[0])
        letter = 0.52 * axes.xaxis.label.get_fontproperties().get_size_in_points()
        caption = textwrap.fill(caption, max(20, int(points / letter)))
    axes.set_xlabel(caption, parse_math=False)
    notebook = sys.modules.get("IPython")
    if ax is None and figure is not None and notebook and notebook.get_ipython() is not None:
        display = importlib.import_module("IPython.display").display
        display({"image/png": _png(figure)}, raw=True)
    return axes


def _rendered(figure: Figure) -> NDArray[np.uint8]:
    """(height, width, 3) colours, independent of the backend in use."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba(), dtype=np.uint8)[..., :3]


def _png(figure: Figure) -> bytes:
    from matplotlib.image import imsave

    file = io.BytesIO()
    imsave(file, _rendered(figure), format="png", metadata={"Software": "iterant"})
    return file.getvalue()
