"""Accuracy by kind of problem, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from iterant.analysis import Result, Trial, studies
from iterant.analysis.studies import by_kind, near_misses
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch, Kind

TASK = Mazes()
BATCH = TASK.sample(40, size=9, seed=1)


class Stored:
    """Answers with stored tensors from iteration ``since`` on, before that with the opposite."""

    def __init__(self, answers: Tensor, since: Tensor | None = None) -> None:
        self.answers, self.since = answers, since

    def read(self, inputs: Tensor) -> None:
        """No recall."""

    def start(self, inputs: Tensor) -> Tensor:
        return torch.zeros(len(inputs), 1, *inputs.shape[2:])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return features + 1

    def answer(self, features: Tensor) -> Tensor:
        shown = self.answers.float()
        if self.since is not None:
            shown = torch.where(features[:, 0] >= self.since.view(-1, 1, 1), shown, 1 - shown)
        return torch.stack([1 - shown, shown], dim=1)


class WithEmptyKind(Mazes):
    def kinds(self, batch: Batch) -> list[Kind]:
        return [*super().kinds(batch), Kind("none", torch.zeros(len(batch), dtype=torch.bool))]


def test_accuracy_by_kind() -> None:
    """Every maze is solved after as many iterations as its path is long."""
    lengths = torch.from_numpy(BATCH.extras["path_length"].astype(np.int64))
    task = WithEmptyKind()
    result = by_kind(Trial("kinds", Stored(BATCH.targets, lengths), task, BATCH, steps=30))
    assert "none" not in result.figures
    assert sum(kind["problems"] for kind in result.figures.values()) == 40
    for kind in task.kinds(BATCH)[:-1]:
        figures, mine = result.figures[kind.name], lengths[kind.among]
        assert {int(length) // 10 for length in mine} == {int(kind.at) // 10}
        right = [int((mine <= step).sum()) for step in range(1, 31)]
        assert figures["solved by iteration"] == right
        assert figures["at the end"] == right[-1] / len(mine)
        assert figures["95 %"][0] <= figures["at the end"] <= figures["95 %"][1]
    ((plot, trace),) = result.plots
    assert plot.x_label == "squares of way"
    assert list(trace.x) == sorted(kind.at for kind in task.kinds(BATCH)[:-1])
    assert trace.y == pytest.approx([100 * kind["at the end"] for kind in result.figures.values()])


# Near misses

SMALL = TASK.sample(10, size=5, seed=1)
COUNTS = [0, 1, 3, 1, 0, 0, 0, 0, 0, 2]


def misses(net: Any, task: Any = TASK, batch: Batch = SMALL) -> Result:
    return near_misses(Trial("near-misses", net, task, batch, steps=1))


def with_loose_pixels() -> Stored:
    answers = SMALL.targets.clone()
    for row, count in enumerate(COUNTS):
        answers[row, 0, :count] = 1
    return Stored(answers)


def test_distribution_of_wrong_pixels() -> None:
    result = misses(with_loose_pixels())
    assert result.figures == {
        "problems": 10,
        "failures": 4,
        "failures that are connected": 4,
        "failures that are valid": 0,
        "broken": 0,
        "problems by wrong positions": {"0": 6, "1": 2, "2": 1, "3": 1},
    }
    ((_, trace),) = result.plots
    assert list(trace.x) == [0] * 6 + [1, 1, 2, 3]
    assert list(trace.y) == pytest.approx(range(10, 101, 10))


def test_the_other_way_round_a_loop_is_a_valid_path() -> None:
    loop = TASK.encode("S..\n.#.\n..E")
    figures = misses(Stored(loop.targets.transpose(1, 2)), batch=loop).figures
    assert figures["failures that are connected"] == figures["failures that are valid"] == 1


def test_failures_have_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = misses(with_loose_pixels()).failures
    assert [one.title for one in failures] == [f"mazes, problem {n}" for n in (1, 2, 3, 9)]
    assert "2 squares wrong" in failures[1].caption
    monkeypatch.setattr(studies, "MAX_PICTURES", 2)
    assert len(misses(with_loose_pixels()).failures) == 2


def test_no_failures() -> None:
    class Broken(Stored):
        """Features of two problems are 0 / 0."""

        def start(self, inputs: Tensor) -> Tensor:
            return super().start(inputs) / (torch.arange(10) % 5).view(-1, 1, 1, 1)

    result = misses(Broken(SMALL.targets))
    assert (list(result.failures), result.figures["broken"]) == ([], 2)


def test_task_without_near_misses() -> None:
    class Lenient(PrefixSums):
        """Solved if the last bit is right."""

        def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
            return (prediction == batch.targets).flatten(1)[:, -1]

    for task, failures in ((PrefixSums(), 2), (Lenient(), 1)):
        batch = task.sample(3, size=8, seed=1)
        answers = batch.targets.clone()
        answers[0, 0] = 1 - answers[0, 0]
        answers[1, 5:] = 1 - answers[1, 5:]
        result = misses(Stored(answers), task, batch)
        assert result.figures["failures"] == failures, "the task decides what is solved"
        assert result.figures["problems by wrong positions"]["3"] == 1
        assert "failures that are valid" not in result.figures
        assert "3 wrong" in result.failures[-1].caption
