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

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.formatting import counted
from iterant.tasks.protocol import (
    Batch,
    Description,
    Size,
    Task,
    TaskSpec,
    check_prediction,
    every_position_right,
    whole_number,
)
from iterant.tasks.rng import check_seed, problem_numbers

_PAPER, _INK = np.array([255.0, 255.0, 255.0]), np.array([64.0, 64.0, 64.0])
_COLOURS = np.array([[86.0, 180.0, 233.0], [230.0, 159.0, 0.0], [0.0, 158.0, 115.0],
                     [204.0, 121.0, 167.0], [0.0, 114.0, 178.0], [240.0, 228.0, 66.0]])  # fmt: skip
"""Of classes 1, 2, …, repeated from class 7 on; Okabe and Ito's, for colour-blind readers."""
_WRONG = np.array([213.0, 94.0, 0.0])
_SIGNS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz+"))
"""Of classes, if there are more than two, and of channels."""
_COUNT = 2
"""Problems that `check_task` samples."""


class PlainTask(ABC):
    """A task from a ``spec`` and a ``make``."""

    spec: TaskSpec

    @abstractmethod
    def make(self, size: int, random: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        """One problem: its input (C, *S), and a class from 0 on for each position, (*S)."""

    def check_size(self, size: Size | None) -> int:
        """The size if it is a positive integer, the training size for None."""
        chosen = self.spec.train_size if size is None else size
        if isinstance(chosen, bool) or not isinstance(chosen, int | np.integer) or chosen < 1:
            raise TaskError(
                f"a size of {self.spec.name} is {self.spec.size_means}, got {chosen!r}; "
                f"try {self.spec.train_size}"
            )
        return int(chosen)

    def parse_size(self, text: str) -> int:
        """A size as text: ``"64"``."""
        return self.check_size(whole_number(text, self.spec))

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Problems ``first … first + count - 1``, each with its own random generator."""
        side, start = self.check_size(size), check_seed(seed)
        numbers = problem_numbers(count, first).tolist()
        pairs = [self._make(side, start, number) for number in numbers]
        name = f"make() of {self.spec.name}"
        for what, column in zip(("an input", "an answer"), zip(*pairs, strict=True), strict=True):
            shapes = sorted({each.shape for each in column})
            if len(shapes) > 1:
                raise TaskError(
                    f"{name} gave {what} of shape {shapes[0]} and of {shapes[1]} for one size; "
                    "wanted the same shape for all"
                )
        inputs, answers = map(np.stack, zip(*pairs, strict=True))
        if not np.isfinite(inputs).all():
            raise TaskError(f"{name} gave an input that is NaN or infinite")
        if (strange := ~np.isfinite(answers) | (answers != answers.round())).any():
            raise TaskError(
                f"{name} gave {answers[strange][0]} as a class; wanted whole numbers from 0 on"
            )
        batch = Batch(torch.from_numpy(inputs), torch.from_numpy(answers.astype(np.int64)))
        _check_shapes(self.spec, batch, count, name)
        if answers.min() < 0 or answers.max() >= self.spec.classes:
            raise TaskError(
                f"{name} gave class {answers.min():g} to {answers.max():g}, wanted 0 to "
                f"{self.spec.classes - 1}; say how many there are: TaskSpec(classes=…)"
            )
        if count > 1:
            again = self._make(side, start, numbers[0])
            if not all(np.array_equal(*two) for two in zip(pairs[0], again, strict=True)):
                raise TaskError(
                    f"{name} made two problems of one seed and number; draw "
                    "from the random numbers that it is handed alone, so that runs can be repeated"
                )
        return batch

    def _make(self, side: int, seed: int, number: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Input and answer of one problem as arrays."""
        pair = self.make(side, np.random.default_rng([seed, side, number]))
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TaskError(
                f"make() of {self.spec.name} gave {type(pair).__name__}, wanted a pair: an input "
                "and a class for each of its positions"
            )
        try:
            return np.asarray(pair[0], dtype=np.float32), np.asarray(pair[1], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TaskError(
                f"make() of {self.spec.name} gave what is no array of numbers ({error})"
            ) from error

    def encode(self, problem: str) -> Batch:
        """Refused: a subclass says how its problems are written."""
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
        """The input in greys, the answer in colours, wrong positions in vermilion.

        On a grid the answer is drawn over the input, for a string on a second line. In text, ``#``
        is a nonzero input, ``o`` or a number the class of the answer, ``x`` a wrong position.
        """
        string, binary = self.spec.dims == 1, self.spec.classes == 2
        width = batch.inputs.shape[-1]
        inputs = batch.inputs[index].detach().cpu().float().numpy()
        inputs = inputs.reshape(len(inputs), -1, width)  # (C, rows, columns); a string is one row
        target = batch.targets[index].cpu().numpy().reshape(-1, width)
        answer = target
        if prediction is not None:
            check_prediction(prediction, batch)
            answer = prediction[index].cpu().numpy().reshape(target.shape)
        wrong = (answer != target) & (target >= 0)
        # On a grid a number is a class of the answer if there are several, else a channel.
        shade, signs = _shades(inputs, numbers=string or binary)
        labels: tuple[str, ...] = ()
        if string:
            labels, shade = ("input", "answer"), np.concatenate([shade, 0 * shade])
            signs = np.concatenate([signs, np.full_like(signs, ".")])
            answer, wrong = (np.concatenate([0 * part, part]) for part in (answer, wrong))
        marked, wrong = answer > 0, wrong.astype(bool)
        cells = _PAPER + shade[..., None] * (_INK - _PAPER)
        cells[marked] = (cells[marked] + 2 * _COLOURS[(answer[marked] - 1) % len(_COLOURS)]) / 3
        cells[wrong] = _WRONG
        signs = np.where(marked, "o" if binary else _sign(answer), signs)
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


def _shades(
    inputs: NDArray[np.float32], *, numbers: bool
) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """Greys from 0 to 1 and characters (rows, columns) for inputs (C, rows, columns).

    Later channels are darker. With ``numbers``, one-hot inputs show the number of their channel.
    """
    scaled = inputs - inputs.min(axis=(1, 2), keepdims=True)
    scaled = scaled / np.maximum(scaled.max(axis=(1, 2), keepdims=True), 1e-9)
    weights = np.arange(1, len(scaled) + 1, dtype=scaled.dtype)
    shade = np.average(scaled, axis=0, weights=weights).astype(scaled.dtype)
    if numbers and len(scaled) > 1 and bool(((scaled > 0).sum(axis=0) == 1).all()):
        return shade, _sign(scaled.argmax(axis=0))
    return shade, np.where(shade > 0, "#", ".")


def _sign(numbers: NDArray[np.int64]) -> NDArray[np.str_]:
    signs: NDArray[np.str_] = _SIGNS[np.clip(numbers, 0, len(_SIGNS) - 1)]
    return signs


def check_task(task: Task, word: str) -> None:
    """Refuse a task whose spec, problems or metric are malformed.

    Exceptions raised by the task are ignored here and shown with their traceback when it is used:
    it may have problems of one size only.
    """
    if not isinstance(task.spec, TaskSpec):
        raise TaskError(
            f"spec of {word!r} is {type(task.spec).__name__}, wanted TaskSpec(name=…, title=…, "
            "dims=…, channels=…, train_size=…)"
        )
    try:
        batch, again = (task.sample(_COUNT) for _ in range(2))
    except Exception:
        return
    if not isinstance(batch, Batch):
        raise TaskError(
            f"sample() of {word!r} gave {type(batch).__name__}, wanted Batch(inputs, targets)"
        )
    _check_shapes(task.spec, batch, _COUNT, f"sample({_COUNT}) of {word!r}")
    inputs, targets = batch.inputs, batch.targets
    if inputs.dtype != torch.float32 or targets.dtype != torch.int64:
        raise TaskError(
            f"sample() of {word!r} gave inputs of {inputs.dtype} and targets of {targets.dtype}, "
            "wanted torch.float32 and torch.int64"
        )
    if not (torch.equal(inputs, again.inputs) and torch.equal(targets, again.targets)):
        raise TaskError(
            f"sample() of {word!r} gave two answers to one question; the same count, size, seed "
            "and first must give the same problems, so that runs can be repeated"
        )
    if not batch.labelled:
        return
    try:
        right = task.solved(targets, batch)
    except Exception:
        return
    if not isinstance(right, Tensor) or right.shape != (_COUNT,) or right.dtype != torch.bool:
        what = type(right).__name__
        if isinstance(right, Tensor):
            what = f"a tensor of shape {tuple(right.shape)} and {right.dtype}"
        raise TaskError(
            f"solved() of {word!r} gave {what} for {_COUNT} problems, wanted a tensor of "
            f"{_COUNT} bools"
        )


def _check_shapes(spec: TaskSpec, batch: Batch, count: int, name: str) -> None:
    """Inputs are (count, C, *S) with the channels and axes of the spec, targets (count, *S)."""
    inputs, targets = tuple(batch.inputs.shape), tuple(batch.targets.shape)
    if len(inputs) != spec.dims + 2 or inputs[:2] != (count, spec.channels):
        raise TaskError(
            f"{name} gave inputs of shape {inputs}, wanted ({count}, {spec.channels}) and "
            f"{counted(spec.dims, 'axis', 'axes')} of space as its spec says"
        )
    if targets != (count, *inputs[2:]):
        raise TaskError(
            f"{name} gave targets of shape {targets}, wanted a class for each position, "
            f"{(count, *inputs[2:])}"
        )
