"""A maze in a picture: walls and paths, one green spot (start) and one red (end), or two gaps.

    >>> cells, notes = read_picture(Path("maze.png").read_bytes())
    >>> notes
    ('9 by 9 squares of 12 pixels, start at row 1, column 3, end at row 7, column 9',)

Any scale will do, cells may be wider than high, and colours need not be exact. A margin, a frame of
wall and lines of text around the maze are cropped; a path painted in another colour counts as free.
Walls may be as thick as the paths, or lines between them, as long as they meet on one regular grid.
They are dark, unless only the light ones go around the maze.

1. Classify pixels by colour (`pixel_codes`): vivid green and red are the spots, other bright paint
   is free, and the rest is wall or free by Otsu's threshold, after the light of a photograph has
   been evened out.
2. Crop to the maze.
3. Try the regular grids on which edges between dark and light may lie (`_grids`), coarsest first,
   until the cells of one are each of one colour.
4. Read the cells and the spots, or the gaps in the wall around. A picture in which a cell is not
   clearly wall or path is refused.

Shapes: H by W pixels, h by w cells.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iterant.errors import DataError, TaskError
from iterant.tasks.mazes.grid import (
    END,
    FREE,
    LARGEST_READ,
    START,
    WALL,
    distances,
    neighbours,
    path_lengths,
    where_ends_are,
)

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = NDArray[np.uint8]
Values = NDArray[np.float64]

_MOST_PIXELS = 25_000_000
"""At three bytes each and working memory, a few hundred megabytes."""
_LONGEST_SIDE = 20_000
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")
_SPOTS = {START: ("green", "start"), END: ("red", "end")}
_THIN = 0.7
"""Walls thinner than this share of a path's width lie between cells."""
_OPENINGS, _WHOLE = 0.5, 0.98
"""Share of a side that is wall when it may have the entrance; when it has no opening."""
_GAP = 0.6
"""Smallest width of a gap, relative to walls, and of paths, relative to gaps."""
_SQUARE = 0.03
"""How much the sides of squares may differ."""
_CLEAR = 0.75
"""Smallest share of the pixels of a cell that have its main colour."""
_WRONG = 0.35
"""Pixels that a grid may have in cells of the other colour, relative to dark or light ones."""
_NOISE = 0.02
"""Most pixels of another colour in a line of one, relative to its length."""
_OBLONG = 2.5
"""How many times as wide as high squares may be, or as high as wide."""
_TRIES = 60
"""Most grids that are tried."""


class _Grid(NamedTuple):
    """Edges of cells in pixels (one more than cells), and the size of cells in words."""

    rows: Values
    columns: Values
    words: str

    @property
    def thin(self) -> list[NDArray[np.bool_]]:
        """Which rows and which columns are those of thin walls."""
        widths = [np.diff(edges) for edges in (self.rows, self.columns)]
        return [width < _THIN * width.max() for width in widths]


def read_picture(content: bytes) -> tuple[Pixels, tuple[str, ...]]:
    """(h, w) codes of the cells, and notes on what was recognised."""
    codes, is_paint = pixel_codes(_open(content))
    dark = _crop(codes)
    light = _crop(codes ^ ~is_paint)  # what is not painted with wall and free exchanged
    readings = [(dark, ""), (light, "; light walls")]
    missing = [names for code, names in _SPOTS.items() if not (codes == code).any()]
    if len(missing) == 2:
        read = _between_gaps
        if _OPENINGS <= _closed(light) < _WHOLE:  # on paper, no side of the picture has gaps
            readings.reverse()
    elif missing:
        colour, end = missing[0]
        raise TaskError(
            f"the picture has no {colour} spot for the {end}; paint one square {colour}"
        )
    else:
        read = _between_spots
        on_light_paper = dark.shape != codes.shape and _has_frame(dark)
        readings.reverse()
        if on_light_paper or not _has_frame(light, thin=True):
            readings.pop(0)
    for reading, note in readings:
        with contextlib.suppress(TaskError):
            cells, words = read(reading)
            # Light paths may go around a maze too.
            if _is_likely(cells):
                return cells, (words + note,)
    cells, words = read(dark)
    if not neighbours(cells != WALL)[:, cells >= START].any(axis=0).all():
        raise TaskError(
            "no path begins at the start or the end, so it is not clear what is wall; "
            "draw walls dark, paths light, the start green and the end red"
        )
    return cells, (words,)


def _is_likely(cells: Pixels) -> bool:
    """Whether a way leads from start to end, and not only because they are neighbours.

    Where paths were read as walls, it is not.
    """
    steps = distances(cells[None])
    return bool(path_lengths(cells[None], steps)[0] > 0 and (steps >= 0).sum() > 2)


def _between_spots(codes: Pixels) -> tuple[Pixels, str]:
    """(h, w) codes of the cells with the ends at the spots, and a note."""
    grid, cells, spots = _find_cells(_without(WALL, codes))
    start, end = (_spot(code, share) for code, share in spots.items())
    if start == end:
        raise TaskError("the green and the red spot lie in one square; move them apart")
    cells[start], cells[end] = START, END
    cells = _without(WALL, cells)
    return cells, where_ends_are(cells, f" of {grid.words}")


def _between_gaps(codes: Pixels) -> tuple[Pixels, str]:
    """(h, w) codes of the cells and the wall around them, the ends in its gaps, and a note."""
    widths = [_wall_width(side) for side in _sides(codes)]
    wall, *_ = _run_lengths(codes == WALL)
    lines = [side[width // 2] for side, width in zip(_sides(codes), widths, strict=True)]
    gaps = [_gaps(line == WALL, wall) for line in lines]
    count, inside = sum(map(len, gaps)), _inside(codes, widths)
    if count == 2 and inside.size:
        # The gaps at the left and right are in rows, those at the top and bottom in columns.
        rows, columns = (
            _GAP * min((stop - first for first, stop in openings), default=0)
            for openings in (gaps[2] + gaps[3], gaps[0] + gaps[1])
        )
        grid, cells, _ = _find_cells(inside, paths=(rows, columns))
        cells = np.pad(cells, 1)
        is_end = np.zeros(cells.shape, dtype=np.bool_)
        edges = [grid.columns + widths[2]] * 2 + [grid.rows + widths[0]] * 2
        for side, at, openings in zip(_sides(is_end), edges, gaps, strict=True):
            middles = [(first + stop) / 2 for first, stop in openings]
            side[0, np.searchsorted(at, middles).clip(1, len(at) - 1)] = True
        if is_end.sum() == 2:
            cells[is_end] = START, END
            words = where_ends_are(cells, f" of {grid.words}")
            return cells, f"{words}, the gaps in the wall around"
    raise TaskError(
        "the picture has no green spot for the start and no red one for the end, and the wall "
        f"around the maze has {count or 'no'} gap{'s' * (count > 1)}; paint one square green and "
        "one red, or leave two gaps; a picture must not be rotated or cut off"
    )


def _sides(grid: Any) -> tuple[Any, Any, Any, Any]:
    """Views of (H, W) that begin at the top, the bottom, the left and the right."""
    return grid, grid[::-1], grid.T, grid.T[::-1]


def _inside(codes: Pixels, margins: list[int]) -> Pixels:
    """Without this many lines at the top, bottom, left and right."""
    top, bottom, left, right = margins
    return codes[top : codes.shape[0] - bottom, left : codes.shape[1] - right]


def _margins(code: int, codes: Pixels) -> list[int]:
    """How many lines of nothing but this code there are at the top, bottom, left and right.

    Other pixels are noise if they are few, and fewer than half of a wall or a path.
    """
    other = codes != code
    most = _run_lengths(other)[0] / 2
    return [
        int((side.sum(axis=1) > min(most, _NOISE * side.shape[1])).argmax())
        for side in _sides(other)
    ]


def _without(code: int, codes: Pixels) -> Pixels:
    """The part that is left when margins of this code are cropped."""
    return _inside(codes, _margins(code, codes))


def _wall_width(codes: Pixels) -> int:
    """How many of the first lines are the wall around; most other walls do not begin at it."""
    widths = (codes != WALL).argmax(axis=0)
    return int(np.percentile(widths[widths > 0], 15)) if widths.any() else 0


def _gaps(is_wall: NDArray[np.bool_], wall: float) -> list[tuple[int, int]]:
    """First and last pixel of the gaps in one side of the wall; none if most of it is open."""
    if is_wall.mean() < _OPENINGS:
        return []
    # A side begins and ends with wall, that of the sides beside it, however round the corner.
    inside = np.pad(is_wall[1:-1], 1, constant_values=True)
    changes = (np.flatnonzero(inside[1:] != inside[:-1]) + 1).tolist()
    gaps = zip(changes[::2], changes[1::2], strict=True)
    return [(first, stop) for first, stop in gaps if stop - first > _GAP * wall]


def _has_frame(codes: Pixels, *, thin: bool = False) -> bool:
    """Whether wall goes all around without a gap; ``thin``, and no thicker than other walls."""
    # Not the width of the frame: it may be paper.
    wall, *_ = _run_lengths(_without(WALL, codes) == WALL)
    sides = [side[: max(1, round(wall))] for side in _sides(codes)]
    is_whole = all((lines != FREE).mean(axis=1).max() >= _WHOLE for lines in sides)
    return is_whole and (not thin or max(_margins(WALL, codes)) <= 1.5 * wall)


def _open(content: bytes) -> Image:
    """The colours on white paper; the size is checked before anything is decompressed."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Our own limit is lower.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
                width, height = image.size
                if width * height <= _MOST_PIXELS and max(width, height) <= _LONGEST_SIDE:
                    paper = Image.new("RGBA", image.size, "white")
                    return Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")
    except UnidentifiedImageError as error:
        raise DataError("this is not a picture that can be read; save it as a PNG") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"the picture is damaged ({error}); save a smaller PNG") from error
    raise TaskError(
        f"the picture has {width:,} by {height:,} pixels, at most {_MOST_PIXELS:,} and "
        f"{_LONGEST_SIDE:,} per side are read; make it smaller"
    )


def pixel_codes(image: Image) -> tuple[Pixels, NDArray[np.bool_]]:
    """(H, W) WALL, FREE, START or END for each pixel, and whether it is painted in a colour."""
    # Bytes: a hue of 0 is red, 85 green, 170 blue, 255 nearly red again.
    hue, saturation, value = (np.asarray(band) for band in image.convert("HSV").split())
    vivid = (saturation > 114) & (value > 95)
    codes = np.full(vivid.shape, 255, dtype=np.uint8)
    codes[vivid & (value > 150)] = FREE  # any bright paint but these two
    codes[vivid & (hue > 53) & (hue < 117)] = START  # within 45 degrees of green
    codes[vivid & ((hue < 15) | (hue > 240))] = END  # within 20 degrees of red
    plain = codes == 255
    light = np.asarray(image.convert("L"))
    if not _is_flat(_histogram(light, plain)):
        # Noise has colours, too, but not beside each other.
        for code in _SPOTS:
            spot = codes == code
            codes[spot & (neighbours(spot).sum(axis=0) < 2)] = 255
        plain = codes == 255
        light = _even_out(light, plain)
    threshold = _otsu(_histogram(light, plain))
    codes[plain] = np.where(light[plain] > threshold, FREE, WALL)
    return codes, ~plain


def _histogram(light: Pixels, plain: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(256,): how many pixels of the mask have each lightness."""
    from PIL import Image

    return np.array(Image.fromarray(light).histogram(Image.fromarray(plain)))


def _otsu(counts: NDArray[np.int64]) -> int:
    """Otsu's threshold between dark and light, of the (256,) counts of lightness."""
    below = np.cumsum(counts)
    above = below[-1] - below
    sums = np.cumsum(counts * np.arange(256))
    with np.errstate(invalid="ignore", divide="ignore"):
        dark, bright = sums / below, (sums[-1] - sums) / above
        variance = np.nan_to_num(below * above * (bright - dark) ** 2.0)
    best = np.flatnonzero(variance == variance.max())
    threshold = int(best[len(best) // 2])
    contrast = bright[threshold] - dark[threshold]
    if not (below[threshold] and above[threshold]) or contrast < 50:  # of 255
        raise TaskError(
            "the picture shows no maze: there are no dark walls beside light paths; "
            "draw walls dark, paths light, the start green and the end red"
        )
    return threshold


def _is_flat(counts: NDArray[np.int64]) -> bool:
    """Whether (256,) counts of lightness are those of a drawing in two flat colours.

    It needs no correction, and light walls may be thin there.
    """
    shades = np.convolve(counts, np.ones(7), "same")  # neighbouring shades are one colour
    return bool(shades[:128].max() + shades[128:].max() > 0.85 * counts.sum())


def _even_out(light: Pixels, plain: NDArray[np.bool_]) -> Pixels:
    """(H, W) lightness, corrected if the light falls unevenly.

    A plane is fitted through the lightness of paper, the lightest part of each of 6 by 6 tiles.
    """
    height, width = light.shape
    points, values = [], []
    for rows in np.array_split(np.arange(height), 6):
        for columns in np.array_split(np.arange(width), 6):
            tile = np.ix_(rows, columns)
            if (lightness := light[tile][plain[tile]]).size:
                points.append((rows.mean(), columns.mean(), 1.0))
                values.append(np.percentile(lightness, 90))
    if len(points) < 6:
        return light
    slopes, *_ = np.linalg.lstsq(np.array(points), np.array(values), rcond=None)
    down, right, level = slopes.astype(np.float32)
    paper = down * np.arange(height)[:, None] + right * np.arange(width) + level
    if paper.min() <= 0:
        return light
    even: Pixels = np.minimum(light * (paper.max() / paper), 255).astype(np.uint8)
    return even


def _crop(codes: Pixels) -> Pixels:
    """The maze without margins and text.

    The part between blank rows and columns that holds the spots, or the largest, is the maze, if
    walls go around it; a maze without such walls fills the picture, or is alone on its paper.
    """
    whole = _without(FREE, codes)
    if _closed(whole) >= _OPENINGS:  # a straight path between two gaps is a blank row or column
        return whole
    part = codes
    for _ in range(2):  # rows, then columns
        inked = (part != FREE).any(axis=1)
        spots = np.flatnonzero((part >= START).any(axis=1))
        blank = np.concatenate([[-1], np.flatnonzero(~inked), [len(part)]])
        if len(spots):
            before = int(np.searchsorted(blank, spots[0])) - 1
            after = int(np.searchsorted(blank, spots[-1]))
        else:
            before = int(np.diff(blank).argmax())
            after = before + 1
        part = part[blank[before] + 1 : blank[after]].T
    if _closed(part) >= _OPENINGS:
        return part
    ink = codes != FREE
    return codes if any(side[0].any() for side in _sides(ink)) else whole


def _closed(codes: Pixels) -> float:
    """The share of the outermost pixels that are wall, on the side with the fewest.

    A side may be slanted, by one pixel in a hundred.
    """
    sides = [(side[: 1 + side.shape[1] // 100] == WALL).any(axis=0) for side in _sides(codes)]
    return min(float(side.mean()) for side in sides)


def _find_cells(
    codes: Pixels, paths: tuple[float, float] = (0, 0)
) -> tuple[_Grid, Pixels, dict[int, Values]]:
    """The coarsest grid whose cells are each of one colour; a photo of something else has none.

    Its paths are at least ``paths`` pixels high and wide. Also returns its (h, w) cells, WALL or
    FREE, and the shares of them that are green and red.
    """
    walls = codes == WALL
    sums = _sums(walls)
    rarer = max(1, min(walls.sum(), (~walls).sum()))
    # `least`: the largest share of wrong pixels that the next grid may have.
    best, least, is_clean = None, _WRONG, False
    grids = sorted(_grids(walls), key=lambda grid: len(grid.rows) * len(grid.columns))
    for grid in grids:
        height, width = np.diff(grid.rows).max(), np.diff(grid.columns).max()
        if height < paths[0] or width < paths[1]:
            continue
        if not 1 / _OBLONG < height / width < _OBLONG:
            continue
        if is_clean and abs(height - width) > _SQUARE * width:
            continue
        if max(len(grid.rows), len(grid.columns)) > LARGEST_READ + 3:
            continue
        dark, whole = _shares(sums, grid), _shares(sums, grid, rim=0)
        # Where thin walls cross, there is wall in any case.
        main = np.maximum(dark, 1 - dark)[~np.outer(*grid.thin)]
        # Pixels in cells of the other colour, relative to dark or light pixels: a grid that misses
        # thin walls or paths has about 1. A finer grid must be much better than a coarser one.
        area = np.outer(np.diff(grid.rows), np.diff(grid.columns))
        wrong = (np.minimum(whole, 1 - whole) * area).sum() / rarer
        # Most of the pixels of a cell have its main colour.
        if main.mean() < 0.9 or wrong >= least:
            continue
        spots = {code: _shares(_sums(codes == code), grid) for code in _SPOTS}
        if not any(_too_fine(share) for share in spots.values()):
            best, least = (grid, dark, spots), 0.6 * wrong
            is_clean = bool(main.mean() > 0.97)  # then cells wider than high are not better
            if wrong < 0.05:
                break
    if best is None:
        raise TaskError(
            "the picture shows no maze: dark walls and light paths must meet on one regular grid "
            f"of at most {LARGEST_READ} squares per side; crop it to the maze, draw it straight, "
            "or write the maze as text with # and spaces"
        )
    grid, dark, spots = best
    crossings = np.outer(*grid.thin)
    unclear = (np.maximum(dark, 1 - dark) < _CLEAR) & ~crossings
    for share in spots.values():
        unclear &= share < share.max()  # a spot in the shade is partly dark
    if unclear.any():
        row, column = (np.argwhere(unclear)[0] + 1).tolist()
        raise TaskError(
            f"it is not clear whether the square at row {row}, column {column} is wall or path; "
            "give a sharper, straighter or more evenly lit picture, or write the maze as text"
        )
    # Where thin walls cross there is wall: a dot is soon lost, and no path needs to cross it.
    is_wall = (dark > 0.5) | crossings
    return grid, np.where(is_wall, WALL, FREE).astype(np.uint8), spots


def _sums(mask: NDArray[np.bool_]) -> NDArray[np.int32]:
    """(H + 1, W + 1): how many pixels of the mask lie above and to the left."""
    sums = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1), dtype=np.int32)
    np.cumsum(mask, axis=0, dtype=np.int32, out=sums[1:, 1:])
    np.cumsum(sums, axis=1, out=sums)
    return sums


def _shares(sums: NDArray[np.int32], grid: _Grid, rim: float = 0.2) -> Values:
    """(h, w): the share of the mask's pixels in every cell, without a blurred rim on each side."""
    bounds = []
    for lines in (grid.rows, grid.columns):
        margin = rim * np.diff(lines)
        first = np.minimum(np.rint(lines[:-1] + margin), np.ceil(lines[1:]) - 1)
        last = np.maximum(np.rint(lines[1:] - margin), first + 1)
        bounds.append((first.astype(np.int64), last.astype(np.int64)))
    (top, bottom), (left, right) = bounds
    counts = sums[np.ix_(bottom, right)] - sums[np.ix_(bottom, left)] - sums[np.ix_(top, right)]
    shares: Values = (counts + sums[np.ix_(top, left)]) / np.outer(bottom - top, right - left)
    return shares


def _too_fine(share: Values) -> bool:
    """Whether a spot covers a cell and all four around it: the grid is finer than the maze."""
    spot = share > 0.5
    return bool((spot & neighbours(spot).all(axis=0)).any())


def _spot(code: int, share: Values) -> tuple[int, int]:
    """The one cell of a colour; cells near it that have some of the colour belong to it."""
    colour, end = _SPOTS[code]
    row, column = divmod(int(share.argmax()), share.shape[1])
    away = np.abs(np.argwhere(share > 0.12) - (row, column)).max(axis=1, initial=0)
    if (away > 2).any():
        raise TaskError(
            f"the picture has several {colour} spots, one of them at row {row + 1}, column "
            f"{column + 1}; a maze has one {end}, so keep one"
        )
    return row, column


def _grids(walls: NDArray[np.bool_]) -> Iterator[_Grid]:
    """The grids on which the edges of walls may lie.

    Cells have one size, or paths and thin walls alternate; both may be wider than high. At last, a
    pixel may be a cell.
    """
    counts = sorted(product(_counts(walls), _counts(walls.T)), key=math.prod)[:_TRIES]
    for count in counts:
        sides = zip(walls.shape, count, strict=True)
        rows, columns = (np.linspace(0, side, number + 1) for side, number in sides)
        yield _Grid(rows, columns, _pixels(rows[1], columns[1]))
    paths, thin = _run_lengths(~walls), _run_lengths(walls)
    for path, wall, regular in ((paths[:1] * 2, thin[:1] * 2, []), (paths[1:], thin[1:], counts)):
        rooms = np.rint((np.array(walls.shape) + wall) / (np.array(path) + wall)).astype(int)
        for count in dict.fromkeys([*regular, tuple(np.maximum(1, rooms).tolist())]):
            gaps = [(side + w) / n - w for side, w, n in zip(walls.shape, wall, count, strict=True)]
            if all(0 < w < _THIN * min(p, gap) for w, p, gap in zip(wall, path, gaps, strict=True)):
                darkness = walls.mean(axis=1), walls.mean(axis=0)
                rows, columns = map(_thin_walls, darkness, count, wall)
                yield _Grid(rows, columns, f"{_pixels(*gaps)} between thin walls")
    rows, columns = (np.arange(side + 1.0) for side in walls.shape)
    yield _Grid(rows, columns, "1 pixel")


def _counts(walls: NDArray[np.bool_]) -> list[int]:
    """Numbers of rows on whose lines most edges lie: peaks of the spectrum of edges between rows.

    Peaks are local maxima above 0.5, where 1 is perfectly periodic.
    """
    edges = np.zeros(len(walls))
    edges[1:] = (walls[1:] != walls[:-1]).sum(axis=1)
    strength = np.fft.rfft(edges).real[1:] / (1 + edges.sum())
    padded = np.pad(strength, 1)
    is_peak = (strength >= padded[:-2]) & (strength >= padded[2:]) & (strength > 0.5)
    peaks: list[int] = (np.flatnonzero(is_peak) + 1).tolist()
    return peaks


def _run_lengths(mask: NDArray[np.bool_]) -> tuple[float, float, float]:
    """The width of walls or paths: in both directions together, vertically and horizontally."""
    lengths = []
    for pixels in (mask.T, mask):
        some = pixels[:: max(1, len(pixels) // 500)]  # about 500 lines are enough
        flat = np.pad(some, ((0, 0), (1, 1))).ravel()
        edges = np.flatnonzero(flat[1:] != flat[:-1])
        lengths.append(edges[1::2] - edges[::2])
    return _usual(np.concatenate(lengths)), _usual(lengths[0]), _usual(lengths[1])


def _usual(lengths: NDArray[np.int64]) -> float:
    """The typical length of a run: the shortest of those that hold the most pixels."""
    counts = np.bincount(lengths, minlength=3)
    pixels_in = np.convolve(counts * np.arange(len(counts)), [1, 1, 1], "same")
    mode = int((pixels_in > pixels_in.max() / 2).argmax())
    near = np.arange(max(1, mode - 1), min(mode + 2, len(counts)))
    return float((counts[near] * near**2).sum() / max(1, (counts[near] * near).sum()))


def _thin_walls(darkness: Values, count: int, wall: float) -> Values:
    """The lines of thin walls between that many paths, by the mean darkness along an axis.

    Usually the outermost paths begin where the wall around was cropped (``frame`` = 1). They are
    narrower (2) where a pen centres walls on their lines and draws the frame inside it; and the
    blurred rest of the wall around may still be there (-1). The greatest contrast decides.
    """
    side = len(darkness)
    ink = np.concatenate([[0], np.cumsum(darkness)])  # before each pixel
    fits = []
    for frame in (1, 1.5, 2, 0.5, 0, -0.5, -1):
        period = (side + frame * wall) / count
        for shift in (0, -wall / 4, wall / 4, -wall / 2, wall / 2):
            ends = (1 - frame) * wall / 2 + shift + period * np.arange(count + 1)
            walls = np.stack([ends - wall, ends]).clip(0, side)
            dark = np.diff(np.interp(walls, np.arange(side + 1), ink), axis=0).sum()
            width = max(np.diff(walls, axis=0).sum(), 1e-9)
            contrast = dark / width - (ink[-1] - dark) / max(side - width, 1e-9)
            fits.append((round(float(contrast), 6), walls))
    lines = np.sort(max(fits, key=lambda fit: fit[0])[1].ravel())
    # The blurred rest of a surrounding wall is not a cell.
    rim = max(1.2, 0.8 * wall)
    return np.array([0.0, *lines[(lines > rim) & (lines < side - rim)].tolist(), side])


def _pixels(height: float, width: float) -> str:
    """``12 pixels``, or ``8.4 by 12 pixels`` where cells are wider than high."""
    if abs(height - width) > _SQUARE * width:
        return f"{height:.3g} by {width:.3g} pixels"
    return f"{width:.3g} pixel{'' if abs(width - 1) < 1e-9 else 's'}"
