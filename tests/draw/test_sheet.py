"""Sheets: every panel whole, none over another, in reading order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterant.draw.figure import sheet
from iterant.errors import UsageError
from iterant.tasks.protocol import Description, Glyph


def plain(rows: int, columns: int, **more: Any) -> Description:
    return Description("a problem", "", np.zeros((rows, columns, 3), np.uint8), **more)


sizes = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=7)


@settings(max_examples=12)
@given(sizes, st.none() | st.integers(1, 8))
def test_panels_are_inside_and_apart(shapes: list[tuple[int, int]], columns: int | None) -> None:
    figure = sheet([plain(*shape) for shape in shapes], columns=columns, scale=10)
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == len(shapes)
    for place, box in enumerate(boxes):
        assert 0 <= box.x0 < box.x1 <= 1
        assert 0 <= box.y0 < box.y1 <= 1
        for other in boxes[:place]:
            assert other.x1 < box.x0 or other.y0 > box.y1, "panels overlap or are out of order"


def test_the_number_of_columns_is_kept() -> None:
    figure = sheet([plain(4, 4)] * 6, columns=3)
    assert len({round(axes.get_position().x0, 6) for axes in figure.axes}) == 3


def test_strips_stand_below_each_other_and_squares_beside() -> None:
    strips = sheet([plain(2, 64)] * 2)
    squares = sheet([plain(20, 20)] * 2)
    assert len({axes.get_position().x0 for axes in strips.axes}) == 1
    assert len({axes.get_position().y0 for axes in squares.axes}) == 1


def test_cells_with_glyphs_are_large_enough_to_read() -> None:
    with_signs = sheet([plain(1, 64, glyphs=(Glyph(0, 0, "1"),))])
    without = sheet([plain(1, 64)])
    width = with_signs.axes[0].get_window_extent().width
    assert width / 64 >= 20
    assert without.axes[0].get_window_extent().width < width


@pytest.mark.parametrize(
    ("count", "options", "message"),
    [
        (0, {}, "nothing to draw"),
        (1, {"columns": 0}, "columns must be at least 1, got 0"),
        (1, {"scale": -2}, "scale must be at least 1, got -2"),
        (1, {"scale": 9000}, "pixels and at most 20000 a side"),
    ],
)
def test_what_cannot_be_drawn_is_refused(count: int, options: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sheet([plain(3, 3)] * count, **options)
