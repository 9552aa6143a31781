"""Accuracy by kind: counted problem by problem, ranges and themes apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exact import exact_prefix_sums
from torch import Tensor

from iterant.analysis.errors_by_kind import by_kind
from iterant.errors import UsageError
from iterant.tasks.chess.puzzles import FLAGS
from iterant.tasks.chess.task import Chess
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import ranges

TASK = Mazes()
BATCH = TASK.sample(40, size=9, seed=1)
LENGTHS = BATCH.extras["path_length"]


class Slow:
    """Answers right from the iteration that the problem's way is long."""

    def __init__(self, lengths: Tensor, targets: Tensor) -> None:
        self.lengths, self.targets = lengths, targets

    def read(self, inputs: Tensor) -> None:
        """Nothing is recalled."""

    def start(self, inputs: Tensor) -> Tensor:
        return torch.zeros(len(inputs), 1, *inputs.shape[2:])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return features + 1

    def answer(self, features: Tensor) -> Tensor:
        known = features[:, 0] >= self.lengths.view(-1, 1, 1)
        marked = torch.where(known, self.targets, 1 - self.targets).float()
        return torch.stack([1 - marked, marked], dim=1)


def test_every_kind_is_counted_by_itself() -> None:
    lengths = torch.from_numpy(LENGTHS.astype(np.int64))
    found = by_kind(Slow(lengths, BATCH.targets), TASK, BATCH, steps=30)
    assert int(found.counts.sum()) == 40  # every maze has one length
    for kind, right in zip(found.kinds, found.solved, strict=True):
        mine = lengths[kind.among]
        assert {int(length) // 10 for length in mine} == {int(kind.at) // 10}
        assert right.tolist() == [int((mine <= step).sum()) for step in range(1, 31)]
    ((plot, trace),) = found.plots()
    assert plot.x_label == "squares of way"
    assert list(trace.x) == sorted(kind.at for kind in found.kinds)
    for name, told in found.figures().items():
        assert told["95 %"][0] <= told["at the end"] <= told["95 %"][1], name


def test_puzzles_are_sorted_by_rating_and_theme() -> None:
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


def test_ranges_hold_what_lies_in_them() -> None:
    found = ranges(np.array([0, 9, 10, 35]), 10, "length")
    assert [(kind.name, kind.at, kind.among.tolist()) for kind in found] == [
        ("length 0 to 9", 5.0, [True, True, False, False]),
        ("length 10 to 19", 15.0, [False, False, True, False]),
        ("length 30 to 39", 35.0, [False, False, False, True]),
    ]


def test_tasks_without_kinds_say_so() -> None:
    task = PrefixSums()
    with pytest.raises(UsageError, match=r"prefix-sums does not tell kinds.*kinds\(\)"):
        by_kind(exact_prefix_sums(), task, task.sample(2), steps=3)
    with pytest.raises(UsageError, match="at least 1 iteration"):
        by_kind(exact_prefix_sums(), TASK, BATCH, steps=0)
