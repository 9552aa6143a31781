"""The contract of every task, shipped or user-defined."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any

import numpy as np
import pytest
import torch

import iterant
from iterant.errors import TaskError
from iterant.tasks import Batch, PlainTask, Task, TaskSpec, dataset
from iterant.tasks.protocol import OptionalMethods, offers


class Thirds(PlainTask):
    """A user-defined task: the sum so far, modulo three."""

    spec = TaskSpec(name="thirds", title="thirds", dims=1, channels=1, classes=3, train_size=9)

    def make(self, size: int, random: np.random.Generator) -> tuple[Any, Any]:
        bits = random.integers(0, 2, size)
        return bits[None], bits.cumsum() % 3


SHIPPED = {name: iterant.task(name) for name in ("prefix-sums", "mazes", "chess")}
KINDS = {text: iterant.task("mazes", problems=text) for text in ("start=any,p=0.1", "walls=0.35")}
every_task = pytest.mark.parametrize(
    "task", [*SHIPPED.values(), *KINDS.values(), Thirds()], ids=[*SHIPPED, *KINDS, "thirds"]
)


def equal(one: Batch, other: Batch) -> bool:
    return (
        torch.equal(one.inputs, other.inputs)
        and torch.equal(one.targets, other.targets)
        and all(np.array_equal(one.extras[name], other.extras[name]) for name in one.extras)
    )


@every_task
def test_samples_have_the_shapes_of_the_spec(task: Task) -> None:
    assert isinstance(task, Task)
    batch = task.sample(3)
    assert batch.inputs.shape[:2] == (3, task.spec.channels)
    assert batch.inputs.dim() == task.spec.dims + 2
    assert batch.targets.shape == (3, *batch.inputs.shape[2:])
    assert (batch.inputs.dtype, batch.targets.dtype) == (torch.float32, torch.int64)
    assert batch.labelled
    assert 0 <= int(batch.targets.min()) <= int(batch.targets.max()) < task.spec.classes
    assert repr(task).startswith(f"{type(task).__name__}(inputs (N, {task.spec.channels}, ")


@every_task
def test_a_problem_depends_on_size_seed_and_number_alone(task: Task) -> None:
    whole = task.sample(150, seed=5)
    assert equal(task.sample(100, seed=5), whole[:100])
    assert equal(task.sample(10, seed=5, first=90), whole[90:100])
    assert not torch.equal(task.sample(150, seed=6).inputs, whole.inputs)


@every_task
def test_solved_means_every_position_right(task: Task) -> None:
    batch = task.sample(3)
    answer = batch.targets.clone()
    answer[1].view(-1)[0] = (answer[1].view(-1)[0] + 1) % task.spec.classes
    assert task.solved(batch.targets, batch).all()
    assert task.solved(answer, batch).tolist() == [True, False, True]
    with pytest.raises(TaskError, match="shape"):
        task.solved(answer[:, :2], batch)
    with pytest.raises(TaskError, match="not known"):
        task.solved(answer, Batch(batch.inputs, torch.full_like(answer, -1)))


@every_task
@pytest.mark.parametrize(
    ("name", "wrong"), [("seed", -1), ("seed", 0.5), ("first", -1), ("first", True), ("count", 0)]
)
def test_wrong_numbers_are_refused(task: Task, name: str, wrong: Any) -> None:
    with pytest.raises(TaskError):
        task.sample(**{"count": 1, name: wrong})


@pytest.mark.parametrize(
    ("task", "train_size", "wrong"),
    [
        (SHIPPED["prefix-sums"], 32, [0, -1, 10**9, (1, 2), True, 2.5, "", "x", "3.5", "0", "-2"]),
        (SHIPPED["mazes"], 9, [10, 2, 1, -9, 4003, True, 9.0, (9, 13), "", "nine", "9x9", "8"]),
        (Thirds(), 9, [0, -1, True, (1, 2), 2.5, "-3"]),
    ],
)
def test_sizes(task: Task, train_size: int, wrong: list[Any]) -> None:
    assert (task.check_size(None), task.parse_size("59")) == (train_size, 59)
    for size in wrong:
        with pytest.raises(TaskError, match=f"a size of {task.spec.name} is .*; try {train_size}"):
            task.parse_size(size) if isinstance(size, str) else task.sample(1, size=size)


@every_task
def test_descriptions(task: Task) -> None:
    batch = task.sample(2)
    for prediction in (None, batch.targets, 1 - batch.targets.clamp(max=1)):
        shown = task.describe(batch, 1, prediction)
        assert len({len(line) for line in shown.text.splitlines()}) == 1
        assert shown.cells.dtype == np.uint8
        assert shown.cells.shape[2] == 3
        assert "\n" not in shown.caption
    assert task.describe(batch).text == task.describe(batch, 0).text != shown.text
    with pytest.raises(TaskError):
        task.describe(batch, 0, batch.targets[:, 1:])


@every_task
def test_a_dataset_gives_what_the_task_samples(task: Task) -> None:
    whole = task.sample(10, seed=3, first=2)
    problems = dataset(task, 10, seed=3, first=2)
    # A loader without a generator draws from the global one, which no test may touch.
    loader = torch.utils.data.DataLoader(
        problems, batch_size=4, generator=torch.Generator().manual_seed(1)
    )
    seen = list(loader)
    assert [len(inputs) for inputs, _ in seen] == [4, 4, 2]
    assert torch.equal(torch.cat([inputs for inputs, _ in seen]), whole.inputs)
    assert torch.equal(torch.cat([targets for _, targets in seen]), whole.targets)


@pytest.mark.parametrize(
    ("name", "size", "seed", "digest"),
    [
        ("prefix-sums", 1, 0, "29155179c066bb6f"),
        ("prefix-sums", 32, 0, "737c145758325879"),
        ("prefix-sums", 32, 7, "2ed209f928e4f3be"),
        ("prefix-sums", 512, 1, "0b446aae0b50677b"),
        ("mazes", 3, 0, "390e0b661e8ac9f0"),
        ("mazes", 9, 0, "1e8b9debacdc42ac"),
        ("mazes", 9, 7, "92302a571b16d742"),
        ("mazes", 59, 1, "42a62555dd2d1a96"),
        ("chess", (1600, 1866), 1, "dd5d41bbc15f2e66"),
        ("start=any,p=0.1", 9, 1, "5b9c460e9699b8b5"),
        ("walls=0.35", 8, 1, "2f0106a604a3cef2"),
    ],
)
def test_problems_never_change(name: str, size: Any, seed: int, digest: str) -> None:
    batch = {**SHIPPED, **KINDS}[name].sample(100, size=size, seed=seed)
    parts = (batch.inputs.numpy().astype("<f4"), batch.targets.numpy().astype("<i8"))
    assert hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16] == digest


@pytest.mark.parametrize("task", SHIPPED.values(), ids=list(SHIPPED))
def test_optional_methods_have_the_declared_signatures(task: Task) -> None:
    declared = {name: each for name, each in vars(OptionalMethods).items() if name[0] != "_"}
    names = [name for name in declared if offers(task, name)]
    assert {"split", "answer_text"} <= set(names)
    for name in names:
        ours, theirs = (inspect.signature(each) for each in (getattr(task, name), declared[name]))
        assert list(ours.parameters) == list(theirs.parameters)[1:], name
