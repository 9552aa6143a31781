"""What a task is: one small object that samples, encodes, judges and describes problems.

    >>> task = iterant.task("prefix-sums")
    >>> batch = task.sample(2, size=8, seed=1)
    >>> task.solved(batch.targets, batch)
    tensor([True, True])

A user's own task offers the members of `Task`; nothing else is needed, and nothing here must be
edited. Tasks know no network.

What some tasks say of an answer: in words, by rules or wishes, and the best that rules allow.

Whoever shows answers asks whether the task has one of these, never which task it is; a user's own
task takes part by offering the method. Predictions are those of the whole batch, (N, *S).

What some tasks offer beyond `Task`: small changes to a problem, and a closer look at errors.

A study that needs one of these asks whether the task has it, never which task it is; a user's own
task takes part by offering the method.

Shapes: N problems, C channels, *S space (one axis or two).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant import registry
from iterant.errors import TaskError
from iterant.formatting import counted

MOST_CLASSES = 256
"""Of a position: films of thinking hold a byte for each."""

Size = int | tuple[int, int]
"""How hard: bits, a maze's side, or for chess an index range ``(first, stop)``."""


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What is declared once about a task; every default elsewhere is read from here."""

    name: str
    title: str
    dims: int
    """How many axes space has: 1 for strings, 2 for images."""
    channels: int
    """Input channels C."""
    classes: int = 2
    """K: what a position of an answer can be, numbered from 0; the networks have as many scores."""
    readout: str = "argmax"
    """How logits become an answer: a registered word, carried by networks trained here."""
    train_size: Size
    train_count: int = 10_000
    watch_sizes: tuple[Size, ...] = ()
    """Somewhat larger problems, watched while training (monitoring, never selection)."""
    tests: tuple[tuple[Size, int], ...] = ()
    """The paper's test sets: (size, how many)."""
    size_means: str = "a whole number above 0"
    """In words, for help texts and errors: 'an odd number of at least 3'."""
    square: int = 1
    """Pixels a side of what belongs together: 2 where every square is drawn doubled."""

    def __post_init__(self) -> None:
        """Refuse what no network can answer, when the task is made."""
        if self.dims not in (1, 2):
            raise TaskError(f"{self.name} has 1 or 2 axes of space, got dims={self.dims!r}")
        if self.channels < 1:
            raise TaskError(f"{self.name} has 1 channel or more, got channels={self.channels!r}")
        if not 2 <= self.classes <= MOST_CLASSES:
            raise TaskError(
                f"{self.name} has 2 to {MOST_CLASSES} classes, got classes={self.classes!r}; "
                "yes or no at every position is 2"
            )


@dataclass(frozen=True)
class Batch:
    """Problems and their answers, in the conventions of the Easy-to-Hard benchmark."""

    inputs: Tensor
    """(N, C, *S) float32"""
    targets: Tensor
    """(N, *S) int64; -1 everywhere where the answer is not known"""
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """What else is known, a value a problem: rating, id, path length."""

    # It is no pair: "inputs, targets = batch" would take two problems for the two.
    __iter__: ClassVar[None] = None

    def __len__(self) -> int:
        """How many problems."""
        return len(self.inputs)

    def __repr__(self) -> str:
        """How many, and their shapes, in one line."""
        known = "" if (self.targets >= 0).all() else ", answers not known"
        more = f", extras {', '.join(self.extras)}" if self.extras else ""
        inputs, targets = tuple(self.inputs.shape), tuple(self.targets.shape)
        many = counted(len(self), "problem")
        return f"Batch({many}: inputs {inputs}, targets {targets}{known}{more})"

    def __getitem__(self, which: int | slice | Tensor | NDArray[Any] | list[int]) -> Batch:
        """Some of the problems: a slice, indices or a mask; a number: a batch of that one."""
        chosen = which.cpu().numpy() if isinstance(which, Tensor) else which
        rows = np.atleast_1d(np.arange(len(self))[chosen])
        index = torch.from_numpy(rows)
        return Batch(
            self.inputs[index.to(self.inputs.device)],
            self.targets[index.to(self.targets.device)],
            {name: column[rows] for name, column in self.extras.items()},
        )

    def to(self, device: torch.device | str) -> Batch:
        """The same problems on another device."""
        return replace(self, inputs=self.inputs.to(device), targets=self.targets.to(device))

    @cached_property
    def labelled(self) -> bool:
        """Whether every answer is known; looked up once, because a GPU has to be waited for."""
        return bool((self.targets >= 0).all())


@dataclass(frozen=True)
class Glyph:
    """A sign drawn over one cell: a bit, a chess piece."""

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
class Description:
    """A problem and perhaps an answer, as text and as coloured cells.

        >>> task.describe(batch, 0).title
        'mazes'

    `iterant.draw` turns it into pictures without knowing which task it came from.
    """

    title: str
    text: str
    """For a terminal without colours; lines of one width where the problem is a grid."""
    cells: NDArray[np.uint8]
    """(rows, columns, 3) colours"""
    glyphs: tuple[Glyph, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()
    caption: str = ""

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        drawn: bytes = registry.find("picture", "description")(self)
        return drawn


@runtime_checkable
class Task(Protocol):
    """What a task offers."""

    @property
    def spec(self) -> TaskSpec:
        """What is declared once."""

    def check_size(self, size: Size | None) -> Size:
        """The size itself if the task can make it, the training size for None, else TaskError."""

    def parse_size(self, text: str) -> Size:
        """A size as people write it on the command line."""

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Problems ``first … first + count - 1`` of the endless set that size and seed name."""

    def encode(self, problem: str) -> Batch:
        """One problem as people write it; targets are -1 where only a network could tell."""

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: every position right, the paper's strict metric."""

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """One problem as text and coloured cells, with a prediction laid over it and judged.

        Without a prediction the known answer is shown; where targets are -1, the problem alone.
        """


class PackedProblems(Protocol):
    """Many problems in few bytes, as a network reads them only a batch at a time."""

    def __len__(self) -> int:
        """How many problems."""

    def to(self, device: torch.device) -> PackedProblems:
        """The same problems on another device."""

    def __getitem__(self, which: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets of some of them, made on the device."""


@runtime_checkable
class Packs(Protocol):
    """A task with data too large to keep as float tensors: training keeps `PackedProblems`."""

    @property
    def packs(self) -> bool:
        """Whether it can, of the set it has."""

    def packed(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> PackedProblems:
        """The same problems as `Task.sample` gives."""


@runtime_checkable
class Mirrors(Protocol):
    """A task whose problems can be mirrored: the recipe's field ``mirror`` needs it."""

    def mirrored(self, inputs: Tensor, targets: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """The chosen problems, (N,) bool, mirrored wherever that gives as good a problem."""


def check_count(count: int) -> int:
    """The count itself if it is a number of problems, else TaskError."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer):
        raise TaskError(f"the number of problems must be a whole number, got {count!r}")
    if count < 1:
        raise TaskError(f"the number of problems must be at least 1, got {count}")
    return count


def whole_number(text: str, spec: TaskSpec) -> int:
    """A size that is one number, as written; else TaskError."""
    try:
        return int(text)
    except ValueError:
        raise TaskError(
            f"a size of {spec.name} is {spec.size_means}, got {text!r}; try {spec.train_size}"
        ) from None


def every_position_right(prediction: Tensor, batch: Batch) -> Tensor:
    """(N,) bool: the strict metric shared by tasks whose answer is one class a position."""
    if prediction.shape != batch.targets.shape:
        raise TaskError(
            f"the prediction has shape {tuple(prediction.shape)}, "
            f"the targets {tuple(batch.targets.shape)}; give one class a position"
        )
    if not batch.labelled:
        raise TaskError(
            "the answers of these problems are not known, so none can be judged; "
            "sample problems from the task, or give a labelled set"
        )
    return (prediction == batch.targets).flatten(1).all(dim=1)


@dataclass(frozen=True)
class Verdict:
    """Whether an answer keeps the rules of its task, whatever the right one is."""

    keeps: bool | None
    """None: nobody here can tell"""
    words: str
    lacking: str = ""
    """What is missing to tell, where nobody can: said once of many answers"""


NO_VERDICT = Verdict(None, "")


@runtime_checkable
class HasAnswerText(Protocol):
    """Answers that can be said in a few words: bits, a path, a move."""

    def tell(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """The answer to one problem in words."""


@runtime_checkable
class HasVerdict(Protocol):
    """Answers that can be good or bad without a known right one."""

    def verdict(self, batch: Batch, index: int, prediction: Tensor) -> Verdict:
        """Whether the answer keeps the rules: a path that joins the ends, a legal move."""


@runtime_checkable
class Restricts(Protocol):
    """Problems whose rules allow some answers only: the best of those can be chosen."""

    def restrict(self, batch: Batch, index: int, logits: Tensor) -> tuple[Tensor, str]:
        """The best allowed answer, (*S) int64, by logits (K, *S); and what was assumed, or ""."""


@runtime_checkable
class Accepts(Protocol):
    """Problems whose makers call several answers right, or some wrong."""

    def accepts(self, batch: Batch, index: int, prediction: Tensor) -> bool:
        """Whether it is right by what the maker said; asked only where something is wanted."""

    def wanted(self, batch: Batch, index: int) -> str:
        """What the maker said, in words; "" where that was nothing."""


def answer_text(task: object, batch: Batch, index: int, prediction: Tensor) -> str:
    """The answer in words if the task has words for it, else nothing."""
    return task.tell(batch, index, prediction) if isinstance(task, HasAnswerText) else ""


def verdict_of(task: object, batch: Batch, index: int, prediction: Tensor) -> Verdict:
    """The task's verdict; one that says nothing where the task has none."""
    if isinstance(task, HasVerdict):
        return task.verdict(batch, index, prediction)
    return NO_VERDICT


def is_accepted(task: Task, batch: Batch, prediction: Tensor) -> bool | None:
    """Whether the answer to a lone problem is right; None where nobody knows."""
    if isinstance(task, Accepts) and task.wanted(batch, 0):
        return task.accepts(batch, 0, prediction)
    return bool(task.solved(prediction, batch)[0]) if batch.labelled else None


def expected_answer(task: object, batch: Batch) -> str:
    """What is wanted of a lone problem, in the words of its maker, else nothing."""
    return task.wanted(batch, 0) if isinstance(task, Accepts) else ""


@dataclass(frozen=True)
class NearMiss:
    """How an answer is wrong, a row a problem."""

    wrong: Tensor
    """(N,) int64: positions that are wrong; 0 is solved"""
    connected: Tensor
    """(N,) bool: whether the answer joins start and end"""
    valid: Tensor
    """(N,) bool: whether it is one whole way from start to end, labelled or not"""


@runtime_checkable
class Flips(Protocol):
    """Problems that are strings: one position can be turned over."""

    def flip(self, batch: Batch, index: int | Tensor) -> Batch:
        """The problems with position ``index`` (one for all, or one each) changed, solved anew."""


@runtime_checkable
class Shortens(Protocol):
    """Problems whose answer is a way: its end can be moved nearer."""

    def shorten(self, batch: Batch) -> tuple[Batch, Tensor]:
        """The changed problems, and which of ``batch`` (rows, int64) they were made from."""


@runtime_checkable
class HasNearMisses(Protocol):
    """Problems whose answer is a way: a wrong one can still be connected, or even valid."""

    def misses(self, prediction: Tensor, batch: Batch) -> NearMiss:
        """How each prediction (N, *S) is wrong."""


@runtime_checkable
class HasSource(Protocol):
    """Problems that are taken from a set and not made: a result is of that set alone."""

    def came_from(self) -> str:
        """The set in words, and what was kept of it."""


@dataclass(frozen=True)
class Kind:
    """Some of a batch's problems, by what they are."""

    name: str
    """For a table: ``rating 1400 to 1499``, ``mateIn2``"""
    among: Tensor
    """(N,) bool: which problems are of this kind"""
    scale: str = ""
    """What a kind is a range of, such as ``rating``; "": it is no range"""
    at: float = 0.0
    """Where on that scale its middle is"""


@runtime_checkable
class HasKinds(Protocol):
    """Problems of several kinds, which a study may tell apart; kinds may overlap."""

    def kinds(self, batch: Batch) -> list[Kind]:
        """The kinds of problem there are in a batch."""


def ranges(values: NDArray[Any], width: int, scale: str) -> list[Kind]:
    """Kinds by a whole number: ``ranges(ratings, 100, "rating")``, those only that occur."""
    held = torch.from_numpy(np.asarray(values).astype(np.int64)) // width
    return [
        Kind(
            f"{scale} {width * place} to {width * place + width - 1}",
            held == place,
            scale,
            width * place + width / 2,
        )
        for place in sorted(set(held.tolist()))
    ]
