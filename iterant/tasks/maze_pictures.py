"""A maze in a picture: dark walls, light ways, one green spot and one red.

    >>> squares, notes = read_picture(Path("maze.png").read_bytes())
    >>> notes
    ('9 by 9 squares of 12 pixels, start at row 1, column 3, end at row 7, column 9',)

Any scale and close colours will do. A margin of paper, a frame of wall and lines of text around
the maze are left out; a way that somebody painted in another colour counts as free. Walls may be
as thick as the ways, or lines between them, as long as they meet on one regular grid.

Shapes: H by W pixels, h by w squares.
"""

from __future__ import annotations

import io
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iterant.errors import DataError, TaskError
from iterant.tasks.carving import END, FREE, START, WALL
from iterant.tasks.picture_colours import kinds_of
from iterant.tasks.picture_grids import Lines, grids

Pixels = NDArray[np.uint8]

_MOST = 25_000_000
"""Pixels of a picture: at three bytes each and some room to work in, a few hundred megabytes."""
_MIXED, _PLAIN = 0.1, 0.9
"""The share of squares that may be of two colours, and the mean share of a square's own."""
_SEEN = 0.35
"""The share of what is dark that must lie in walls."""
_HANDFUL = 8
_RIM = 0.2
"""Of a square, on each side: not looked at."""
_CLOSED = 0.8
"""Of a side: a wall around a maze may have openings."""
_SPOT = 0.12
"""Of a square: less green or red than that is the rim of something else."""
_WORDS = {START: ("green", "start"), END: ("red", "end")}


class _Shares(NamedTuple):
    """(h, w): how much of each square has a colour."""

    dark: NDArray[np.float64]
    spots: dict[int, NDArray[np.float64]]


def read_picture(content: bytes) -> tuple[Pixels, tuple[str, ...]]:
    """(h, w) codes of the squares, and in words what was seen."""
    colours = _opened(content)
    kinds = kinds_of(colours)
    for code, (colour, end) in _WORDS.items():
        if not (kinds == code).any():
            raise TaskError(
                f"the picture has no {colour} spot for the {end}; paint one square {colour}"
            )
    block = _inside(_block(kinds))
    lines, shares = _grid(block, to_the_pixel=_sharp(colours))
    squares = np.where(_with_posts(shares.dark > 0.5, lines), WALL, FREE).astype(np.uint8)
    places = {code: _spot(code, shares.spots[code]) for code in _WORDS}
    if places[START] == places[END]:
        raise TaskError("the green and the red spot lie in one square; move them apart")
    for code, place in places.items():
        squares[place] = code
    squares = _inside(squares)
    return squares, (_seen(squares, lines),)


def _seen(squares: Pixels, lines: Lines) -> str:
    height, width = squares.shape
    places = {code: np.argwhere(squares == code)[0].tolist() for code in _WORDS}
    spots = ", ".join(
        f"{_WORDS[code][1]} at row {row + 1}, column {column + 1}"
        for code, (row, column) in places.items()
    )
    return f"{height} by {width} squares of {lines.words}, {spots}"


def _opened(content: bytes) -> Pixels:
    """(H, W, 3) colours on white paper; the size is looked at before anything is unpacked."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Our own limit is lower, and says so in one line.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content)) as image:
                width, height = image.size
                if width * height > _MOST:
                    raise TaskError(_too_large(width, height))
                if "A" not in image.getbands() and "transparency" not in image.info:
                    return np.asarray(image.convert("RGB"))
                paper = Image.new("RGBA", image.size, "white")
                return np.asarray(Image.alpha_composite(paper, image.convert("RGBA")))[..., :3]
    except TaskError:  # ours, and a ValueError too
        raise
    except Image.DecompressionBombError:
        raise TaskError(_too_large(0, 0)) from None
    except UnidentifiedImageError:
        raise DataError("the picture is of no kind that is known; save it as PNG") from None
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(f"the picture is damaged ({error}); save it again as PNG") from error


def _too_large(width: int, height: int) -> str:
    size = f"{width:,} by {height:,} pixels" if width else "hundreds of millions of pixels"
    return (
        f"the picture has {size} and at most {_MOST:,} are read; "
        "make it smaller: a few pixels a square are enough"
    )


def _block(kinds: Pixels) -> Pixels:
    """The maze without the paper around it and what is written there.

    What lies between blank rows and columns and holds the spots is the maze, if walls go around
    it; a maze without such walls fills the picture, or lies alone on its paper.
    """
    found = _between_blanks(kinds)
    if _walled(found):
        return found
    ink = kinds != FREE
    if any(line.any() for line in (ink[0], ink[-1], ink[:, 0], ink[:, -1])):
        return kinds
    rows, columns = (np.flatnonzero(ink.any(axis=axis)) for axis in (1, 0))
    return kinds[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _walled(kinds: Pixels) -> bool:
    """Whether a wall goes around, openings aside."""
    rim = (kinds[0], kinds[-1], kinds[:, 0], kinds[:, -1])
    return all((line == WALL).mean() >= _CLOSED for line in rim)


def _between_blanks(kinds: Pixels) -> Pixels:
    """The part between blank rows and columns in which the spots lie."""
    for axis in (0, 1):
        turned = kinds if axis == 0 else kinds.T
        inked = (turned != FREE).any(axis=1)
        spots = np.flatnonzero((turned >= START).any(axis=1))
        blank = np.flatnonzero(~inked)
        before, after = blank[blank < spots[0]], blank[blank > spots[-1]]
        first = int(before[-1]) + 1 if len(before) else 0
        last = int(after[0]) if len(after) else len(turned)
        turned = turned[first:last]
        kinds = turned if axis == 0 else turned.T
    return kinds


def _inside(kinds: Pixels) -> Pixels:
    """Without rows and columns of wall around, whatever their thickness."""
    open_rows = np.flatnonzero((kinds != WALL).any(axis=1))
    open_columns = np.flatnonzero((kinds != WALL).any(axis=0))
    return kinds[open_rows[0] : open_rows[-1] + 1, open_columns[0] : open_columns[-1] + 1]


def _shares(kinds: Pixels, lines: Lines) -> _Shares:
    """How much of every square is dark, green and red."""
    rows, columns = (_middles(places) for places in (lines.rows, lines.columns))
    inside = kinds[: rows[-1], : columns[-1]]
    area = np.outer(np.diff(rows)[::2], np.diff(columns)[::2])

    def share(code: int) -> NDArray[np.float64]:
        # The sums between the ends of squares are left out again: every other one.
        down = np.add.reduceat(inside == code, rows[:-1], axis=0, dtype=np.int32)[::2]
        summed: NDArray[np.float64] = np.add.reduceat(down, columns[:-1], axis=1)[:, ::2] / area
        return summed

    return _Shares(share(WALL), {code: share(code) for code in _WORDS})


def _middles(places: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first pixel of each square's middle and the first after it, in turn: rims are blurred."""
    begins, ends = places[:-1], places[1:]
    rim = _RIM * (ends - begins)
    first = np.minimum(np.rint(begins + rim), np.ceil(ends) - 1)
    last = np.maximum(np.rint(ends - rim), first + 1)
    return np.stack([first, last], axis=1).ravel().astype(np.int64)


def _grid(kinds: Pixels, *, to_the_pixel: bool) -> tuple[Lines, _Shares]:
    """The coarsest grid whose squares are each of one colour: a photo has none."""
    for lines in grids(kinds == WALL, to_the_pixel=to_the_pixel):
        shares = _shares(kinds, lines)
        plain = np.maximum(shares.dark, 1 - shares.dark)
        of_one_colour = (plain < 0.7).mean() <= _MIXED and plain.mean() >= _PLAIN
        is_wall = shares.dark > 0.5
        explained = of_one_colour and _explained(kinds, lines, is_wall) and _roomy(is_wall, lines)
        if explained and not any(_too_fine(share) for share in shares.spots.values()):
            return lines, shares
    raise TaskError(
        "the picture shows no maze: dark walls and light ways must meet on one regular grid; "
        "crop it to the maze, draw it straight, or write the maze as text with # and spaces"
    )


def _too_fine(share: NDArray[np.float64]) -> bool:
    """Whether a spot covers a square and all four around it: such squares are none of the maze."""
    has = np.pad(share > 0.5, 1)
    around = has[:-2, 1:-1] & has[2:, 1:-1] & has[1:-1, :-2] & has[1:-1, 2:]
    return bool((around & has[1:-1, 1:-1]).any())


def _narrow(lines: Lines) -> list[NDArray[np.bool_]]:
    """Which rows and which columns are those of thin walls."""
    widths = [np.diff(places) for places in (lines.rows, lines.columns)]
    return [each < 0.7 * each.max() for each in widths]


def _roomy(is_wall: NDArray[np.bool_], lines: Lines) -> bool:
    """Whether rooms between thin walls are open; closed ones are thick walls with blurred rims."""
    rows, columns = _narrow(lines)
    if not (rows.any() and columns.any()):
        return True
    return bool(is_wall[np.outer(~rows, ~columns)].mean() <= _MIXED)


def _with_posts(is_wall: NDArray[np.bool_], lines: Lines) -> NDArray[np.bool_]:
    """Where thin walls cross, a wall that ends there makes the crossing one, round as it is."""
    narrow = _narrow(lines)
    rimmed = np.pad(is_wall, 1)
    beside = rimmed[:-2, 1:-1] | rimmed[2:, 1:-1] | rimmed[1:-1, :-2] | rimmed[1:-1, 2:]
    return is_wall | (np.outer(narrow[0], narrow[1]) & beside)


def _explained(kinds: Pixels, lines: Lines, is_wall: NDArray[np.bool_]) -> bool:
    """Whether the dark lies in squares of wall: thin lines between open squares are walls too."""
    rows, columns = (
        np.rint(places[:-1]).astype(np.int64) for places in (lines.rows, lines.columns)
    )
    down = np.add.reduceat(kinds == WALL, rows, axis=0, dtype=np.int32)
    dark = np.add.reduceat(down, columns, axis=1)
    return bool(dark[is_wall].sum() >= _SEEN * dark.sum())


def _sharp(colours: Pixels) -> bool:
    """Whether the picture has a handful of colours only, as one drawn pixel by pixel has."""
    numbers = (colours[..., 0].astype(np.int32) << 16) | (colours[..., 1].astype(np.int32) << 8)
    return len(np.unique(numbers | colours[..., 2])) <= _HANDFUL


def _spot(code: int, share: NDArray[np.float64]) -> tuple[int, int]:
    """The one square of a colour; neighbours of it that have some of it belong to it."""
    colour, end = _WORDS[code]
    left = {(int(row), int(column)) for row, column in np.argwhere(share > _SPOT)}
    if not left:  # too small for any square to have much of it
        return divmod(int(share.argmax()), int(share.shape[1]))
    groups = []
    while left:
        waiting, group = [left.pop()], []
        while waiting:
            row, column = waiting.pop()
            group.append((row, column))
            near = {(row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1)}
            waiting += near & left
            left -= near
        groups.append(max(group, key=lambda place: float(share[place])))
    if len(groups) > 1:
        (row, column), (other_row, other_column) = sorted(groups)[:2]
        raise TaskError(
            f"the picture has {len(groups)} {colour} spots, at row {row + 1}, column {column + 1} "
            f"and row {other_row + 1}, column {other_column + 1} among them; "
            f"a maze has one {end}, so keep one"
        )
    return groups[0]
