"""A task of your own from two things: what it is, and how one problem is made.

    >>> class AllOnes(PlainTask):
    ...     spec = TaskSpec(name="all-ones", title="all ones?", dims=1, channels=1, train_size=8)
    ...     def make(self, size, random):
    ...         bits = random.integers(0, 2, size)
    ...         return bits[None], np.full(size, bits.all())
    >>> AllOnes().sample(100, size=64, seed=1).inputs.shape
    torch.Size([100, 1, 64])

`PlainTask` adds what most tasks share: a class for every position, sizes that are whole numbers,
the strict metric, a drawing. Whatever does not fit is overridden; nothing needs this
class, since any object with the members of `Task` is a task.

A task of the user's own, tried before anything is spent on it.

Training would fail far from where the mistake is, and problems that are others each time would
never be noticed: a resumed run goes on with the same problems.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
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
    every_position_right,
    whole_number,
)
from iterant.tasks.rng import check_seed, problem_numbers

_PAPER, _INK = np.array([255.0, 255.0, 255.0]), np.array([64.0, 64.0, 64.0])
_MARKED = np.array([[86.0, 180.0, 233.0], [230.0, 159.0, 0.0], [0.0, 158.0, 115.0],
                    [204.0, 121.0, 167.0], [0.0, 114.0, 178.0], [240.0, 228.0, 66.0]])  # fmt: skip
_WRONG = np.array([213.0, 94.0, 0.0])
"""Sky blue for class 1, colours of the same palette for the next, vermilion for what is wrong:
apart for every kind of colour vision. A seventh class has the first one's colour again."""
_NOTHING, _SOMETHING, _YES, _NO = ".#ox"
"""In text: nothing, something of the input, class 1 of a question of yes or no, what is wrong."""
_NUMBERS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz+"))
"""Of classes where there are more than two, and of channels; further ones as letters."""


class PlainTask(ABC):
    """Give it a ``spec`` and a ``make``, and it is a task."""

    spec: TaskSpec

    @abstractmethod
    def make(self, size: int, random: np.random.Generator) -> tuple[ArrayLike, ArrayLike]:
        """One problem: its input (C, *S), and for each of its positions a class from 0 on, (*S)."""

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
        numbers = problem_numbers(count, first)
        made = [self._pair(side, start, int(number)) for number in numbers]
        inputs, targets = self._stacked(made)
        self._check_shapes(inputs, targets)
        if len(made) > 1:
            again = self._pair(side, start, int(numbers[0]))
            if not all(np.array_equal(*two) for two in zip(made[0], again, strict=True)):
                raise TaskError(
                    f"make() of {self.spec.name} made two problems of one seed and number; draw "
                    "from the random numbers that it is handed alone, so that runs can be repeated"
                )
        return Batch(torch.from_numpy(inputs), torch.from_numpy(targets))

    def _pair(self, side: int, start: int, number: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Input and answer of one problem as `make` gives them."""
        made = self.make(side, np.random.default_rng([start, side, number]))
        if not isinstance(made, tuple | list) or len(made) != 2:
            raise TaskError(
                f"make() of {self.spec.name} gave {type(made).__name__}, wanted a pair: an input "
                "and a class for each of its positions"
            )
        try:
            return np.asarray(made[0], dtype=np.float32), np.asarray(made[1], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TaskError(
                f"make() of {self.spec.name} gave what is no array of numbers ({error})"
            ) from error

    def _stacked(
        self, made: Sequence[tuple[NDArray[Any], NDArray[Any]]]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Problems of one shape, their inputs finite and their classes whole numbers."""
        for what, part in (("an input", 0), ("an answer", 1)):
            shapes = sorted({pair[part].shape for pair in made})
            if len(shapes) > 1:
                raise TaskError(
                    f"make() of {self.spec.name} gave {what} of shape {shapes[0]} and of "
                    f"{shapes[1]} for one size; wanted the same shape for all"
                )
        inputs, answers = (np.stack([pair[part] for pair in made]) for part in (0, 1))
        if not np.isfinite(inputs).all():
            raise TaskError(f"make() of {self.spec.name} gave an input that is NaN or infinite")
        if (strange := ~np.isfinite(answers) | (answers != answers.round())).any():
            raise TaskError(
                f"make() of {self.spec.name} gave {answers[strange][0]} as a class; wanted whole "
                "numbers from 0 on"
            )
        return inputs, answers.astype(np.int64)

    def _check_shapes(self, inputs: NDArray[np.float32], targets: NDArray[np.int64]) -> None:
        spec = self.spec
        if inputs.ndim != spec.dims + 2 or inputs.shape[1] != spec.channels:
            raise TaskError(
                f"make() of {spec.name} gave an input of shape {inputs.shape[1:]}, wanted "
                f"{counted(spec.channels, 'channel')} and "
                f"{counted(spec.dims, 'axis', 'axes')} of space as its spec says"
            )
        if targets.shape[1:] != inputs.shape[2:]:
            raise TaskError(
                f"make() of {spec.name} gave an answer of shape {targets.shape[1:]}, wanted one "
                f"class for each position of the input, {inputs.shape[2:]}"
            )
        if targets.min() < 0 or targets.max() >= spec.classes:
            raise TaskError(
                f"make() of {spec.name} gave class {targets.min()} to {targets.max()}, wanted 0 to "
                f"{spec.classes - 1}; say how many there are: TaskSpec(classes=…)"
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
        """The input in greys, the answer in colours, wrong positions in vermilion.

        Over a grid the answer is drawn on the input, below a string on a line of its own; class 0
        is drawn as nothing.
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
        # A number on a grid is either the input's or the answer's.
        shade, signs = _shades(question, numbers=self.spec.dims == 1 or self.spec.classes == 2)
        labels: tuple[str, ...] = ()
        if self.spec.dims == 1:
            labels, shade = ("input", "answer"), np.concatenate([shade, 0 * shade])
            signs = np.concatenate([signs, np.full_like(signs, _NOTHING)])
            answer, wrong = (np.concatenate([0 * part, part]) for part in (answer, wrong))
        marked, wrong = answer > 0, wrong.astype(bool)
        cells = _PAPER + shade[..., None] * (_INK - _PAPER)
        cells[marked] = (cells[marked] + 2 * _MARKED[(answer[marked] - 1) % len(_MARKED)]) / 3
        cells[wrong] = _WRONG
        named = _YES if self.spec.classes == 2 else _numbered(answer)
        signs = np.where(wrong, _NO, np.where(marked, named, signs))
        lines = ["".join(line) for line in signs]
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


def _shades(
    question: NDArray[np.float32], *, numbers: bool
) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    """A problem (C, rows, columns) as greys from 0 to 1, and as signs.

    Later channels are darker; where every position is of exactly one, ``numbers`` makes its number
    the sign.
    """
    each = question - question.min(axis=(1, 2), keepdims=True)
    each = each / np.maximum(each.max(axis=(1, 2), keepdims=True), 1e-9)
    weights = np.arange(1, len(each) + 1, dtype=each.dtype)
    shade = np.average(each, axis=0, weights=weights).astype(each.dtype)
    if numbers and len(each) > 1 and bool(((each > 0).sum(axis=0) == 1).all()):
        return shade, _numbered(each.argmax(axis=0))
    return shade, np.where(shade > 0, _SOMETHING, _NOTHING)


def _numbered(numbers: NDArray[np.int64]) -> NDArray[np.str_]:
    """A sign a number."""
    made: NDArray[np.str_] = _NUMBERS[np.clip(numbers, 0, len(_NUMBERS) - 1)]
    return made


_FEW = 2


def check_task(task: Task, word: str) -> None:
    """Refuse a task whose spec or problems cannot be right.

    What fails inside of it is left for later, where the whole traceback is shown: its problems may
    be there in one size alone.
    """
    if not isinstance(task.spec, TaskSpec):
        raise TaskError(
            f"spec of {word!r} is {type(task.spec).__name__}, wanted TaskSpec(name=…, title=…, "
            "dims=…, channels=…, train_size=…)"
        )
    try:
        batch, again = (task.sample(_FEW) for _ in range(2))
    except Exception:
        return
    if not isinstance(batch, Batch):
        raise TaskError(
            f"sample() of {word!r} gave {type(batch).__name__}, wanted Batch(inputs, targets)"
        )
    _check_tensors(task.spec, batch, word)
    if not (torch.equal(batch.inputs, again.inputs) and torch.equal(batch.targets, again.targets)):
        raise TaskError(
            f"sample() of {word!r} gave two answers to one question; the same count, size, seed "
            "and first must give the same problems, so that runs can be repeated"
        )
    if batch.labelled:
        _check_judge(task, batch, word)


def _check_tensors(spec: TaskSpec, batch: Batch, word: str) -> None:
    inputs, targets = batch.inputs, batch.targets
    if inputs.ndim != spec.dims + 2 or tuple(inputs.shape[:2]) != (_FEW, spec.channels):
        raise TaskError(
            f"sample({_FEW}) of {word!r} gave inputs of shape {tuple(inputs.shape)}, wanted "
            f"({_FEW}, {spec.channels}) and {counted(spec.dims, 'axis', 'axes')} of space as "
            "its spec says"
        )
    if targets.shape != (wanted := (_FEW, *inputs.shape[2:])):
        raise TaskError(
            f"sample({_FEW}) of {word!r} gave targets of shape {tuple(targets.shape)}, wanted a "
            f"class for each position, {wanted}"
        )
    if inputs.dtype != torch.float32 or targets.dtype != torch.int64:
        raise TaskError(
            f"sample() of {word!r} gave inputs of {inputs.dtype} and targets of {targets.dtype}, "
            "wanted torch.float32 and torch.int64"
        )


def _check_judge(task: Task, batch: Batch, word: str) -> None:
    try:
        right = task.solved(batch.targets, batch)
    except Exception:
        return
    if not isinstance(right, Tensor) or right.shape != (_FEW,) or right.dtype != torch.bool:
        raise TaskError(
            f"solved() of {word!r} gave {_of(right)} for {_FEW} problems, wanted a tensor of "
            f"{_FEW} bools"
        )


def _of(given: object) -> str:
    if isinstance(given, Tensor):
        return f"a tensor of shape {tuple(given.shape)} and {given.dtype}"
    return type(given).__name__
