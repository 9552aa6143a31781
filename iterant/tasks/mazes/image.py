"""A maze in a picture: dark walls, light paths, one green spot (start) and one red (end).

    >>> cells, notes = read_picture(Path("maze.png").read_bytes())
    >>> notes
    ('9 by 9 squares of 12 pixels, start at row 1, column 3, end at row 7, column 9',)

Any scale will do, and colours need not be exact. A margin, a frame of wall and lines of text around
the maze are cropped; a path painted in another colour counts as free. Walls may be as thick as the
paths, or lines between them, as long as they meet on one regular grid.

1. Classify pixels by colour (`pixel_codes`): vivid green and red are the spots, other bright paint
   is free, and the rest is wall or free by Otsu's threshold, after the light of a photograph has
   been evened out.
2. Crop to the maze.
3. Try the regular grids on which edges between dark and light may lie (`_grids`), coarsest first,
   until the cells of one are each of one colour.
4. Read the cells and the spots.

Shapes: H by W pixels, h by w cells.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iterant.errors import DataError, TaskError
from iterant.tasks.mazes.grid import END, FREE, LARGEST_READ, START, WALL

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = NDArray[np.uint8]
Values = NDArray[np.float64]

_MOST_PIXELS = 25_000_000
_LONGEST_SIDE = 20_000
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")
"""At three bytes each and working memory, a few hundred megabytes."""
_SPOTS = {START: ("green", "start"), END: ("red", "end")}
_CONTRAST = 50
"""Smallest difference, of 255, between the means of dark and light pixels."""
_TILES = 6
"""Tiles per side, in each of which the lightest pixels are paper."""
_UNEVEN = 0.12
"""Relative difference in the lightness of paper below which a picture is left as it is."""
_PEAK = 0.5
"""Smallest strength of a frequency, where 1 is perfectly periodic."""
_RESOLUTION = 8
"""Frequencies tried for each whole number of cells."""
_TRIES = 60
_THIN, _PEN = 0.7, 0.35
"""Walls thinner than these shares of a path's width lie between cells; were drawn with a pen."""
_BAND = 0.3
"""Smallest difference in mean darkness between the lines of walls and of paths."""
_WIDTHS = 12
"""Distances between edges that are tried as widths of paths and walls."""
_MIXED, _PLAIN = 0.1, 0.9
"""Largest share of cells of two colours; smallest mean share of a cell's main colour."""
_SHARP_COLOURS = 8
_RIM = 0.2
"""Share of a cell on each side that is ignored, because edges are blurred."""
_CLOSED = 0.8
"""Share of a side that is wall when a wall goes around a maze; it may have openings."""
_SPOT = 0.12
"""Smallest share of a cell that is green or red in a spot."""


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
    image = _open(content)
    codes = pixel_codes(image)
    for code, (colour, end) in _SPOTS.items():
        if not (codes == code).any():
            raise TaskError(
                f"the picture has no {colour} spot for the {end}; paint one square {colour}"
            )
    codes = _without_walls_around(_crop(codes))
    sharp = image.getcolors(_SHARP_COLOURS) is not None
    grid, dark, spots = _find_grid(codes, sharp=sharp)
    is_wall = dark > 0.5
    # Where thin walls cross, a wall that ends there makes the crossing wall, however round.
    rimmed = np.pad(is_wall, 1)
    beside = rimmed[:-2, 1:-1] | rimmed[2:, 1:-1] | rimmed[1:-1, :-2] | rimmed[1:-1, 2:]
    cells = np.where(is_wall | (np.outer(*grid.thin) & beside), WALL, FREE).astype(np.uint8)
    positions = {code: _spot(code, share) for code, share in spots.items()}
    if positions[START] == positions[END]:
        raise TaskError("the green and the red spot lie in one square; move them apart")
    for code, position in positions.items():
        cells[position] = code
    cells = _without_walls_around(cells)
    note = f"{cells.shape[0]} by {cells.shape[1]} squares of {grid.words}"
    for code, (_, end) in _SPOTS.items():
        row, column = np.argwhere(cells == code)[0]
        note += f", {end} at row {row + 1}, column {column + 1}"
    return cells, (note,)


def _open(content: bytes) -> Image:
    """The colours on white paper; the size is checked before anything is decompressed."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            # Our own limit is lower.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
                width, height = image.size
                if width * height <= _MOST_PIXELS and max(width, height) <= _LONGEST_SIDE:
                    paper = Image.new("RGBA", image.size, "white")
                    return Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"the picture is damaged ({error}); save a smaller PNG") from error
    raise TaskError(
        f"the picture has {width:,} by {height:,} pixels, at most {_MOST_PIXELS:,} and "
        f"{_LONGEST_SIDE:,} a side are read; make it smaller"
    )


def pixel_codes(image: Image) -> Pixels:
    """(H, W) WALL, FREE, START or END for each pixel."""
    # Bytes: a hue of 0 is red, 85 green, 170 blue, 255 nearly red again.
    hue, saturation, value = (np.asarray(band) for band in image.convert("HSV").split())
    vivid = (saturation > 114) & (value > 95)
    codes = np.full(vivid.shape, 255, dtype=np.uint8)
    codes[vivid & (value > 150)] = FREE  # any bright paint but these two
    codes[vivid & (hue > 53) & (hue < 117)] = START  # within 45 degrees of green
    codes[vivid & ((hue < 15) | (hue > 240))] = END  # within 20 degrees of red
    plain = codes == 255
    light = _even_out(np.asarray(image.convert("L")), plain)
    # By rows: for its input, bincount makes a copy of eight bytes a pixel.
    counts = [np.bincount(row[mask], minlength=256) for row, mask in zip(light, plain, strict=True)]
    threshold = _otsu(np.sum(counts, axis=0))
    codes[plain] = np.where(light[plain] > threshold, FREE, WALL)
    return codes


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
    if not (below[threshold] and above[threshold]) or contrast < _CONTRAST:
        raise TaskError(
            "the picture shows no maze: there are no dark walls beside light paths; "
            "draw walls dark, paths light, the start green and the end red"
        )
    return threshold


def _even_out(light: Pixels, plain: NDArray[np.bool_]) -> Pixels:
    """(H, W) lightness, corrected if the light falls unevenly.

    A plane is fitted through the lightness of paper, the lightest part of every tile.
    """
    height, width = light.shape
    points, values = [], []
    for rows in np.array_split(np.arange(height), _TILES):
        for columns in np.array_split(np.arange(width), _TILES):
            tile = np.ix_(rows, columns)
            if (lightness := light[tile][plain[tile]]).size:
                points.append((rows.mean(), columns.mean(), 1.0))
                values.append(np.percentile(lightness, 90))
    if len(points) < _TILES:
        return light
    lit = np.array(values) > np.median(values) / 2  # a tile of nothing but wall shows no paper
    slopes, *_ = np.linalg.lstsq(np.array(points)[lit], np.array(values)[lit], rcond=None)
    down, right, level = slopes.astype(np.float32)
    paper = down * np.arange(height)[:, None] + right * np.arange(width) + level
    if paper.min() <= 0 or np.ptp(paper) < _UNEVEN * paper.max():
        return light
    even: Pixels = np.minimum(light * (paper.max() / paper), 255).astype(np.uint8)
    return even


def _crop(codes: Pixels) -> Pixels:
    """The maze without margins and text.

    The part between blank rows and columns that holds the spots is the maze, if walls go around
    it; a maze without such walls fills the picture, or is alone on its paper.
    """
    part = codes
    for _ in range(2):  # rows, then columns
        inked = (part != FREE).any(axis=1)
        spots = np.flatnonzero((part >= START).any(axis=1))
        blank = np.flatnonzero(~inked)
        before, after = blank[blank < spots[0]], blank[blank > spots[-1]]
        first = int(before[-1]) + 1 if len(before) else 0
        part = part[first : int(after[0]) if len(after) else len(part)].T
    sides = (part[0], part[-1], part[:, 0], part[:, -1])
    if all((side == WALL).mean() >= _CLOSED for side in sides):
        return part
    ink = codes != FREE
    if any(side.any() for side in (ink[0], ink[-1], ink[:, 0], ink[:, -1])):
        return codes
    return _bounding_box(codes, ink)


def _without_walls_around(codes: Pixels) -> Pixels:
    return _bounding_box(codes, codes != WALL)


def _bounding_box(codes: Pixels, mask: NDArray[np.bool_]) -> Pixels:
    """The smallest part of ``codes`` that contains all of the mask."""
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    return codes[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _find_grid(codes: Pixels, *, sharp: bool) -> tuple[_Grid, Values, dict[int, Values]]:
    """The coarsest grid whose cells are each of one colour; a photo of something else has none.

    Also returns the shares (h, w) of every cell that are dark, and those that are green and red.
    """
    walls = codes == WALL
    too_fine = ""
    for grid in filter(None, _grids(walls, sharp=sharp)):
        if max(len(grid.rows), len(grid.columns)) > LARGEST_READ + 3:
            too_fine = f"its squares may be too small, at most {LARGEST_READ} a side are read; "
            continue
        dark = _shares(walls, grid)
        main = np.maximum(dark, 1 - dark)
        if (main < 0.7).mean() > _MIXED or main.mean() < _PLAIN:
            continue
        is_wall = dark > 0.5
        # Rooms between thin walls are open; closed ones are thick walls with blurred edges.
        thin_rows, thin_columns = grid.thin
        rooms = is_wall[np.outer(~thin_rows, ~thin_columns)]
        if thin_rows.any() and thin_columns.any() and rooms.mean() > _MIXED:
            continue
        spots = {code: _shares(codes == code, grid) for code in _SPOTS}
        if not any(_too_fine(share) for share in spots.values()):
            return grid, dark, spots
    raise TaskError(
        "the picture shows no maze: dark walls and light paths must meet on one regular grid; "
        f"{too_fine}crop it to the maze, draw it straight, or write the maze as text with # and "
        "spaces"
    )


def _shares(mask: NDArray[np.bool_], grid: _Grid) -> Values:
    """(h, w): the share of the mask's pixels in the middle of every cell."""
    bounds = []
    for edges in (grid.rows, grid.columns):
        begins, ends = edges[:-1], edges[1:]
        rim = _RIM * (ends - begins)
        first = np.minimum(np.rint(begins + rim), np.ceil(ends) - 1)
        last = np.maximum(np.rint(ends - rim), first + 1)
        bounds.append(np.stack([first, last], axis=1).ravel().astype(np.int64))
    rows, columns = bounds
    inside = mask[: rows[-1], : columns[-1]]
    # Every other sum is that of a rim between two cells.
    down = np.add.reduceat(inside, rows[:-1], axis=0, dtype=np.int32)[::2]
    area = np.outer(np.diff(rows)[::2], np.diff(columns)[::2])
    shares: Values = np.add.reduceat(down, columns[:-1], axis=1)[:, ::2] / area
    return shares


def _too_fine(share: Values) -> bool:
    """Whether a spot covers a cell and all four around it: the grid is finer than the maze."""
    spot = np.pad(share > 0.5, 1)
    around = spot[:-2, 1:-1] & spot[2:, 1:-1] & spot[1:-1, :-2] & spot[1:-1, 2:]
    return bool((around & spot[1:-1, 1:-1]).any())


def _spot(code: int, share: Values) -> tuple[int, int]:
    """The one cell of a colour; cells near it that have some of the colour belong to it."""
    colour, end = _SPOTS[code]
    row, column = divmod(int(share.argmax()), share.shape[1])
    away = np.abs(np.argwhere(share > _SPOT) - (row, column)).max(axis=1, initial=0)
    if (away > 2).any():
        raise TaskError(
            f"the picture has several {colour} spots, one of them at row {row + 1}, column "
            f"{column + 1}; a maze has one {end}, so keep one"
        )
    return row, column


def _grids(walls: NDArray[np.bool_], *, sharp: bool) -> Iterator[_Grid | None]:
    """The grids on which the edges of walls may lie, the coarsest first; None: a try that failed.

    Edges between dark and light lie on the lines of the grid, so they are periodic. In a sharp
    picture, drawn pixel by pixel, a pixel may be a cell.
    """
    # Pixels of edge before each row and before each column, (H + 1,) and (W + 1,).
    counts = []
    for pixels in (walls, walls.T):
        counts.append(np.zeros(len(pixels) + 1, dtype=np.int64))
        counts[-1][1:-1] = (pixels[1:] != pixels[:-1]).sum(axis=1)
    darkness = [walls.mean(axis=1), walls.mean(axis=0)]
    yield _thin_walls(counts)
    for pitch in _pitches(counts):
        yield _blurred_walls(darkness, pitch)
        yield _regular(counts, pitch)
    if sharp:
        rows, columns = (np.arange(float(len(each))) for each in counts)
        yield _Grid(rows, columns, "1 pixel")


def _pitches(counts: list[NDArray[np.int64]]) -> Iterator[float]:
    """Periods of the edges along both axes: peaks of their spectrum."""
    lengths = [len(each) - 1 for each in counts]
    points = _RESOLUTION * max(*lengths, 16)
    total = sum(int(each.sum()) for each in counts)
    if not total:
        return
    # Each axis has its own phase, so magnitudes are added.
    spectrum = [np.abs(np.fft.rfft(each.astype(np.float64), points)) for each in counts]
    strength = (spectrum[0] + spectrum[1]) / total
    inner = strength[1:-1]
    is_peak = (inner >= strength[:-2]) & (inner > strength[2:]) & (inner > _PEAK)
    peaks = (np.flatnonzero(is_peak) + 1).tolist()
    if strength[-1] > _PEAK and strength[-1] > strength[-2]:
        peaks.append(len(strength) - 1)
    for peak in [peak for peak in peaks if points / peak <= min(lengths) + 1][:_TRIES]:
        yield points / peak


def _regular(counts: list[NDArray[np.int64]], pitch: float) -> _Grid | None:
    """Cells of about that pitch along both axes, whose outermost edges are the picture's."""
    axes: list[Values] = []
    for each in counts:
        length = len(each) - 1
        wave = complex((each * np.exp(2j * np.pi * np.arange(length + 1) / pitch)).sum())
        offset = np.angle(wave) / (2 * np.pi) * pitch if wave else 0.0
        count = max(1, round((length - offset) / pitch))
        edges: Values = np.linspace(offset, offset + pitch * count, count + 1)
        # A pixel may have been lost to blurring.
        if max(abs(edges[0]), abs(edges[-1] - length)) > max(1.6, 0.25 * pitch):
            return None
        edges[0], edges[-1] = 0, length
        axes.append(edges)
    return _Grid(axes[0], axes[1], _pixels(length / count))


def _thin_walls(counts: list[NDArray[np.int64]]) -> _Grid | None:
    """Walls that are lines: paths and walls alternate, each with its own width."""
    axes = [
        np.array([0.0, *np.flatnonzero(each).tolist(), float(len(each) - 1)]) for each in counts
    ]
    # An edge between two may be the end of a wall, which a pen leaves anywhere in a crossing.
    distances = [edges[lag:] - edges[:-lag] for edges in axes for lag in (1, 2, 3)]
    widths, frequency = np.unique(np.concatenate(distances), return_counts=True)
    common = widths[np.argsort(-frequency, kind="stable")[:_WIDTHS]]
    pairs = [(path, wall) for path in common for wall in common if wall < _THIN * path]
    for path, wall in sorted(pairs, key=sum, reverse=True):
        rows, columns = (_alternating(edges, path, wall) for edges in axes)
        if rows is not None and columns is not None:
            return _Grid(rows, columns, f"{_pixels(path)} between thin walls")
    return None


def _alternating(edges: Values, path: float, wall: float) -> Values | None:
    """Lines path, wall, path … path apart, if every edge lies on one of them.

    Walls drawn with a pen may end anywhere within a crossing, and are centred on their line where
    the frame lies inside it: the outermost paths are then a little narrower.
    """
    by_pen = wall < _PEN * path
    period, length, inner = path + wall, edges[-1], edges[1:-1]
    count = round((length + wall) / period)
    if count < 2:
        return None
    slack = min(0.1 * path, 0.4 * wall)
    shifts = {0.0, *((inner - path) % period).tolist()} if by_pen else {0.0}
    for shift in sorted(min(each, each - period, key=abs) for each in shifts):
        starts = shift + period * np.arange(count)
        lines = np.sort(np.concatenate([starts, starts + path]))
        if max(abs(lines[0]), abs(lines[-1] - length)) > slack + (wall if by_pen else 0.0):
            continue
        crossing = ((inner - shift) % period > path) & by_pen
        after = np.searchsorted(lines, inner).clip(1, len(lines) - 1)
        away = np.minimum(np.abs(inner - lines[after - 1]), np.abs(inner - lines[after]))
        if (crossing | (away <= slack)).all():
            return np.array([0.0, *lines[1:-1].tolist(), length])
    return None


def _blurred_walls(darkness: list[Values], pitch: float) -> _Grid | None:
    """Thin walls whose edges are blurred: averaged over periods, the wall is a dark band."""
    periods = pitch * np.linspace(0.98, 1.02, _TRIES)
    period = float(
        max(periods, key=lambda each: sum(float(_fold(d, each).var()) for d in darkness))
    )
    rows, columns = (_bands(each, period) for each in darkness)
    if rows is None or columns is None:
        return None
    return _Grid(rows, columns, f"{_pixels(period)} from wall to thin wall")


def _fold(darkness: Values, period: float) -> Values:
    """The mean darkness at each pixel of a period."""
    bins = max(2, int(period))
    which = ((np.arange(len(darkness)) + 0.5) % period * bins / period).astype(np.int64)
    counts = np.bincount(which, minlength=bins)
    mean: Values = np.bincount(which, weights=darkness, minlength=bins) / np.maximum(counts, 1)
    return mean


def _bands(darkness: Values, period: float) -> Values | None:
    """Lines of paths and walls by the one dark band of a period, if it is thin."""
    mean = _fold(darkness, period)
    dark = mean > (mean.max() + mean.min()) / 2
    starts = np.flatnonzero(dark & ~np.roll(dark, 1))
    if len(starts) != 1 or mean.max() - mean.min() < _BAND:
        return None
    wall, path = (part.sum() * period / len(mean) for part in (dark, ~dark))
    if wall >= _THIN * path:
        return None
    begins = np.arange(starts[0] * period / len(mean) - period, len(darkness), period)
    lines = np.sort(np.concatenate([begins, begins + wall]))
    # The blurred rest of a surrounding wall is not a cell.
    rim = max(1.2, 0.8 * wall)
    lines = lines[(lines > rim) & (lines < len(darkness) - rim)]
    return np.array([0.0, *lines.tolist(), float(len(darkness))])


def _pixels(size: float) -> str:
    return f"{size:.3g} pixel{'' if abs(size - 1) < 1e-9 else 's'}"
