"""Accuracy by kind of problem, and near misses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exact import exact_prefix_sums
from torch import Tensor

from iterant.analysis import errors_by_kind as module
from iterant.analysis.errors_by_kind import by_kind, near_misses
from iterant.errors import UsageError
from iterant.tasks.chess.puzzles import FLAGS
from iterant.tasks.chess.task import Chess
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch, Kind

TASK = Mazes()
BATCH = TASK.sample(40, size=9, seed=1)
LENGTHS = torch.from_numpy(BATCH.extras["path_length"].astype(np.int64))


class Slow:
    """Answers correctly once there were as many iterations as the path is long."""

    def __init__(self, lengths: Tensor, targets: Tensor) -> None:
        self.lengths, self.targets = lengths, targets

    def read(self, inputs: Tensor) -> None:
        """No recall."""

    def start(self, inputs: Tensor) -> Tensor:
        return torch.zeros(len(inputs), 1, *inputs.shape[2:])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return features + 1

    def answer(self, features: Tensor) -> Tensor:
        known = features[:, 0] >= self.lengths.view(-1, 1, 1)
        marked = torch.where(known, self.targets, 1 - self.targets).float()
        return torch.stack([1 - marked, marked], dim=1)


class WithEmptyKind(Mazes):
    def kinds(self, batch: Batch) -> list[Kind]:
        return [*super().kinds(batch), Kind("none", torch.zeros(len(batch), dtype=torch.bool))]


def test_accuracy_by_kind() -> None:
    lengths = LENGTHS
    result = by_kind(Slow(lengths, BATCH.targets), WithEmptyKind(), BATCH, steps=30)
    assert "none" not in result.figures()
    assert sum(int(kind.among.sum()) for kind in result.kinds) == 40  # every maze has one length
    for kind, right in zip(result.kinds, result.solved.values(), strict=True):
        mine = lengths[kind.among]
        assert {int(length) // 10 for length in mine} == {int(kind.at) // 10}
        assert right.tolist() == [int((mine <= step).sum()) for step in range(1, 31)]
    ((plot, trace),) = result.plots()
    assert plot.x_label == "squares of way"
    assert list(trace.x) == sorted(kind.at for kind in result.kinds)
    for name, kind in result.figures().items():
        assert kind["95 %"][0] <= kind["at the end"] <= kind["95 %"][1], name


def test_kinds_of_puzzles() -> None:
    task = Chess()
    batch = task.sample(300, seed=1)
    kinds = {kind.name: kind for kind in task.kinds(batch)}
    ratings, flags = batch.extras["rating"], batch.extras["flags"]
    bands = [kind for kind in kinds.values() if kind.scale == "rating"]
    assert torch.stack([kind.among for kind in bands]).sum(dim=0).tolist() == [1] * 300
    for kind in bands:
        inside = ratings[kind.among.numpy()]
        assert (
            kind.name == f"rating {inside.min() // 100 * 100} to {inside.max() // 100 * 100 + 99}"
        )
    for bit, theme in enumerate(FLAGS):
        assert kinds[theme].among.tolist() == [bool(flag & (1 << bit)) for flag in flags]
    assert task.kinds(task.encode("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")) == []


def test_invalid_arguments() -> None:
    task = PrefixSums()
    with pytest.raises(UsageError, match=r"kinds\(\)"):
        by_kind(exact_prefix_sums(), task, task.sample(2), steps=3)
    with pytest.raises(UsageError):
        by_kind(Slow(LENGTHS, BATCH.targets), TASK, BATCH, steps=0)


# Near misses

SMALL = TASK.sample(10, size=5, seed=1)


class Stored:
    """Answers with stored tensors."""

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
    answers = SMALL.targets.clone()
    for row, count in enumerate(counts):
        answers[row, 0, :count] = 1
    return answers


def test_distribution_of_wrong_pixels() -> None:
    counts = [0, 1, 3, 1, 0, 0, 0, 0, 0, 2]
    result = near_misses(Stored(with_loose_pixels(counts)), TASK, SMALL, steps=2)
    assert result.wrong.tolist() == counts
    figures = result.figures()
    assert figures["problems by wrong positions"] == {"0": 6, "1": 2, "2": 1, "3": 1}
    assert (figures["failures"], figures["failures that are connected"]) == (4, 4)
    assert figures["failures that are valid"] == 0
    ((_, trace),) = result.plots()
    assert list(trace.x) == [0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert list(trace.y) == pytest.approx([0, 0, 60, 60, 80, 80, 90, 90, 100])


def test_failures_have_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [0, 1, 3, 1, 0, 0, 0, 0, 0, 2]
    result = near_misses(Stored(with_loose_pixels(counts)), TASK, SMALL, steps=1)
    assert [one.title for one in result.failures] == [f"mazes, problem {n}" for n in (1, 2, 3, 9)]
    assert "3 pixels wrong" in result.failures[1].caption
    monkeypatch.setattr(module, "PICTURED", 2)
    assert len(near_misses(Stored(with_loose_pixels(counts)), TASK, SMALL, steps=1).failures) == 2


def test_no_failures() -> None:
    result = near_misses(Stored(SMALL.targets), TASK, SMALL, steps=1)
    assert result.failures == ()
    ((_, trace),) = result.plots()
    assert (list(trace.x), list(trace.y)) == ([0, 0, 0, 1], [0, 0, 100, 100])
    assert result.headline()["wrong positions a failure (median)"] == "–"


def test_broken_features_are_counted() -> None:
    broken = torch.arange(10) % 5 == 0
    result = near_misses(Stored(SMALL.targets, broken), TASK, SMALL, steps=1)
    assert torch.equal(result.broken, broken)


def test_task_without_near_misses() -> None:
    task = PrefixSums()
    batch = task.sample(3, size=8, seed=1)
    answers = batch.targets.clone()
    answers[1, :3] = 1 - answers[1, :3]
    result = near_misses(Stored(answers), task, batch, steps=1)
    assert result.wrong.tolist() == [0, 3, 0]
    assert result.figures() == {"problems": 3, "failures": 1, "broken": 0,
                              "problems by wrong positions": {"0": 2, "3": 1}}  # fmt: skip
    assert list(result.headline()) == ["problems", "failures", "wrong positions a failure (median)",
                                     "NaN"]  # fmt: skip
    (failure,) = result.failures
    assert "3 wrong" in failure.caption


def test_the_task_decides_what_is_solved() -> None:
    class Lenient(PrefixSums):
        def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
            return (prediction == batch.targets).flatten(1)[:, -1]

    task = Lenient()
    batch = task.sample(2, size=4, seed=1)
    answers = batch.targets.clone()
    answers[0, 0], answers[1, 3] = 1 - answers[0, 0], 1 - answers[1, 3]
    assert near_misses(Stored(answers), task, batch, steps=1).wrong.tolist() == [0, 1]
