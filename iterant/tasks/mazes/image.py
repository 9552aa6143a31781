"""A maze in a picture: dark walls, light ways, one green spot and one red.

    >>> squares, notes = read_picture(Path("maze.png").read_bytes())
    >>> notes
    ('9 by 9 squares of 12 pixels, start at row 1, column 3, end at row 7, column 9',)

Any scale and close colours will do. A margin of paper, a frame of wall and lines of text around
the maze are left out; a way that somebody painted in another colour counts as free. Walls may be
as thick as the ways, or lines between them, as long as they meet on one regular grid.

What each pixel of a drawn maze is, by its colour: wall, way, start or end.

Vivid green and red are the spots, any other bright paint is somebody's drawing on a way. Of the
rest, what is dark is wall: dark beside the light around it, since one side of a photograph is often
darker than the other.

The regular grid on which the walls of a drawn maze meet.

A boundary between dark and light lies on a line of the grid, so boundaries come at a regular beat.
The beats that are heard are given from the coarsest on; whether the squares between the lines are
each of one colour is for the caller to look at.

Shapes: H by W pixels, h by w squares.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iterant.errors import DataError, TaskError
from iterant.tasks.mazes.generate import END, FREE, START, WALL

Pixels = NDArray[np.uint8]

_CONTRAST = 50
"""Of 255, between the mean of what is dark and the mean of what is light."""
_ROWS = 256
"""Looked at together, so that working memory does not grow with the picture."""
_TILES = 6
"""A side, in each of which the lightest pixels are the paper."""
_PAPER = 90
"""Per cent of a tile's pixels that are darker than its paper, or as dark."""
_UNEVEN = 0.12
"""Of the brightest: paper that differs less is lit evenly, and its picture is left as it is."""


def kinds_of(colours: Pixels) -> Pixels:
    """(H, W) WALL, FREE, START or END for every pixel, by its colour."""
    kinds = np.empty(colours.shape[:2], dtype=np.uint8)
    light = np.empty(colours.shape[:2], dtype=np.uint8)
    for top in range(0, len(colours), _ROWS):
        part = slice(top, top + _ROWS)
        red, green, blue = (colours[part, :, place].astype(np.int16) for place in range(3))
        most, least = (np.maximum(np.maximum(red, green), blue),
                       np.minimum(np.minimum(red, green), blue))  # fmt: skip
        spread = most - least
        vivid = (spread * 20 > most * 9) & (most > 95)
        # Red within 20 degrees of hue, green within 45; any other bright paint is no wall.
        is_red = vivid & (red == most) & (np.abs(green - blue) * 3 < spread)
        is_green = vivid & (green == most) & (np.abs(blue - red) * 4 < spread * 3)
        painted = vivid & (most > 150) & ~is_red & ~is_green
        # Whole numbers up to 255,000: more than the 16 bits of the parts can hold.
        light[part] = colours[part].astype(np.int32) @ np.array([299, 587, 114]) // 1000
        kinds[part] = np.select([is_green, is_red, painted], [START, END, FREE], 255)
    plain = kinds == 255
    _evenly_lit(light, plain)
    limit = _threshold(np.bincount(light[plain], minlength=256))
    kinds[plain] = np.where(light[plain] > limit, FREE, WALL)
    return kinds


def _threshold(counts: NDArray[np.int64]) -> float:
    """Between dark and light: Otsu's, where the two sides lie furthest apart."""
    values = np.arange(256)
    below = np.cumsum(counts)
    above = below[-1] - below
    sums = np.cumsum(counts * values)
    with np.errstate(invalid="ignore", divide="ignore"):
        dark, bright = sums / below, (sums[-1] - sums) / above
        apart = np.nan_to_num(below * above * (bright - dark) ** 2.0)
    best = np.flatnonzero(apart == apart.max())
    limit = int(best[len(best) // 2])
    if not (below[limit] and above[limit]) or bright[limit] - dark[limit] < _CONTRAST:
        raise TaskError(
            "the picture shows no maze: there are no dark walls beside light ways; "
            "draw walls dark, ways light, the start green and the end red"
        )
    return float(limit)


def _evenly_lit(light: Pixels, plain: NDArray[np.bool_]) -> None:
    """Make (H, W) lightness in place what even light would have made it.

    Paper is the lightest part of every tile; a plane through it is how the light falls. Tiles that
    hold nothing but wall say nothing about paper.
    """
    papers = _papers(light, plain)
    if len(papers) < _TILES:
        return
    sides, values = papers[:, :2], papers[:, 2]
    kept = values > np.median(values) / 2
    shape = np.column_stack([sides, np.ones(len(sides))])
    slopes, *_ = np.linalg.lstsq(shape[kept], values[kept], rcond=None)
    height, width = light.shape
    corners = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]]) @ slopes
    if corners.min() <= 0 or np.ptp(corners) < _UNEVEN * corners.max():
        return
    across = slopes[1] * (np.arange(width) + 0.5) / width + slopes[2]
    for top in range(0, height, _ROWS):
        rows = np.arange(top, min(top + _ROWS, height))
        paper = slopes[0] * (rows[:, None] + 0.5) / height + across
        even = light[rows] * (corners.max() / paper)
        light[rows] = np.minimum(even, 255)


def _papers(light: Pixels, plain: NDArray[np.bool_]) -> NDArray[np.float64]:
    """A row a tile: how far down and across its middle lies, of 1, and how light its paper is."""
    edges = [np.linspace(0, side, _TILES + 1).astype(np.int64) for side in light.shape]
    found = []
    for row in range(_TILES):
        for column in range(_TILES):
            part = (slice(*edges[0][row : row + 2]), slice(*edges[1][column : column + 2]))
            seen = light[part][plain[part]]
            if seen.size:
                middle = ((row + 0.5) / _TILES, (column + 0.5) / _TILES)
                found.append((*middle, float(np.percentile(seen, _PAPER))))
    return np.array(found, dtype=np.float64).reshape(-1, 3)


_HEARD = 0.5
"""Of the strength of a perfect beat."""
_FINE = 8
"""Frequencies looked at for each whole number of squares."""
_TRIES = 60
_THINNER = 0.7
"""Of the width of a way: walls as thick as that or thicker are squares themselves."""

_BAND = 0.3
"""Of 1: how much darker the lines that walls lie on are, in the mean, than those of ways."""
_PEN = 0.35
"""Of the width of a way: walls thinner than that are drawn with a pen."""
_WIDTHS = 12
"""Distances between boundaries that are tried as widths of ways and walls."""

Places = NDArray[np.float64]


@dataclass(frozen=True)
class Lines:
    """Where squares begin and end, in pixels: one more line than squares."""

    rows: Places
    columns: Places
    words: str
    """How large the squares are"""


@dataclass(frozen=True)
class _Edges:
    """How many pixels of boundary lie before each row of pixels."""

    counts: NDArray[np.int64]
    length: int

    @property
    def places(self) -> Places:
        return np.flatnonzero(self.counts).astype(np.float64)


def grids(walls: NDArray[np.bool_], *, to_the_pixel: bool) -> Iterator[Lines]:
    """The grids that boundaries may lie on, the coarsest first.

    ``to_the_pixel`` says that the picture is sharp, so that a pixel may be a square.
    """
    down, across = _edges(walls), _edges(walls.T)
    thin = _thin_walls(down, across)
    if thin is not None:
        yield thin
    shades = [walls.mean(axis=1), walls.mean(axis=0)]
    for pitch in _beats(down, across):
        if (blurred := _blurred_walls(shades, pitch)) is not None:
            yield blurred
        if (lines := _lines(down, across, pitch)) is not None:
            yield lines
    if to_the_pixel:
        rows, columns = (np.arange(edges.length + 1.0) for edges in (down, across))
        yield Lines(rows, columns, "1 pixel")


def _edges(walls: NDArray[np.bool_]) -> _Edges:
    """The boundaries met when going down."""
    counts = np.zeros(len(walls) + 1, dtype=np.int64)
    counts[1:-1] = (walls[1:] != walls[:-1]).sum(axis=1)
    return _Edges(counts, len(walls))


def _beats(down: _Edges, across: _Edges) -> Iterator[float]:
    """Distances between lines at which both axes' boundaries come again and again."""
    points = _FINE * max(down.length, across.length, 16)
    total = int(down.counts.sum() + across.counts.sum())
    if not total:
        return
    # Either axis has a phase of its own, so strengths add and not the waves.
    strength = sum(
        (np.abs(np.fft.rfft(edges.counts.astype(np.float64), points)) for edges in (down, across)),
        start=np.zeros(points // 2 + 1),
    ) / total  # fmt: skip
    inner = strength[1:-1]
    peak = (inner >= strength[:-2]) & (inner > strength[2:]) & (inner > _HEARD)
    tops = [*(np.flatnonzero(peak) + 1).tolist()]
    if strength[-1] > _HEARD and strength[-1] > strength[-2]:
        tops.append(len(strength) - 1)
    shortest = min(down.length, across.length)
    for top in [top for top in tops if points / top <= shortest + 1][:_TRIES]:
        yield points / _summit(strength, top)


def _summit(strength: Places, top: int) -> float:
    """Where the parabola through a peak and its neighbours is highest."""
    if top + 1 >= len(strength):
        return float(top)
    left, middle, right = strength[top - 1 : top + 2]
    bend = left - 2 * middle + right
    return float(top if bend == 0 else top + 0.5 * (left - right) / bend)


def _lines(down: _Edges, across: _Edges, pitch: float) -> Lines | None:
    """Whole numbers of squares of about that size along both axes, each with its own offset."""
    made = []
    for edges in (down, across):
        wave = np.exp(2j * np.pi * np.arange(len(edges.counts)) / pitch)
        heard = complex((edges.counts * wave).sum())
        offset = np.angle(heard) / (2 * np.pi) * pitch if heard else 0.0
        count = round((edges.length - offset) / pitch)
        if count < 1:
            return None
        lines = offset + pitch * np.arange(count + 1)
        # The ends of the maze are lines themselves, but for a pixel lost to blurring.
        if max(abs(lines[0]), abs(lines[-1] - edges.length)) > max(1.6, 0.25 * pitch):
            return None
        lines[0], lines[-1] = 0, edges.length
        made.append(lines.astype(np.float64))
    return Lines(made[0], made[1], _pixels(pitch))


def _thin_walls(down: _Edges, across: _Edges) -> Lines | None:
    """Walls that are lines: ways and walls take turns, each kind with one width of its own."""
    rows, columns = (
        np.array([0.0, *edges.places.tolist(), float(edges.length)]) for edges in (down, across)
    )
    # A boundary between two may be the end of a wall, which a pen leaves anywhere in a crossing.
    apart = [places[lag:] - places[:-lag] for places in (rows, columns) for lag in (1, 2, 3)]
    widths, counts = np.unique(np.concatenate(apart), return_counts=True)
    common = widths[np.argsort(-counts, kind="stable")[:_WIDTHS]]
    pairs = [(way, wall) for way in common for wall in common if wall < _THINNER * way]
    for way, wall in sorted(pairs, key=sum, reverse=True):
        made = [_turns(lines, way, wall) for lines in (rows, columns)]
        if made[0] is not None and made[1] is not None:
            return Lines(made[0], made[1], f"{_pixels(way)} between thin walls")
    return None


def _blurred_walls(shades: list[Places], pitch: float) -> Lines | None:
    """The same where lines are blurred: periods laid over each other show the wall as a band."""
    tried = pitch * np.linspace(0.98, 1.02, _TRIES)
    period = max(tried, key=lambda each: sum(float(_folded(s, each).var()) for s in shades))
    made = [_bands(shade, float(period)) for shade in shades]
    if made[0] is None or made[1] is None:
        return None
    return Lines(made[0], made[1], f"{_pixels(float(period))} from wall to thin wall")


def _folded(shade: Places, period: float) -> Places:
    """The mean darkness at each pixel of a period."""
    bands = max(2, int(period))
    which = ((np.arange(len(shade)) + 0.5) % period * bands / period).astype(np.int64)
    counts = np.bincount(which, minlength=bands)
    summed: Places = np.bincount(which, weights=shade, minlength=bands) / np.maximum(counts, 1)
    return summed


def _bands(shade: Places, period: float) -> Places | None:
    """Lines of ways and walls in turn, by the one dark band of a period, if it is thin."""
    mean = _folded(shade, period)
    dark = mean > (mean.max() + mean.min()) / 2
    starts = np.flatnonzero(dark & ~np.roll(dark, 1))
    if len(starts) != 1 or mean.max() - mean.min() < _BAND:
        return None
    wall, way = (part * period / len(mean) for part in (dark.sum(), (~dark).sum()))
    if wall >= _THINNER * way:
        return None
    begins = np.arange(starts[0] * period / len(mean) - period, len(shade), period)
    lines = np.sort(np.concatenate([begins, begins + wall]))
    # The rim of a wall around, left over by blurring, is no square of its own.
    rim = max(1.2, 0.8 * wall)
    lines = lines[(lines > rim) & (lines < len(shade) - rim)]
    return np.array([0.0, *lines.tolist(), float(len(shade))])


def _turns(places: Places, way: float, wall: float) -> Places | None:
    """Lines way, wall, way … way apart, if every boundary lies on one of them.

    Walls drawn with a pen may end anywhere within a crossing, and lie across the middle of their
    place where the frame lies inside it: the outermost ways are a little narrower then.
    """
    by_pen = wall < _PEN * way
    period, length = way + wall, places[-1]
    count = round((length + wall) / period)
    if count < 2:
        return None
    slack = min(0.1 * way, 0.4 * wall)
    room = slack + (wall if by_pen else 0.0)
    shifts = {0.0, *((places[1:-1] - way) % period).tolist()} if by_pen else {0.0}
    for shift in sorted(min(each, each - period, key=abs) for each in shifts):
        starts = shift + period * np.arange(count)
        lines = np.sort(np.concatenate([starts, starts + way]))
        if max(abs(lines[0]), abs(lines[-1] - length)) > room:
            continue
        inner = places[1:-1]
        within = ((inner - shift) % period > way) & by_pen
        away = np.where(within, 0.0, np.abs(inner[:, None] - lines).min(axis=1, initial=length))
        if (away <= slack).all():
            return np.array([0.0, *lines[1:-1].tolist(), length])
    return None


def _pixels(size: float) -> str:
    return f"{size:.3g} pixel{'' if abs(size - 1) < 1e-9 else 's'}"


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
