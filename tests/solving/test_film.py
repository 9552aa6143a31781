"""A film has bounded memory and keeps its first and last frame."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exact import exact_prefix_sums, known_answer
from hypothesis import given
from hypothesis import strategies as st

import iterant
from iterant.errors import UsageError
from iterant.solving.film import Film, Frame, frames_of, least_confidence


def frame(step: int, value: int = 0) -> Frame:
    return Frame(step, np.full(3, value, dtype=np.uint8), 0.5)


@given(st.integers(1, 300), st.integers(2, 20))
def test_frames_are_evenly_spread(count: int, most: int) -> None:
    film = Film(3, most=most)
    for step in range(1, count + 1):
        if film.due(step):
            film.put(frame(step))
    steps = [frame_.step for frame_ in film.frames]
    assert len(steps) <= most
    assert steps == list(range(1, count + 1, film.every))
    assert film.every == 1 or 2 * len(steps) >= most - 1, "no more is dropped than must be"


def test_the_last_frame_is_added_in_any_case() -> None:
    film = Film(3, most=4)
    for step in range(1, 8):
        if film.due(step):
            film.put(frame(step))
    film.put(frame(8, 2))
    assert film.frames[-1].step < 8, "not due"
    film.put(frame(8, 1), last=True)
    assert film.frames[-1].step == 8
    assert film.frames[0].step == 1
    film.put(frame(8, 2), last=True)
    assert film.frames[-1].prediction[0] == 1, "an iteration has one frame"


def test_frames_by_size_of_the_problem() -> None:
    assert Film(64).most >= 1000
    assert 16 <= Film(1 << 22).most < 20
    with pytest.raises(UsageError, match="2 frames"):
        Film(3, most=1)


def test_the_frame_at_an_iteration_is_the_latest() -> None:
    film = Film(3)
    for step in (3, 4, 9):
        film.put(frame(step))
    assert [film.at(step).step for step in (1, 3, 4, 8, 100)] == [3, 3, 4, 4, 9]
    with pytest.raises(UsageError, match="empty"):
        Film(3).at(1)


def test_changes_are_the_frames_that_differ() -> None:
    film = Film(3)
    for step, value in enumerate([0, 0, 1, 1, 0], start=1):
        film.put(frame(step, value))
    assert [changed.step for changed in film.changes()] == [1, 3, 5]


def test_frames_have_answers_and_confidences() -> None:
    batch = iterant.task("prefix-sums").sample(4, size=9, seed=2)
    for thought in iterant.think(exact_prefix_sums(), batch.inputs, steps=9):
        answers = known_answer(batch.targets, thought.step)
        frames = frames_of(thought)
        for row, frame_ in enumerate(frames):
            assert frame_.step == thought.step
            assert frame_.prediction.tolist() == answers[row].tolist()
        # What is not known is a tie between two classes; what is known has logits 0 and 1.
        known = float(torch.tensor([0.0, 1.0]).softmax(0)[1])
        wanted = known if thought.step == 9 else 0.5
        assert least_confidence(thought).tolist() == pytest.approx([wanted] * 4)
