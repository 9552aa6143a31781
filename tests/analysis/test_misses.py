"""Near misses: counted as the task says, drawn with their errors."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from iterant.analysis import errors_by_kind as module
from iterant.analysis.errors_by_kind import near_misses
from iterant.errors import UsageError
from iterant.tasks.chess.task import Chess
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

TASK = Mazes()
BATCH = TASK.sample(10, size=5, seed=1)


class Reciting:
    """Answers by heart: the targets of the batch, with the pixels of some flipped."""

    def __init__(self, answers: Tensor, broken: Tensor | None = None) -> None:
        self.answers, self.broken = answers, broken

    def read(self, inputs: Tensor) -> None:
        """Nothing is recalled."""

    def start(self, inputs: Tensor) -> Tensor:
        features = self.answers[:, None].float()
        return features if self.broken is None else features / ~self.broken[:, None, None, None]

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return features

    def answer(self, features: Tensor) -> Tensor:
        return torch.cat([1 - features, features], dim=1)


def with_loose_pixels(counts: list[int]) -> Tensor:
    answers = BATCH.targets.clone()
    for row, count in enumerate(counts):
        answers[row, 0, :count] = 1
    return answers


def test_wrong_pixels_are_a_distribution() -> None:
    counts = [0, 1, 3, 1, 0, 0, 0, 0, 0, 2]
    seen = near_misses(Reciting(with_loose_pixels(counts)), TASK, BATCH, steps=2)
    assert seen.wrong.tolist() == counts
    figures = seen.figures()
    assert figures["problems by wrong positions"] == {"0": 6, "1": 2, "2": 1, "3": 1}
    assert (figures["failures"], figures["failures that are connected"]) == (4, 4)
    assert figures["failures that are valid"] == 0
    ((_, trace),) = seen.plots()
    assert list(trace.x) == [0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert list(trace.y) == pytest.approx([0, 0, 60, 60, 80, 80, 90, 90, 100])


def test_failures_are_kept_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [0, 1, 3, 1, 0, 0, 0, 0, 0, 2]
    seen = near_misses(Reciting(with_loose_pixels(counts)), TASK, BATCH, steps=1)
    assert [one.title for one in seen.failures] == [f"mazes, problem {n}" for n in (1, 2, 3, 9)]
    assert "3 pixels wrong" in seen.failures[1].caption
    monkeypatch.setattr(module, "PICTURED", 2)
    assert len(near_misses(Reciting(with_loose_pixels(counts)), TASK, BATCH, steps=1).failures) == 2


def test_nothing_wrong_is_nothing_drawn() -> None:
    seen = near_misses(Reciting(BATCH.targets), TASK, BATCH, steps=1)
    assert seen.failures == ()
    assert not seen.missed.any()
    ((_, trace),) = seen.plots()
    assert (list(trace.x), list(trace.y)) == ([0, 0, 0, 1], [0, 0, 100, 100])
    assert seen.headline()["wrong positions a failure (median)"] == "–"


def test_broken_features_are_counted() -> None:
    broken = torch.arange(10) % 5 == 0
    seen = near_misses(Reciting(BATCH.targets, broken), TASK, BATCH, steps=1)
    assert torch.equal(seen.broken, broken)


def test_of_a_task_without_ways_only_positions_are_told() -> None:
    task = PrefixSums()
    batch = task.sample(3, size=8, seed=1)
    answers = batch.targets.clone()
    answers[1, :3] = 1 - answers[1, :3]
    seen = near_misses(Reciting(answers), task, batch, steps=1)
    assert seen.wrong.tolist() == [0, 3, 0]
    assert seen.figures() == {"problems": 3, "failures": 1, "broken": 0,
                              "problems by wrong positions": {"0": 2, "3": 1}}  # fmt: skip
    assert list(seen.headline()) == ["problems", "failures", "wrong positions a failure (median)",
                                     "NaN"]  # fmt: skip
    (failure,) = seen.failures
    assert "3 wrong" in failure.caption


def test_a_chess_failure_is_drawn_as_an_answer_is() -> None:
    task = Chess()
    batch = task.sample(3, size=(0, 9), seed=1)
    moved = batch.targets.roll(1, dims=2)
    seen = near_misses(Reciting(moved), task, batch, steps=1)
    assert seen.missed.all()
    for number, failure in enumerate(seen.failures):
        drawn = task.describe(batch, number, moved)
        assert failure.arrows == drawn.arrows
        assert failure.caption == drawn.caption
        assert failure.caption.endswith(", wrong")
        assert failure.title == f"{drawn.title}, problem {number}"


def test_what_the_task_calls_solved_is_no_failure() -> None:
    class Lenient(PrefixSums):
        def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
            return (prediction == batch.targets).flatten(1)[:, -1]

    task = Lenient()
    batch = task.sample(2, size=4, seed=1)
    answers = batch.targets.clone()
    answers[0, 0], answers[1, 3] = 1 - answers[0, 0], 1 - answers[1, 3]
    assert near_misses(Reciting(answers), task, batch, steps=1).wrong.tolist() == [0, 1]


def test_no_iteration_is_no_answer() -> None:
    with pytest.raises(UsageError, match="at least 1 iteration, got 0"):
        near_misses(Reciting(BATCH.targets), TASK, BATCH, steps=0)
