"""A task of one's own is tried when it is named; what is wrong with it is said in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import iterant
from iterant.errors import TaskError
from iterant.tasks import Batch, Size, Task
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.user import check_task

calls = iter(range(1_000_000))


def task(change: Callable[[Batch], Any], **members: Any) -> Task:
    """Prefix sums whose batches were changed."""

    def sample(
        self: PrefixSums, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Any:
        return change(PrefixSums.sample(self, count, size=size, seed=seed, first=first))

    made: Task = type("Mine", (PrefixSums,), {"sample": sample, **members})()
    return made


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (task(lambda b: b, spec={"name": "x"}), "is dict, wanted TaskSpec"),
        (task(lambda b: (b.inputs, b.targets)), "gave tuple, wanted Batch"),
        (task(lambda b: b[:1]), r"shape \(1, 1, 32\), wanted \(2, 1\) and 1 axis of space"),
        (task(lambda b: Batch(b.inputs[:, 0], b.targets)), r"inputs of shape \(2, 32\)"),
        (task(lambda b: Batch(b.inputs.repeat(1, 2, 1), b.targets)), r"shape \(2, 2, 32\)"),
        (task(lambda b: Batch(b.inputs[..., 1:], b.targets)), r"each position, \(2, 31\)"),
        (task(lambda b: Batch(b.inputs.double(), b.targets)), "torch.float64 and .* wanted"),
        (task(lambda b: Batch(b.inputs, b.targets.float())), "targets of torch.float32, wanted"),
        (task(lambda b: Batch(b.inputs + next(calls), b.targets)), "two answers to one question"),
        (task(lambda b: Batch(b.inputs, b.targets * 0 + next(calls))), "two answers"),
        (task(lambda b: b, solved=lambda *_: True), "gave bool for 2 problems, wanted a tensor"),
        (task(lambda b: b, solved=lambda *_: torch.ones(3) > 0), r"shape \(3,\) and torch.bool"),
        (task(lambda b: b, solved=lambda *_: torch.ones(2)), "torch.float32 for 2 problems"),
    ],
)
def test_what_cannot_be_right_is_refused(wrong: Task, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        check_task(wrong, "mine:Mine")


def test_what_may_be_right_passes() -> None:
    def fail(batch: Batch) -> Any:
        raise RuntimeError("there are no problems of the training size")

    check_task(task(fail), "mine:Mine")
    check_task(task(lambda b: b, solved=fail), "mine:Mine")
    check_task(task(lambda b: Batch(b.inputs, b.targets * 0 - 1), solved=fail), "mine:Mine")


class Moody(PrefixSums):
    """Its problems are others each time."""

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Problems of another seed than the one that was asked for."""
        return super().sample(count, size=size, seed=next(calls), first=first)


def test_a_task_is_tried_when_it_is_named() -> None:
    with pytest.raises(TaskError, match="'test_own_tasks:Moody' gave two answers"):
        iterant.task("test_own_tasks:Moody")
