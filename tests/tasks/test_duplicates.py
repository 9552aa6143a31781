"""Duplicates are counted as a plain comparison of all pairs counts them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from iterant.errors import TaskError
from iterant.tasks.datasets import duplicates, fingerprints
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch


def forms(image: Tensor) -> list[Tensor]:
    turned = [torch.rot90(image, turns, (1, 2)) for turns in range(4)]
    return turned + [form.flip(2) for form in turned]


def same(one: Tensor, other: Tensor, symmetries: bool) -> bool:
    return any(torch.equal(form, other) for form in (forms(one) if symmetries else [one]))


def batch(inputs: Tensor) -> Batch:
    return Batch(inputs, torch.zeros(len(inputs), *inputs.shape[2:], dtype=torch.int64))


@given(st.integers(0, 10**6), st.booleans(), st.integers(1, 3), st.integers(1, 2))
@settings(deadline=None, max_examples=40)
def test_counts_equal_comparing_all_pairs(
    seed: int, symmetries: bool, side: int, channels: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    sets = [
        torch.randint(0, 2, (count, channels, side, side), generator=generator).float()
        for count in (25, 15)
    ]
    train, test = sets
    report = duplicates(batch(train), batch(test), symmetries=symmetries)

    def earlier(images: Tensor) -> int:
        return sum(
            any(same(images[i], images[j], symmetries) for j in range(i))
            for i in range(len(images))
        )

    assert report.within_train == earlier(train)
    assert report.within_test == earlier(test)
    assert report.between == sum(
        any(same(one, other, symmetries) for other in train) for one in test
    )
    assert (report.train_count, report.test_count) == (25, 15)


def test_turned_mazes_are_found_only_when_asked_for() -> None:
    train = Mazes().sample(20, size=13, seed=1)
    turned = batch(torch.rot90(train.inputs[:8], 1, (2, 3)).flip(3))
    assert duplicates(train, turned, symmetries=True).between == 8
    assert duplicates(train, turned, symmetries=False).between == 0
    moved = train.inputs[:8].clone()
    moved[:, :2] = moved[:, :2].flip(1)  # start and end change places: another problem
    assert duplicates(train, batch(moved), symmetries=True).between == 0

    def walls(inputs: Tensor) -> Tensor:
        return inputs.amax(dim=1, keepdim=True)

    assert duplicates(train, batch(moved), symmetries=True, key=walls).between == 8


def test_the_report_is_one_readable_line() -> None:
    train, test = Mazes().sample(3000, size=3, seed=0), Mazes().sample(10, size=3, seed=1)
    report = duplicates(train, test, symmetries=True)
    # Two by two cells: a few mazes up to symmetry, so nearly everything repeats.
    assert report.between == 10
    assert report.within_train > 2980
    assert str(report).startswith("train 3,000: 2,99")
    assert "rotations and mirrors" in str(report)
    assert "\n" not in str(report)


def test_strings_of_bits() -> None:
    train, test = (
        PrefixSums().sample(100, size=32, seed=0),
        PrefixSums().sample(50, size=32, seed=0),
    )
    report = duplicates(train, test, symmetries=False)
    assert (report.within_train, report.within_test, report.between) == (0, 0, 50)
    assert "rotations" not in str(report)
    with pytest.raises(TaskError, match="square images"):
        duplicates(train, test, symmetries=True)


def test_sizes_and_signs_of_zero() -> None:
    zeros = torch.zeros(1, 1, 4, 4)
    assert fingerprints(zeros) == fingerprints(-zeros)
    assert fingerprints(zeros) != fingerprints(torch.zeros(1, 1, 2, 8))
    assert fingerprints(torch.zeros(0, 1, 4, 4), symmetries=True) == []
