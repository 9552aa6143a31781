"""Problems as PyTorch's own data sets: the same problems, whoever asks and how."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import iterant
from iterant.errors import TaskError
from iterant.tasks import dataset


@pytest.mark.parametrize(
    ("name", "size"), [("prefix-sums", 12), ("mazes", 5), ("chess", (0, 1000))]
)
def test_a_loader_gives_what_the_task_samples(name: str, size: int | tuple[int, int]) -> None:
    task = iterant.task(name)
    # A loader without a generator draws from the global one, which no test may touch.
    chance = torch.Generator().manual_seed(1)
    problems = dataset(task, 10, size=size, seed=3, first=2)
    loader = DataLoader(problems, batch_size=4, generator=chance)
    seen = [(inputs, targets) for inputs, targets in loader]
    whole = task.sample(10, size=size, seed=3, first=2)
    assert [len(inputs) for inputs, _ in seen] == [4, 4, 2]
    assert torch.equal(torch.cat([inputs for inputs, _ in seen]), whole.inputs)
    assert torch.equal(torch.cat([targets for _, targets in seen]), whole.targets)


def test_order_and_grouping_change_no_problem() -> None:
    problems = dataset(iterant.task("prefix-sums"), 9, size=16, seed=1)
    order = [4, 8, 0, 2, 3]
    for (inputs, targets), index in zip(problems.__getitems__(order), order, strict=True):
        assert torch.equal(inputs, problems[index][0])
        assert torch.equal(targets, problems[index][1])
    assert torch.equal(problems[-1][0], problems[8][0])


def test_a_shuffling_loader_sees_every_problem_once() -> None:
    problems = dataset(iterant.task("prefix-sums"), 20, size=64)
    chance = torch.Generator().manual_seed(1)
    loader = DataLoader(problems, batch_size=7, shuffle=True, generator=chance)
    rows = sorted(tuple(row.flatten().tolist()) for inputs, _ in loader for row in inputs)
    assert rows == sorted(tuple(problems[index][0].flatten().tolist()) for index in range(20))


def test_what_is_not_there_is_refused() -> None:
    task = iterant.task("prefix-sums")
    with pytest.raises(TaskError, match="at least 1"):
        dataset(task, 0)
    with pytest.raises(TaskError, match="holds 3 problems"):
        dataset(task, 3).batch(2, 2)
    with pytest.raises(IndexError, match="holds 3 problems"):
        dataset(task, 3)[3]


def test_one_problem_of_a_batch_is_a_batch_of_one() -> None:
    batch = iterant.task("mazes").sample(3, size=5, seed=2)
    for place in (0, 2, -1):
        one = batch[place]
        assert len(one) == 1
        assert torch.equal(one.inputs[0], batch.inputs[place])
        assert torch.equal(one.targets[0], batch.targets[place])
        assert one.extras["path_length"].tolist() == [batch.extras["path_length"][place]]
    pair: Any = batch[:2]
    with pytest.raises(TypeError, match="'Batch' object is not iterable"):
        _, _ = pair
