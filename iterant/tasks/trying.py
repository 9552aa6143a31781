"""A task of the user's own, tried before anything is spent on it.

    >>> check_task(Mine(), "mine:Mine")

Training would fail far from where the mistake is, and problems that are others each time would
never be noticed: a resumed run goes on with the same problems.
"""

from __future__ import annotations

import torch
from torch import Tensor

from iterant import names
from iterant.errors import TaskError
from iterant.tasks.protocol import Batch, Task, TaskSpec

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
            f"({_FEW}, {spec.channels}) and {names.counted(spec.dims, 'axis', 'axes')} of space as "
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
