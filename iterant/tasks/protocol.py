"""What a task is: an object that samples, encodes, checks and describes problems.

    >>> task = iterant.task("prefix-sums")
    >>> batch = task.sample(2, size=8, seed=1)
    >>> task.solved(batch.targets, batch)
    tensor([True, True])

Any object with the members of `Task` is a task. `OptionalMethods` lists what it may also have:
training, solving and analysis ask whether a task has the method, never which task it is, so a
user-defined task takes part by defining it.

Shapes: N problems, C channels, K classes, *S space (one axis or two).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant import registry
from iterant.errors import TaskError
from iterant.formatting import counted, size_text
from iterant.rng import check_seed, is_whole

if TYPE_CHECKING:
    from iterant.tasks.datasets import StoredProblems
    from iterant.tasks.inputs import Material

Size = int | tuple[int, int]
"""Bits of a string, the side of a maze, or for chess an index range ``(first, stop)``."""


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """The constants of a task: shapes, sizes, test sets. Defaults elsewhere are read from here."""

    name: str
    title: str
    dims: int
    """Axes of space: 1 for strings, 2 for images"""
    channels: int
    """Input channels C"""
    classes: int = 2
    """Classes K of a position of the answer, numbered from 0"""
    readout: str = "argmax"
    """How logits become an answer: a registered name, stored with networks"""
    train_size: Size
    train_count: int = 10_000
    watch_sizes: tuple[Size, ...] = ()
    """Sizes of larger problems that training monitors; they never choose the best weights"""
    tests: tuple[tuple[Size, int], ...] = ()
    """The paper's test sets: (size, count)"""
    size_means: str = "a whole number above 0"
    """For help texts and errors: 'an odd number of at least 3'"""
    square: int = 1
    """Pixels per side of a cell: 2 if every cell is drawn as 2×2 pixels"""

    def __post_init__(self) -> None:
        # Recorded answers hold one byte per position, so there are at most 256 classes.
        if self.dims not in (1, 2) or self.channels < 1 or not 2 <= self.classes <= 256:
            raise TaskError(
                f"{self.name} needs 1 or 2 dims, 1 channel or more and 2 to 256 classes, got "
                f"dims={self.dims!r}, channels={self.channels!r}, classes={self.classes!r}"
            )


@dataclass(frozen=True)
class Batch:
    """Problems and their answers, in the conventions of the Easy-to-Hard benchmark.

    >>> inputs, targets = iterant.task("mazes").sample(10, size=9)
    """

    inputs: Tensor
    """(N, C, *S) float32"""
    targets: Tensor
    """(N, *S) int64; -1 everywhere if the answer is not known"""
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Further columns of N values: rating, id, path length"""

    def __iter__(self) -> Iterator[Tensor]:
        """``inputs, targets = batch``; for one problem at a time, take ``batch[[index]]``."""
        return iter((self.inputs, self.targets))

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        known = "" if self.labelled else ", answers not known"
        more = f", extras {', '.join(self.extras)}" if self.extras else ""
        shapes = f"inputs {tuple(self.inputs.shape)}, targets {tuple(self.targets.shape)}"
        return f"Batch({counted(len(self), 'problem')}: {shapes}{known}{more})"

    def __getitem__(self, which: int | slice | Tensor | NDArray[Any] | list[int]) -> Batch:
        """The chosen problems: a slice, indices or a mask; a number gives a batch of one."""
        indexer = which.cpu().numpy() if isinstance(which, Tensor) else which
        rows = np.atleast_1d(np.arange(len(self))[indexer])
        index = torch.from_numpy(rows)
        extras = {name: column[rows] for name, column in self.extras.items()}
        return Batch(self.inputs[index], self.targets[index], extras)

    def to(self, device: torch.device | str) -> Batch:
        return replace(self, inputs=self.inputs.to(device), targets=self.targets.to(device))

    @cached_property
    def labelled(self) -> bool:
        """Whether every answer is known; cached, because it synchronises with a GPU."""
        return bool((self.targets >= 0).all())


@dataclass(frozen=True)
class Problem:
    """One problem with its name and notes: what `iterant.solving.solutions` takes."""

    batch: Batch
    """A batch of one"""
    name: str = ""
    notes: tuple[str, ...] = ()
    """What was detected or assumed while reading: the grid of a picture, no castling"""
    unsolvable: str = ""
    """Why there is no answer, if that is known"""
    generated: bool = False
    """Whether the task generated it"""


@dataclass(frozen=True)
class Glyph:
    """A character drawn over one cell: a bit, a chess piece."""

    row: int
    column: int
    text: str
    colour: str = "#000000"


@dataclass(frozen=True)
class Arrow:
    """An arrow from one cell to another: a move."""

    start: tuple[int, int]
    """(row, column)"""
    end: tuple[int, int]
    colour: str = "#1f77b4"


@dataclass(frozen=True)
class LegendEntry:
    """What a character of a description's text, and a colour of its cells, stand for.

    An entry without a colour is for the text only.
    """

    sign: str
    colour: str
    meaning: str


@dataclass(frozen=True)
class Description:
    """A problem and perhaps an answer, as text and as coloured cells, which `iterant.draw` draws.

    >>> iterant.task("mazes").describe(batch, 0).title
    'mazes'
    """

    title: str
    text: str
    """For a terminal without colours; the lines have one width"""
    cells: NDArray[np.uint8]
    """(rows, columns, 3) colours"""
    glyphs: tuple[Glyph, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()
    caption: str = ""
    legend: tuple[LegendEntry, ...] = ()

    def _repr_png_(self) -> bytes:
        """The picture that a notebook shows."""
        png: bytes = registry.find("picture", "description")(self)
        return png


@runtime_checkable
class Task(Protocol):
    """The members of every task."""

    @property
    def spec(self) -> TaskSpec:
        """The constants of the task."""

    def check_size(self, size: Size | None) -> Size:
        """The size if it is valid, for None the training size, else TaskError."""

    def parse_size(self, text: str) -> Size:
        """A size as text on the command line."""

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Problems ``first … first + count - 1`` of the endless sequence of a size and seed."""

    def encode(self, problem: str) -> Batch:
        """One problem as text; targets are -1 if the answer is not known."""

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: every position right, the paper's strict metric."""

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """One problem with a prediction (N, *S) over it and its errors marked.

        Without a prediction the known answer is shown; if there is none, the problem alone.
        """


def task(word: str, **options: Any) -> Task:
    """The task of this name, or a user-defined class as ``module:Class``, which is imported.

        >>> task("mazes").spec.train_size
        9
        >>> task("iterant.tasks.prefix_sums:PrefixSums").spec.watch_sizes
        (48, 64)

    Args:
        word: ``prefix-sums``, ``mazes``, ``chess`` or ``module:Class``.
        options: arguments of the task, ``task("chess", data="puzzles/")``; None leaves one out.
    """
    registry.allow(word)
    return registry.task(word, **options)


def with_problems(task: Task, problems: str) -> Task:
    """The task with the kind of problems that a recipe or a flag names; "": as it is."""
    if not problems:
        return task
    if not offers(task, "with_problems"):
        raise TaskError(
            f"{task.spec.name} has one kind of problems (no method `with_problems`), asked for "
            f"{problems!r}; leave it out"
        )
    return task.with_problems(problems)


def sample_problems(
    task: Task, *, count: int = 1, size: Size | None = None, seed: int = 0
) -> list[Problem]:
    """Problems sampled from the task, each with a name."""
    size = task.check_size(size)
    batch = task.sample(count, size=size, seed=seed)
    name = f"{task.spec.name}, size {size_text(size)}, seed {seed}"
    names = [f"{name} ({row} of {count})" for row in range(1, count + 1)] if count > 1 else [name]
    return [Problem(batch[[row]], name, generated=True) for row, name in enumerate(names)]


def check_prediction(prediction: Tensor, batch: Batch) -> None:
    """Raise TaskError unless the prediction has one class per position of the whole batch."""
    if not isinstance(prediction, Tensor):
        raise TaskError(
            "a prediction is a tensor, such as iterant.solve(net, batch.inputs).prediction, got "
            f"{prediction!r:.80}"
        )
    if prediction.shape != batch.targets.shape:
        raise TaskError(
            f"the prediction has shape {tuple(prediction.shape)}, "
            f"the targets {tuple(batch.targets.shape)}; give one class a position"
        )


def check_described(batch: Batch, index: int, prediction: Tensor | None) -> None:
    """Raise TaskError unless the batch has this problem and the prediction fits the batch."""
    if not is_whole(index) or not -len(batch) <= index < len(batch):
        raise TaskError(
            f"this batch has {counted(len(batch), 'problem')}, numbered from 0, asked for {index!r}"
        )
    if prediction is not None:
        check_prediction(prediction, batch)


def problem_numbers(count: int, first: int = 0) -> NDArray[np.int64]:
    """The numbers ``first … first + count - 1``, checked."""
    if not is_whole(count) or count < 1:
        raise TaskError(f"the number of problems must be a whole number from 1 on, got {count!r}")
    if not is_whole(first) or first < 0:
        raise TaskError(f"the first problem must be a whole number from 0 on, got {first!r}")
    return np.arange(first, first + count, dtype=np.int64)


def slices(count: int, most: int, least: int = 1) -> Iterator[slice]:
    """Split ``count`` problems into batches of about equal size, of at most ``most``.

    Each has at least ``least`` problems, unless there are fewer, or ``most`` is smaller.

    >>> list(slices(10, most=4))
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    number = min(-(-count // most), max(1, count // least))
    edges = [count * index // number for index in range(number + 1)] if count else []
    yield from (slice(first, stop) for first, stop in pairwise(edges))


class BaseTask(ABC):
    """Base class of tasks whose answer is one class per position."""

    spec: TaskSpec
    data: str | Path | None = None
    """Files that problems come from"""
    stored: StoredProblems | None = None
    """The problems in these files, which are used instead of generated ones"""

    def __repr__(self) -> str:
        """The task in one line: ``Mazes(inputs (N, 3, H, W), 2 classes, training size 9)``."""
        spec = self.spec
        axes = "H, W" if spec.dims == 2 else "L"
        text = f"inputs (N, {spec.channels}, {axes}), {spec.classes} classes, training size "
        text += size_text(spec.train_size)
        for name in ("data", "problems"):
            if isinstance(value := getattr(self, name, None), str | Path) and value:
                text += f", {name}={str(value)!r}"
        return f"{type(self).__name__}({text})"

    @abstractmethod
    def check_size(self, size: Size | None) -> Size:
        """The size if it is valid; for None the training size."""

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        numbers, size, seed = problem_numbers(count, first), self.check_size(size), check_seed(seed)
        if self.stored is not None:
            return self.stored.sample(numbers, size=size, seed=seed)
        return self._generate(size, seed, numbers)

    @abstractmethod
    def _generate(self, size: Any, seed: int, numbers: NDArray[np.int64]) -> Batch:
        """The problems of these numbers; each depends only on size, seed and its own number."""

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: the strict metric, every position right."""
        check_prediction(prediction, batch)
        if prediction.device != batch.targets.device:
            raise TaskError(
                f"the prediction is on {prediction.device}, the targets are on "
                f"{batch.targets.device}; use prediction.to({str(batch.targets.device)!r})"
            )
        if not batch.labelled:
            raise TaskError(
                "the answers of these problems are not known, so none can be judged; "
                "sample problems from the task, or give a labelled set"
            )
        return (prediction == batch.targets).flatten(1).all(dim=1)


class SizedTask(BaseTask):
    """Base class of tasks whose sizes are integers."""

    sizes = range(1, 10_000_001)
    """The valid sizes"""

    def check_size(self, size: Size | None) -> int:
        """The size if it is valid; for None the size of the files, else the training size."""
        if size is None and self.stored is not None:
            size = self.stored.only_size()
        size = self.spec.train_size if size is None else size
        if not is_whole(size) or size not in self.sizes:
            raise TaskError(
                f"a size of {self.spec.name} is {self.spec.size_means}, up to {self.sizes[-1]:,}, "
                f"got {size!r}; try {self.spec.train_size}"
            )
        return int(size)  # type: ignore[arg-type]

    def parse_size(self, text: str) -> int:
        """A size as text: ``"64"``."""
        text = text.strip()[:50]  # int() takes at most 4300 digits
        return self.check_size(int(text) if text.isdecimal() else text)  # type: ignore[arg-type]


class PackedProblems(Protocol):
    """A training set in a compact form (bits of chess boards), expanded one batch at a time."""

    def __len__(self) -> int: ...

    def to(self, device: torch.device) -> PackedProblems: ...

    def __getitem__(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets of the chosen problems, computed on the device."""


@dataclass(frozen=True)
class RulesCheck:
    """Whether an answer keeps the rules of its task, right or not."""

    legal: bool | None = None
    """None if it cannot be checked"""
    words: str = ""
    unchecked_because: str = ""
    """What is missing to check it, if it cannot be checked"""
    keeps = property(attrgetter("legal"))  # its name before 0.2


@dataclass(frozen=True)
class NearMiss:
    """How answers are wrong, one row per problem."""

    wrong: Tensor
    """(N,) int64: wrong positions; 0 is solved"""
    connected: Tensor
    """(N,) bool: whether the answer joins start and end"""
    valid: Tensor
    """(N,) bool: whether it is one whole path from start to end, if not the target"""


@dataclass(frozen=True)
class Kind:
    """A subset of a batch by some property."""

    name: str
    """For a table: ``rating 1400 to 1499``, ``mateIn2``"""
    among: Tensor
    """(N,) bool: which problems are of this kind"""
    scale: str = ""
    """The quantity of which the kind is a range, such as ``rating``; "" if it is not a range"""
    at: float = 0.0
    """The middle of the range"""


def kinds_by_range(values: NDArray[Any], width: int, scale: str) -> list[Kind]:
    """Kinds by ranges of an integer that occur: ``kinds_by_range(ratings, 100, "rating")``."""
    low = torch.from_numpy(np.asarray(values).astype(np.int64)) // width * width
    return [
        Kind(f"{scale} {first} to {first + width - 1}", low == first, scale, first + width / 2)
        for first in sorted(set(low.tolist()))
    ]


class OptionalMethods(Task, Protocol):
    """What a task may have besides the members of `Task`; callers ask with `offers`."""

    # Reading problems (`iterant.tasks.inputs`)

    def split(self, material: Material) -> Iterable[Material]:
        """The parts that hold one problem each: lines, blocks, games; a picture is one part."""

    def read(self, material: Material) -> Problem:
        """The problem in one part, or TaskError; without it, `encode` gets the text."""

    # Training

    def with_problems(self, problems: str) -> Task:
        """The task with another kind of problems, in its own words: ``start=any``."""

    def packed(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> PackedProblems | None:
        """The problems of `Task.sample`, packed; None if the data in use cannot be packed."""

    def mirrored(self, inputs: Tensor, targets: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """The problems with those chosen, (N,) bool, mirrored where the mirror image is valid."""

    # Solving

    def answer_text(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """The predicted answer to one problem in a few words: bits, a path, a move."""

    def verdict(self, batch: Batch, index: int, prediction: Tensor) -> RulesCheck:
        """Whether an answer keeps the rules: a path from start to end, a legal move."""

    def unlike(self, batch: Batch, index: int, problems: str) -> str:
        """What a problem has that those of this kind (see `with_problems`) do not; "": nothing."""

    def restrict(self, batch: Batch, index: int, logits: Tensor) -> tuple[Tensor, str]:
        """The best allowed answer, (*S) int64, by logits (K, *S); and what was assumed, or ""."""

    # Evaluation and analysis

    def source(self) -> str:
        """The data set that problems come from, in words, for results."""

    def flip(self, batch: Batch, index: int | Tensor) -> Batch:
        """Strings with position ``index`` (one for all, or one each) flipped, and their answers."""

    def shorten(self, batch: Batch) -> tuple[Batch, Tensor]:
        """Problems with the end of the path moved nearer, and the rows (int64) they came from."""

    def any_right(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: right answers, where a problem has several and the target is one of them."""

    def near_misses(self, prediction: Tensor, batch: Batch) -> NearMiss:
        """How each prediction (N, *S) of a path is wrong."""

    def kinds(self, batch: Batch) -> list[Kind]:
        """The kinds of problem in a batch, which may overlap."""


def offers(task: Task, *methods: str) -> TypeGuard[OptionalMethods]:
    """Whether a task has these of the optional methods."""
    return all(hasattr(task, method) for method in methods)


def answer_text(task: Task, batch: Batch, prediction: Tensor) -> str:
    """The answer to a batch of one as text, "" if the task cannot write it."""
    write = getattr(task, "answer_text", None) or getattr(task, "tell", None)  # before 0.2
    return "" if write is None else str(write(batch, 0, prediction))


def is_right(task: Task, batch: Batch, prediction: Tensor) -> bool | None:
    """Whether the answer to a batch of one is right; None if that is not known."""
    return bool(task.solved(prediction, batch)[0]) if batch.labelled else None
