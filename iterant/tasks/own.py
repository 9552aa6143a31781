"""A task of your own from two things: what it is, and how one problem is made.

    >>> class AllOnes(PlainTask):
    ...     spec = TaskSpec(name="all-ones", title="all ones?", dims=1, channels=1, train_size=8)
    ...     def make(self, size, random):
    ...         bits = random.integers(0, 2, size)
    ...         return bits[None], np.full(size, bits.all())
    >>> AllOnes().sample(100, size=64, seed=1).inputs.shape
    torch.Size([100, 1, 64])

`PlainTask` adds what most tasks share: one of two classes a position, sizes that are whole
numbers, the strict metric, a drawing. Whatever does not fit is overridden; nothing needs this
class, since any object with the members of `Task` is a task.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.tasks.chance import check_seed, problem_numbers
from iterant.tasks.protocol import (
    Batch,
    Description,
    Size,
    TaskSpec,
    every_position_right,
    whole_number,
)

_PAPER, _INK = np.array([255.0, 255.0, 255.0]), np.array([64.0, 64.0, 64.0])
_MARKED, _WRONG = np.array([86.0, 180.0, 233.0]), np.array([213.0, 94.0, 0.0])
"""Sky blue and vermilion: apart for every kind of colour vision."""
_SIGNS = np.array([".", "#", "o", "x"])
"""In text: nothing, something of the input, the answer, what is wrong."""


class PlainTask(ABC):
    """Give it a ``spec`` and a ``make``, and it is a task."""

    spec: TaskSpec

    @abstractmethod
    def make(self, size: int, random: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        """One problem: its input (C, *S), and for each of its positions class 0 or 1, (*S)."""

    def check_size(self, size: Size | None) -> int:
        """The size itself if it is a number above 0, the training size for None."""
        given = self.spec.train_size if size is None else size
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
            raise TaskError(
                f"a size of {self.spec.name} is {self.spec.size_means}, got {given!r}; "
                f"try {self.spec.train_size}"
            )
        return int(given)

    def parse_size(self, text: str) -> int:
        """A size as written: ``"64"``."""
        return self.check_size(whole_number(text, self.spec))

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Problems ``first … first + count - 1``: each has random numbers of its own."""
        side, start = self.check_size(size), check_seed(seed)
        made = [
            self.make(side, np.random.default_rng([start, side, int(number)]))
            for number in problem_numbers(count, first)
        ]
        inputs = np.stack([np.asarray(question, dtype=np.float32) for question, _ in made])
        targets = np.stack([np.asarray(answer).astype(np.int64) for _, answer in made])
        self._check_shapes(inputs, targets)
        return Batch(torch.from_numpy(inputs), torch.from_numpy(targets))

    def _check_shapes(self, inputs: NDArray[np.float32], targets: NDArray[np.int64]) -> None:
        spec = self.spec
        if inputs.ndim != spec.dims + 2 or inputs.shape[1] != spec.channels:
            raise TaskError(
                f"make() of {spec.name} gave an input of shape {inputs.shape[1:]}, wanted "
                f"{spec.channels} channels and {spec.dims} axes of space as its spec says"
            )
        if targets.shape[1:] != inputs.shape[2:]:
            raise TaskError(
                f"make() of {spec.name} gave an answer of shape {targets.shape[1:]}, wanted one "
                f"class for each position of the input, {inputs.shape[2:]}"
            )
        if not np.isin(targets, (0, 1)).all():
            raise TaskError(
                f"make() of {spec.name} gave classes other than 0 and 1; "
                "ask a question of yes or no at every position"
            )

    def encode(self, problem: str) -> Batch:
        """Refused: only the task itself could say how its problems are written."""
        raise TaskError(
            f"{self.spec.name} does not say how its problems are written; sample some, "
            "or give the task an encode() of its own"
        )

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: every position right."""
        return every_position_right(prediction, batch)

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """The input in greys, the answer in blue, wrong positions in vermilion.

        Over a grid the answer is drawn on the input, below a string on a line of its own.
        """
        # Strings are grids of one row.
        question = np.atleast_3d(batch.inputs[index].detach().cpu().float().numpy())
        question = question.reshape(len(question), -1, batch.inputs.shape[-1])
        truth = batch.targets[index].cpu().numpy().reshape(question.shape[1:])
        given = truth if prediction is None else prediction[index].cpu().numpy()
        if given.size != truth.size:
            raise TaskError(
                f"a prediction here has shape {tuple(batch.targets.shape[1:])}, got {given.shape}"
            )
        answer = given.reshape(truth.shape)
        judged = prediction is not None and bool((truth >= 0).any())
        wrong = (answer != truth) & (truth >= 0)
        shade = question - question.min(axis=(1, 2), keepdims=True)
        shade = (shade / np.maximum(shade.max(axis=(1, 2), keepdims=True), 1e-9)).mean(axis=0)
        labels: tuple[str, ...] = ()
        if self.spec.dims == 1:
            labels, blank = ("input", "answer"), np.zeros_like(shade)
            shade = np.concatenate([shade, blank])
            answer, wrong = (np.concatenate([blank, part]) for part in (answer, wrong))
        cells = _PAPER + shade[..., None] * (_INK - _PAPER)
        cells[answer > 0] = (cells[answer > 0] + 2 * _MARKED) / 3
        cells[wrong > 0] = _WRONG
        codes = np.where(wrong > 0, 3, np.where(answer > 0, 2, (shade > 0).astype(int)))
        lines = ["".join(line) for line in _SIGNS[codes]]
        if labels:
            lines = [f"{label:>6} {line}" for label, line in zip(labels, lines, strict=True)]
        size = "×".join(map(str, batch.targets.shape[1:]))
        return Description(
            title=self.spec.title,
            text="\n".join(lines),
            cells=cells.round().astype(np.uint8),
            row_labels=labels,
            caption=f"{size}, {int(wrong.sum())} wrong" if judged else size,
        )
