"""Whom a study is made on: a network, its task, and what is known of its training.

>>> subject_of("runs/m0").label
'm0'
>>> Subject(net, task, label="mine", regime=30)       # a network of your own
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iterant import names
from iterant.errors import UsageError
from iterant.nets.protocol import Net
from iterant.runs import RunFolder, read_weights
from iterant.runs.folder import CHECKPOINTS
from iterant.solving.fitting import check_fits
from iterant.tasks.protocol import Task
from iterant.training.objectives import Progressive
from iterant.training.parts import objective_of
from iterant.training.recipe import Recipe


@dataclass(frozen=True)
class Subject:
    """A network with its task, and how it is shown."""

    net: Net
    task: Task
    label: str
    """What tables call it: the run's name"""
    model: str = ""
    """The architecture, which has a colour; "": the label"""
    alpha: float | None = None
    """The share of the progressive loss in training, which has a stroke"""
    regime: int | None = None
    """Iterations in training, which are shaded"""

    def __post_init__(self) -> None:
        """Refuse a network for problems of another kind before anything is thought about."""
        check_fits(self.net, self.task)

    @property
    def legend(self) -> str:
        """What pictures call it: architecture and alpha, which several runs may share."""
        shown = self.model or self.label
        return shown if self.alpha is None else f"{shown}, α = {self.alpha:g}"


Given = Subject | str | os.PathLike[str]
"""A subject, or whatever `iterant.load` takes: a name, a path, a run."""


def subject_of(
    given: Given,
    *,
    task: Task | str | None = None,
    device: str = "cpu",
    data: str | os.PathLike[str] | None = None,
) -> Subject:
    """The subject that a run folder, a folder of weights or a shipped name stands for.

    ``task`` is for weights that do not say what they were trained on.
    """
    if isinstance(given, Subject):
        return given
    if not isinstance(given, str | os.PathLike):
        raise UsageError(
            "wanted a run folder, a folder of weights or a shipped name, got "
            f'{type(given).__name__}; a network at hand is Subject(net, task, label="mine")'
        )
    net, folder = names.trained(given, device)
    config = _config(folder)
    recipe = config.get("recipe") or {}
    label = _label(Path(os.fspath(given)).resolve())
    model, alpha = _trained(recipe)
    return Subject(
        net=net,
        task=_task(task, config, label, data),
        label=label,
        model=model,
        alpha=alpha,
        regime=recipe.get("iterations"),
    )


def shared_regime(subjects: Iterable[Subject]) -> int | None:
    """The training regime of all whose regime is known; None where they differ or none is."""
    known = {subject.regime for subject in subjects} - {None}
    return known.pop() if len(known) == 1 else None


def _trained(recipe: dict[str, Any]) -> tuple[str, float | None]:
    """What was trained and how: only the progressive loss has an alpha, others have a name."""
    if not recipe:
        return "", None
    objective = objective_of(Recipe().changed(**recipe))
    if isinstance(objective, Progressive):
        return str(recipe["net"]), objective.alpha
    return f"{recipe['net']}, {recipe['objective']}", None


def _label(path: Path) -> str:
    """The run's name, and the checkpoint's where one was named."""
    if path.parent.name == CHECKPOINTS and not path.is_dir():
        return f"{path.parent.parent.name} {path.name}"
    return path.name


def _config(folder: Path) -> dict[str, Any]:
    """What is written beside the weights."""
    if folder.parent.name == CHECKPOINTS and not folder.is_dir():
        folder = folder.parent.parent
    if (folder / CHECKPOINTS).is_dir():
        return RunFolder.open(folder).config
    return read_weights(folder)[0]


def _task(
    task: Task | str | None,
    config: dict[str, Any],
    label: str,
    data: str | os.PathLike[str] | None,
) -> Task:
    word = config.get("task") if task is None else task
    if word is None:
        raise UsageError(
            f"{label} does not say which task it was trained on; "
            f"name it: --task {' or '.join(names.known('task'))}"
        )
    if not isinstance(word, str):
        return word
    place = data or config.get("data")
    return names.task(word, **({"data": place} if place else {}))
