"""How many problems of a training set come back in a test set.

    >>> print(duplicates(mazes.sample(50_000, seed=0), mazes.sample(10_000, seed=1)))
    train 50,000: 98 repeated · test 10,000: 11 repeated · 43 of the test set are in train

Nothing here knows a task. A problem is its input: for mazes the walls and both ends. A maze turned
or mirrored asks the same, a chess position does not, so symmetries are asked for, never assumed.
What else should not count is taken out by `key`: mazes with the same walls, wherever their ends,
are found with ``key=lambda inputs: inputs.amax(dim=1, keepdim=True)``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.tasks.protocol import Batch

_CHUNK = 2048


@dataclass(frozen=True)
class DuplicateReport:
    """What `duplicates` found; printing it gives one line."""

    train_count: int
    test_count: int
    within_train: int
    """Problems of the training set that stood earlier in it."""
    within_test: int
    """Problems of the test set that stood earlier in it."""
    between: int
    """Problems of the test set that the training set holds too."""
    symmetries: bool
    """Whether rotations and mirrors counted as the same."""

    def __str__(self) -> str:
        """One line for people."""
        ending = " (rotations and mirrors count as the same)" if self.symmetries else ""
        return (
            f"train {self.train_count:,}: {self.within_train:,} repeated · "
            f"test {self.test_count:,}: {self.within_test:,} repeated · "
            f"{self.between:,} of the test set are in train{ending}"
        )


def duplicates(
    train: Batch,
    test: Batch,
    symmetries: bool = False,
    key: Callable[[Tensor], Tensor] | None = None,
) -> DuplicateReport:
    """Count repeated inputs within and between two sets, perhaps up to the square's symmetries."""
    known, asked = (
        fingerprints(each.inputs if key is None else key(each.inputs), symmetries=symmetries)
        for each in (train, test)
    )
    held = set(known)
    return DuplicateReport(
        train_count=len(train),
        test_count=len(test),
        within_train=len(known) - len(held),
        within_test=len(asked) - len(set(asked)),
        between=sum(mark in held for mark in asked),
        symmetries=symmetries,
    )


def fingerprints(inputs: Tensor, *, symmetries: bool = False) -> list[bytes]:
    """A hash a problem: equal for equal inputs, and for turned or mirrored ones if asked for."""
    if symmetries and (inputs.dim() != 4 or inputs.shape[2] != inputs.shape[3]):
        raise TaskError(
            f"rotations and mirrors need square images (N, C, S, S), got {tuple(inputs.shape)}; "
            "compare these with symmetries=False"
        )
    marks: list[bytes] = []
    for first in range(0, len(inputs), _CHUNK):
        values = np.ascontiguousarray(inputs[first : first + _CHUNK].cpu().numpy())
        rows = _smallest_form(values) if symmetries else _rows(values)
        # The shape takes part, so that problems of different sizes never count as the same.
        shape = str(values.shape[1:]).encode()
        marks += [
            hashlib.blake2b(row.tobytes(), digest_size=16, key=shape).digest() for row in rows
        ]
    return marks


def _rows(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """(N, bytes) the values of each problem as bytes; adding zero makes -0.0 the same as 0.0."""
    plain = np.ascontiguousarray((values + 0).astype("<f4")).reshape(len(values), -1)
    return plain.view(np.uint8)


def _smallest_form(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Of the eight turned and mirrored forms of each problem, the first in dictionary order."""
    best = _rows(values)
    for number in range(1, 8):
        form = _rows(np.rot90(values[..., ::-1] if number > 3 else values, number, axes=(2, 3)))
        first = (form != best).argmax(axis=1)[:, None]
        lower = np.take_along_axis(form, first, 1) < np.take_along_axis(best, first, 1)
        best = np.where(lower, form, best)
    return best
