"""A problem and its answer as a picture: for a notebook, as an array, as a file.

>>> save_png(task.describe(batch, 0, prediction=batch.targets), "maze.png")
PosixPath('maze.png')

Several descriptions in one picture, each cell a whole number of pixels.

Sizes in this module are pixels: the figure has one dot a pixel, so nothing is blurred.
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


DOTS = 100  # an inch; any number would do, since every length is given in dots
_TITLE, _LABEL, _CAPTION = 15, 13, 12
_LINE = 1.45
_MARGIN = 14
_WANTED = 600
"""The longer side that cells are enlarged to."""
_READABLE = 26
"""The least cell that a glyph is read in."""
_LARGEST = 20_000


@dataclass(frozen=True)
class _Panel:
    """A description and how much room its parts take."""

    description: Description
    scale: int
    left: int
    """Room for the row labels."""
    top: int
    """Room for the title."""
    under: int
    """Room for the column labels."""
    caption: tuple[str, ...]
    needs: int
    """The width of the title, which is never broken, and of the caption."""

    @classmethod
    def of(cls, description: Description, scale: int | None) -> _Panel:
        from iterant.draw.canvas import text_width

        cells = description.cells
        labels = [text_width(label, _LABEL) for label in description.row_labels]
        title = text_width(description.title, _TITLE, "bold")
        pixels = _scale(description) if scale is None else scale
        room = max(cells.shape[1] * pixels, title, 240)
        # DejaVu Sans is about 0.58 as wide as it is tall, averaged over English.
        caption = textwrap.wrap(description.caption, int(room / (0.58 * _CAPTION)))
        return cls(
            description=description,
            scale=pixels,
            left=ceil(max(labels)) + 8 if labels else 0,
            top=ceil(_LINE * _TITLE) + 4 if description.title else 0,
            under=ceil(_LINE * _LABEL) + 4 if description.column_labels else 0,
            caption=tuple(caption),
            needs=ceil(max([title, *(text_width(line, _CAPTION) for line in caption)])),
        )

    @property
    def cells_size(self) -> tuple[int, int]:
        """Width and height of the cells alone."""
        rows, columns = self.description.cells.shape[:2]
        return columns * self.scale, rows * self.scale

    @property
    def width(self) -> int:
        return self.left + max(self.cells_size[0], self.needs)

    @property
    def height(self) -> int:
        lines = ceil(_LINE * _CAPTION * len(self.caption))
        return self.top + self.cells_size[1] + self.under + (lines + 6 if lines else 0)


def _scale(description: Description) -> int:
    """Pixels a cell: as many as fit a screen, at least one, enough to read a glyph in."""
    longer: int = max(description.cells.shape[:2])
    return min(max(_WANTED // longer, _READABLE if description.glyphs else 1), 64)


def sheet(
    descriptions: Sequence[Description], *, columns: int | None = None, scale: int | None = None
) -> Figure:
    """A figure with one panel a description, so many side by side (None: about square).

    ``scale`` is pixels a cell; None chooses what a screen holds.
    """
    if not descriptions:
        raise UsageError("there is nothing to draw: the list of descriptions is empty")
    for name, value in (("columns", columns), ("scale", scale)):
        if value is not None and value < 1:
            raise UsageError(f"{name} must be at least 1, got {value}")
    panels = [_Panel.of(description, scale) for description in descriptions]
    across = min(columns or _columns(panels), len(panels))
    grid = [panels[start : start + across] for start in range(0, len(panels), across)]
    wide = max(panel.width for panel in panels)
    tall = [max(panel.height for panel in row) for row in grid]
    figure = _figure(across * (wide + _MARGIN) + _MARGIN, sum(tall) + _MARGIN * (len(tall) + 1))
    top = _MARGIN
    for row, height in zip(grid, tall, strict=True):
        for place, panel in enumerate(row):
            _place(figure, panel, _MARGIN + place * (wide + _MARGIN), top)
        top += height + _MARGIN
    return figure


def _columns(panels: list[_Panel]) -> int:
    """About a square of panels, whatever their shape: strips stand one below another."""
    width = max(panel.width for panel in panels)
    height = max(panel.height for panel in panels)
    return max(1, round(sqrt(len(panels) * height / width)), 2 if width < 2 * height else 1)


def _figure(width: int, height: int) -> Figure:
    """An empty white figure of exactly so many pixels."""
    from matplotlib.figure import Figure

    if max(width, height) > _LARGEST:
        raise UsageError(
            f"the picture would be {width} by {height} pixels and at most {_LARGEST} a side "
            "are drawn; draw fewer problems, or give a smaller scale"
        )
    # A hair more than whole, lest rounding take a dot away.
    figure = Figure(figsize=((width + 1e-3) / DOTS, (height + 1e-3) / DOTS), dpi=DOTS)
    figure.set_facecolor("white")
    return figure


def _place(figure: Figure, panel: _Panel, left: int, top: int) -> None:
    """Put one panel's title, cells and caption where they belong."""
    from iterant.draw.canvas import FONT, INK, paint

    full_width, full_height = figure.get_size_inches() * DOTS
    width, height = panel.cells_size
    x, y = left + panel.left, top + panel.top
    bottom = full_height - (y + height)
    axes = figure.add_axes(
        (x / full_width, bottom / full_height, width / full_width, height / full_height)
    )
    paint(axes, panel.description)
    axes.tick_params(labelsize=_LABEL * 72 / DOTS, pad=4)

    def write(text: str, size: int, y: float, weight: str) -> None:
        figure.text(
            x / full_width,
            1 - y / full_height,
            text,
            va="top",
            color=INK,
            fontsize=size * 72 / DOTS,
            fontfamily=FONT.get_family(),
            fontweight=weight,
            parse_math=False,
        )

    write(panel.description.title, _TITLE, top, "bold")
    for line, text in enumerate(panel.caption):
        write(text, _CAPTION, y + height + panel.under + 6 + line * _LINE * _CAPTION, "normal")


Drawable = Description | Sequence[Description]
"""One description, or several for one sheet."""


def picture(what: Drawable, *, scale: int | None = None) -> Figure:
    """A figure of one description, or of several side by side; ``scale`` is pixels a cell.

    >>> picture([task.describe(batch, 0), task.describe(batch, 1)]).savefig("two.pdf")
    """
    return sheet([what] if isinstance(what, Description) else what, scale=scale)


def pixels(what: Drawable, *, scale: int | None = None) -> NDArray[np.uint8]:
    """(height, width, 3) colours of the same picture: a frame of an animation.

    >>> pixels(task.describe(batch)).shape[2]
    3
    """
    return _rendered(picture(what, scale=scale))


def png(what: Drawable, *, scale: int | None = None) -> bytes:
    """The same picture as the bytes of a PNG file: what a notebook shows of a description."""
    return _png(picture(what, scale=scale))


def save_png(what: Drawable, path: PathLike, *, scale: int | None = None) -> Path:
    """Write the picture, whole or not at all, and give its path back."""
    target = check_png(path)
    write_atomic(target, png(what, scale=scale))
    return target


def save_picture(what: Drawable, path: PathLike, *, scale: int | None = None) -> Path:
    """The same as a .png, or as an .svg of lines and letters that scale, for print.

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
    """The path itself if a picture of either kind can be written there."""
    target = Path(path)
    return (
        check_writable_file(target)
        if target.suffix.lower() == ".svg"
        else _check_kind(target, ".svg")
    )


def check_png(path: PathLike) -> Path:
    """The path itself if a picture can be written there: asked before long work, not after."""
    return _check_kind(Path(path))


def _check_kind(target: Path, *others: str) -> Path:
    """The path itself if it ends in .png; else a refusal that names all kinds there are."""
    if target.suffix.lower() != ".png":
        raise UsageError(
            f"pictures are written as {' or '.join(['.png', *others])}, got {quoted(target)}; "
            f"try {quoted(target.with_suffix('.png') if target.name else target / 'picture.png')}"
        )
    return check_writable_file(target)


def show(description: Description, ax: Axes | None = None) -> Axes:
    """The description on ``ax``, or on a new figure, which a notebook shows at once.

        >>> show(task.describe(batch))
        >>> show(task.describe(batch), ax=axes[0])      # among your own plots

    pyplot keeps nothing of it, so nothing piles up when many are drawn.
    """
    from matplotlib.figure import Figure

    from iterant.draw.canvas import paint

    axes = Figure(layout="constrained").add_subplot() if ax is None else ax
    paint(axes, description)
    axes.set_title(description.title, parse_math=False)
    axes.set_xlabel(_folded(description.caption, axes), parse_math=False)
    if ax is None:
        _display(axes)
    return axes


def _folded(caption: str, axes: Axes) -> str:
    """The caption in lines as wide as the axes, roughly: among others it must not touch theirs."""
    figure = axes.get_figure(root=True)
    if figure is None:
        return caption
    points = 72 * axes.get_position().width * float(figure.get_size_inches()[0])
    sign = 0.52 * axes.xaxis.label.get_fontproperties().get_size_in_points()
    return textwrap.fill(caption, max(20, int(points / sign)))


def _display(axes: Axes) -> None:
    """In a notebook, put the figure under the cell: one that pyplot holds would come by itself."""
    notebook = sys.modules.get("IPython")
    figure = axes.get_figure(root=True)
    if figure is not None and notebook is not None and notebook.get_ipython() is not None:
        display = importlib.import_module("IPython.display").display
        display({"image/png": _png(figure)}, raw=True)


def _rendered(figure: Figure) -> NDArray[np.uint8]:
    """(height, width, 3) colours, whatever backend and settings the user has chosen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba(), dtype=np.uint8)[..., :3]


def _png(figure: Figure) -> bytes:
    from matplotlib.image import imsave

    file = io.BytesIO()
    imsave(file, _rendered(figure), format="png", metadata={"Software": "iterant"})
    return file.getvalue()
