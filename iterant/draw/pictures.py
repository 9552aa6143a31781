"""A problem and its answer as a picture: for a notebook, as an array, as a file.

>>> save_png(task.describe(batch, 0, prediction=batch.targets), "maze.png")
PosixPath('maze.png')
"""

from __future__ import annotations

import importlib
import io
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iterant.draw.sheet import sheet
from iterant.errors import UsageError
from iterant.runs.files import PathLike, shown, write_atomic
from iterant.runs.places import check_place
from iterant.tasks.protocol import Description

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    from iterant.draw.lines import svg

    write_atomic(target, svg(picture(what, scale=scale)))
    return target


def check_picture(path: PathLike) -> Path:
    """The path itself if a picture of either kind can be written there."""
    target = Path(path)
    return check_place(target) if target.suffix.lower() == ".svg" else _check_kind(target, ".svg")


def check_png(path: PathLike) -> Path:
    """The path itself if a picture can be written there: asked before long work, not after."""
    return _check_kind(Path(path))


def _check_kind(target: Path, *others: str) -> Path:
    """The path itself if it ends in .png; else a refusal that names all kinds there are."""
    if target.suffix.lower() != ".png":
        raise UsageError(
            f"pictures are written as {' or '.join(['.png', *others])}, got {shown(target)}; "
            f"try {shown(target.with_suffix('.png') if target.name else target / 'picture.png')}"
        )
    return check_place(target)


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
