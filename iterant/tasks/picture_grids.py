"""The regular grid on which the walls of a drawn maze meet.

    >>> next(grids(walls))                       # (H, W) bool, cut to the maze
    Lines(rows=array([0., 8., 16., …]), columns=…, words='8 pixels')

A boundary between dark and light lies on a line of the grid, so boundaries come at a regular beat.
The beats that are heard are given from the coarsest on; whether the squares between the lines are
each of one colour is for the caller to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
