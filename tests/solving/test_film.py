"""Films: bounded, spread evenly over the iterations, and always ending with the last answer."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from iterant.solving import Film, Frame


def frame(step: int, value: int = 0) -> Frame:
    return Frame(step, np.full(3, value, dtype=np.uint8), 0.5)


@given(st.integers(1, 500), st.integers(2, 20))
def test_frames_are_spread_evenly_and_bounded(count: int, most: int) -> None:
    film = Film(3)
    film.max_frames = most
    for step in range(1, count + 1):
        film.put(frame(step))
    steps = [each.step for each in film.frames]
    assert len(steps) <= most
    assert steps == list(range(1, count + 1, film.stride))
    assert film.stride == 1 or 2 * len(steps) >= most - 1, "no more is dropped than must be"
    film.put(frame(count + 1, 1), last=True)
    assert film.frames[-1].step == count + 1


def test_small_problems_are_filmed_whole_and_large_ones_a_little() -> None:
    assert Film(64).max_frames >= 1000
    assert 16 <= Film(1 << 22).max_frames < 20


def test_frames_by_iteration_and_changes() -> None:
    film = Film(3)
    for step, value in ((3, 0), (4, 0), (9, 1), (11, 1), (12, 0)):
        film.put(frame(step, value))
    assert [film.at(step).step for step in (1, 3, 4, 8, 100)] == [3, 3, 4, 4, 12]
    assert [each.step for each in film.changes()] == [3, 9, 12]
