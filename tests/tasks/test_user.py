"""User-defined tasks: what PlainTask adds, and the checks of any task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from test_contract import Thirds

import iterant
from iterant.errors import TaskError
from iterant.tasks import Batch, PlainTask, Task, TaskSpec
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.user import check_task


class AllOnes(PlainTask):
    """1D: is every bit a one?"""

    spec = TaskSpec(name="all-ones", title="all ones?", dims=1, channels=1, train_size=8)

    def make(self, size: int, random: np.random.Generator) -> tuple[Any, Any]:
        bits = random.integers(0, 2, size)
        return bits[None], np.full(size, bits.all())


class Diagonal(PlainTask):
    """2D: mark the diagonal, whatever the noise."""

    spec = TaskSpec(name="diagonal", title="diagonal", dims=2, channels=2, train_size=5)

    def make(self, size: int, random: np.random.Generator) -> tuple[Any, Any]:
        return random.random((2, size, size)), np.eye(size)


TASKS = [AllOnes(), Diagonal(), Thirds()]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.spec.name)
def test_a_drawing_marks_exactly_the_wrong_positions(task: PlainTask) -> None:
    batch = task.sample(2, seed=1)
    flawed = batch.targets.clone()
    flawed[1].view(-1)[:3] = (flawed[1].view(-1)[:3] + 1) % task.spec.classes
    shown = task.describe(batch, 1, prediction=flawed)
    assert shown.text.count("x") == 3
    assert shown.caption.endswith("3 wrong")
    assert (shown.cells == (213, 94, 0)).all(axis=-1).sum() == 3
    clean = task.describe(batch, 1)
    assert "x" not in clean.text
    rows, columns = np.atleast_2d(batch.targets[1].numpy()).shape
    assert clean.cells.shape[:2] == (2 if task.spec.dims == 1 else rows, columns)


def test_describe_strings() -> None:
    batch = Batch(torch.tensor([[[1.0, 1.0, 0.0, 1.0]]]), torch.tensor([[1, 0, 1, 1]]))
    assert AllOnes().describe(batch).text == " input ##.#\nanswer o.oo"
    assert AllOnes().describe(batch, prediction=batch.targets * 0).text.endswith("answer x.xx")
    unknown = Batch(batch.inputs, torch.full((1, 4), -1))
    shown = AllOnes().describe(unknown, prediction=batch.targets)
    assert (shown.caption, shown.text) == ("4", " input ##.#\nanswer o.oo")
    several = Batch(batch.inputs, torch.tensor([[1, 2, 2, 0]]))
    shown = Thirds().describe(several)
    assert shown.text == " input ##.#\nanswer 122."
    assert len({tuple(cell) for cell in shown.cells[1]}) == 3, "a colour for each class"
    flipped = several.targets.flip(1)
    assert Thirds().describe(several, prediction=flipped).text.endswith("answer x22x")
    hot = torch.eye(3)[:, [2, 0, 1, 2]][None]
    assert Thirds().describe(Batch(hot, several.targets)).text.startswith(" input 2012")


@pytest.mark.parametrize(("field", "wrong"), [("classes", 1), ("classes", 257), ("dims", 3),
                                              ("channels", 0)])  # fmt: skip
def test_impossible_specs_are_refused(field: str, wrong: int) -> None:
    good: dict[str, Any] = {"name": "odd", "title": "odd", "dims": 1, "channels": 1}
    with pytest.raises(TaskError, match=f"odd needs .*, got .*{field}={wrong}"):
        TaskSpec(**{**good, field: wrong}, train_size=8)


def test_encode_is_refused() -> None:
    with pytest.raises(TaskError, match=r"an encode\(\) of its own"):
        AllOnes().encode("1011")


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ((np.zeros(8), np.zeros(8)), r"inputs \(2, 8\) .* says \(2, 1, \*S\) .* 1 axes"),
        (np.zeros((1, 8)), "must give a pair of arrays"),
        ((np.full((1, 8), np.nan), np.zeros(8)), "an input that is NaN or infinite"),
        ((np.zeros((1, 8)), np.full(8, 0.5)), "not a whole number"),
        (([[0, 1], [1]], [0, 1]), "of the same shapes"),
    ],
)
def test_make_that_does_not_fit_its_spec(problem: Any, message: str) -> None:
    task = type("Odd", (AllOnes,), {"make": lambda self, size, random: problem})()
    with pytest.raises(TaskError, match=message):
        task.sample(2)


calls = iter(range(1_000_000))


def task(change: Callable[[Batch], Any], **members: Any) -> Task:
    """Prefix sums whose batches were changed."""

    def sample(self: PrefixSums, count: int) -> Any:
        return change(PrefixSums.sample(self, count))

    mine: Task = type("Mine", (PrefixSums,), {"sample": sample, **members})()
    return mine


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (task(lambda b: b, spec={"name": "x"}), "is dict, wanted a TaskSpec"),
        (task(lambda b: (b.inputs, b.targets)), "gave tuple, wanted Batch"),
        (task(lambda b: b[:1]), r"inputs \(1, 1, 32\) .* says \(2, 1, "),
        (task(lambda b: Batch(b.inputs.repeat(1, 2, 1), b.targets)), r"inputs \(2, 2, 32\)"),
        (task(lambda b: Batch(b.inputs[..., 1:], b.targets)), r"targets \(2, 32\)"),
        (task(lambda b: Batch(b.inputs.double(), b.targets)), "of torch.float64 and"),
        (task(lambda b: Batch(b.inputs, b.targets.float())), "of torch.float32, classes"),
        (task(lambda b: Batch(b.inputs, b.targets + 1)), "classes 1 to 2; .* classes 0 to 1"),
        (task(lambda b: b, solved=lambda *_: True), "gave True for 2 problems, wanted a tensor"),
        (task(lambda b: b, solved=lambda *_: torch.ones(3) > 0), "wanted a tensor of 2 bools"),
    ],
)
def test_malformed_tasks_are_refused(wrong: Task, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        check_task(wrong, "mine:Mine")


def test_exceptions_of_a_task_are_left_for_later() -> None:
    def fail(batch: Batch) -> Any:
        raise RuntimeError("there are no problems of the training size")

    check_task(task(fail), "mine:Mine")
    check_task(task(lambda b: b, solved=fail), "mine:Mine")
    check_task(task(lambda b: Batch(b.inputs, b.targets * 0 - 1), solved=fail), "mine:Mine")


class Nondeterministic(PrefixSums):
    """Every call gives other problems."""

    def sample(self, count: int, **_: Any) -> Batch:
        return super().sample(count, seed=next(calls))


def test_tasks_are_checked_when_loaded() -> None:
    with pytest.raises(TaskError, match="'test_user:Nondeterministic' is not deterministic"):
        iterant.task("test_user:Nondeterministic")
