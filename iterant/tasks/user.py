"""User-defined tasks: `PlainTask`, a task from a spec and one function, and checks of any task.

    >>> class AllOnes(PlainTask):
    ...     spec = TaskSpec(name="all-ones", title="all ones?", dims=1, channels=1, train_size=8)
    ...     def make(self, size, random):
    ...         bits = random.integers(0, 2, size)
    ...         return bits[None], np.full(size, bits.all())
    >>> AllOnes().sample(100, size=64, seed=1).inputs.shape
    torch.Size([100, 1, 64])

`PlainTask` adds what most tasks share: one class per position, sizes that are integers, the strict
metric, a drawing; override what does not fit. Any object with the members of `Task` is a task.

`check_task` runs when a user-defined task is loaded: training would fail far from the mistake, and
would not notice problems that differ between two calls, which break resumed runs.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.tasks.protocol import (
    Batch,
    Description,
    SizedTask,
    Task,
    TaskSpec,
    check_described,
)

_PAPER, _INK, _WRONG = 255.0, 64.0, (213.0, 94.0, 0.0)
_COLOURS = np.array([[86.0, 180.0, 233.0], [230.0, 159.0, 0.0], [0.0, 158.0, 115.0],
                     [204.0, 121.0, 167.0], [0.0, 114.0, 178.0], [240.0, 228.0, 66.0]])  # fmt: skip
"""Colours of classes 1, 2, …, repeated from class 7 on: Okabe and Ito's colour-blind palette."""
_SIGNS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz"))
"""Characters of classes, if there are more than two, and of channels; repeated from 36 on."""
_COUNT = 2
"""Problems that `check_task` samples."""


class PlainTask(SizedTask):
    """Base class of a task that is defined by a ``spec`` and ``make``."""

    @abstractmethod
    def make(self, size: int, random: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        """One problem: its input (C, *S), and a class from 0 on for each position, (*S)."""

    def _generate(self, size: int, seed: int, numbers: NDArray[np.int64]) -> Batch:
        """The problems of these numbers, each with its own random generator."""
        rngs = [np.random.default_rng([seed, size, number]) for number in numbers.tolist()]
        pairs = [self.make(size, rng) for rng in rngs]
        name = f"make() of {self.spec.name}"
        try:
            inputs = np.stack([np.asarray(each, dtype=np.float32) for each, _ in pairs])
            answers = np.stack([np.asarray(each, dtype=np.float64) for _, each in pairs])
        except (TypeError, ValueError) as error:
            raise TaskError(
                f"{name} must give a pair of arrays, an input and a class for each of its "
                f"positions, of the same shapes for one size ({error})"
            ) from error
        if not (np.isfinite(inputs).all() and (answers == answers.round()).all()):
            raise TaskError(
                f"{name} gave an input that is NaN or infinite, or a class that is not a whole "
                "number"
            )
        batch = Batch(torch.from_numpy(inputs), torch.from_numpy(answers.astype(np.int64)))
        _check_batch(self.spec, batch, len(numbers), name)
        return batch

    def encode(self, problem: str) -> Batch:
        """Raise TaskError; a subclass may define how its problems are written."""
        raise TaskError(
            f"{self.spec.name} does not say how its problems are written; sample some, "
            "or give the task an encode() of its own"
        )

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """The input in greys, the answer in colours, wrong positions in vermilion.

        On a grid the answer is drawn over the input, for a string on a second line. In text, ``#``
        is a nonzero input, ``o`` or a number the class of the answer, ``x`` a wrong position.
        """
        check_described(batch, index, prediction)
        string, binary, width = self.spec.dims == 1, self.spec.classes == 2, batch.inputs.shape[-1]
        inputs = batch.inputs[index].detach().cpu().float().numpy()
        inputs = inputs.reshape(len(inputs), -1, width)  # (C, rows, columns); a string is one row
        answers = batch.targets if prediction is None else prediction
        target, answer = (
            each[index].cpu().numpy().reshape(-1, width) for each in (batch.targets, answers)
        )
        wrong = (answer != target) & (target >= 0)
        # Every channel from its least to its largest value; later ones are darker.
        scaled = inputs - inputs.min(axis=(1, 2), keepdims=True)
        scaled /= np.maximum(scaled.max(axis=(1, 2), keepdims=True), 1e-9)
        shade = np.average(scaled, axis=0, weights=np.arange(1, len(scaled) + 1))
        signs = np.where(shade > 0, "#", ".")
        labels = ("input", "answer") if string else ()
        if string:  # the answer is a second row, below the input
            if len(scaled) > 1 and ((scaled > 0).sum(axis=0) == 1).all():  # one-hot
                signs = _SIGNS[scaled.argmax(axis=0) % len(_SIGNS)]
            shade, signs = np.pad(shade, ((0, 1), (0, 0))), np.vstack([signs, ["."] * width])
            answer, wrong = (np.pad(part, ((1, 0), (0, 0))) for part in (answer, wrong))
        marked = answer > 0
        cells = np.repeat(_PAPER + shade[..., None] * (_INK - _PAPER), 3, axis=2)
        # A third of the input shows through the colour of the answer.
        cells[marked] = (cells[marked] + 2 * _COLOURS[(answer[marked] - 1) % len(_COLOURS)]) / 3
        cells[wrong] = _WRONG
        signs = np.where(marked, "o" if binary else _SIGNS[answer % len(_SIGNS)], signs)
        lines = ["".join(line) for line in np.where(wrong, "x", signs)]
        if labels:
            lines = [f"{label:>6} {line}" for label, line in zip(labels, lines, strict=True)]
        size = "×".join(map(str, batch.targets.shape[1:]))
        checked = prediction is not None and bool((target >= 0).any())
        return Description(
            title=self.spec.title,
            text="\n".join(lines),
            cells=cells.round().astype(np.uint8),
            row_labels=labels,
            caption=f"{size}, {int(wrong.sum())} wrong" if checked else size,
        )


def check_task(task: Task, word: str) -> None:
    """Raise TaskError if the spec, problems or metric of a task are malformed.

    Exceptions raised by the task are ignored here and shown with their traceback when it is used:
    it may have problems of one size only.
    """
    if not isinstance(spec := getattr(task, "spec", None), TaskSpec):
        raise TaskError(f"spec of {word!r} is {type(spec).__name__}, wanted a TaskSpec")
    try:
        batch, again = (task.sample(_COUNT) for _ in range(2))
    except Exception:
        return
    name = f"sample() of {word!r}"
    _check_batch(task.spec, batch, _COUNT, name)
    if not (torch.equal(batch.inputs, again.inputs) and torch.equal(batch.targets, again.targets)):
        raise TaskError(
            f"{name} is not deterministic; the same count, size, seed and first must give "
            "the same problems, so that runs can be repeated"
        )
    if not batch.labelled:
        return
    try:
        right = task.solved(batch.targets, batch)
    except Exception:
        return
    if not isinstance(right, Tensor) or right.shape != (_COUNT,) or right.dtype != torch.bool:
        raise TaskError(
            f"solved() of {word!r} gave {right!r} for {_COUNT} problems, wanted a tensor of "
            f"{_COUNT} bools"
        )


def _check_batch(spec: TaskSpec, batch: object, count: int, name: str) -> None:
    """Inputs are (count, C, *S) as the spec says, targets (count, *S) with its classes."""
    if not isinstance(batch, Batch):
        raise TaskError(f"{name} gave {type(batch).__name__}, wanted Batch(inputs, targets)")
    inputs, targets, space = batch.inputs, batch.targets, batch.inputs.shape[2:]
    least, most = int(targets.min()), int(targets.max())
    if (
        inputs.shape[:2] != (count, spec.channels)
        or len(space) != spec.dims
        or targets.shape != (count, *space)
        or (inputs.dtype, targets.dtype) != (torch.float32, torch.int64)
        or not -1 <= least <= most < spec.classes
    ):
        raise TaskError(
            f"{name} gave inputs {tuple(inputs.shape)} of {inputs.dtype} and targets "
            f"{tuple(targets.shape)} of {targets.dtype}, classes {least} to {most}; its spec says "
            f"({count}, {spec.channels}, *S) of torch.float32 and ({count}, *S) of torch.int64, "
            f"{spec.dims} axes of space, classes 0 to {spec.classes - 1}"
        )
