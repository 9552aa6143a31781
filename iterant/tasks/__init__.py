"""Tasks: generate, encode, check and describe problems. Tasks do not depend on networks.

    >>> from iterant.tasks import Batch, PlainTask, TaskSpec, dataset
    >>> dataset(iterant.task("mazes"), 1000, size=9)[0]      # for a DataLoader

protocol.py        what a task offers, and optional abilities
user.py            user-defined tasks: `PlainTask`, and the checks of any task
inputs.py          problems from text, files, folders and pictures
datasets.py        problems as a PyTorch data set; the files of the original benchmark
prefix_sums.py     bits and their running parity
mazes/             mazes and the path through them
chess/             positions and the move to find
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iterant.tasks.datasets import dataset as dataset
    from iterant.tasks.datasets import read_easy_to_hard as read_easy_to_hard
    from iterant.tasks.datasets import save_easy_to_hard as save_easy_to_hard
    from iterant.tasks.protocol import Batch as Batch
    from iterant.tasks.protocol import Description as Description
    from iterant.tasks.protocol import Size as Size
    from iterant.tasks.protocol import Task as Task
    from iterant.tasks.protocol import TaskSpec as TaskSpec
    from iterant.tasks.user import PlainTask as PlainTask

_MODULE_OF = {
    "Batch": "protocol",
    "Description": "protocol",
    "PlainTask": "user",
    "Size": "protocol",
    "Task": "protocol",
    "TaskSpec": "protocol",
    "dataset": "datasets",
    "read_easy_to_hard": "datasets",
    "save_easy_to_hard": "datasets",
}

__all__ = [*_MODULE_OF]


def __getattr__(name: str) -> object:
    """Import on first use: the command line starts without torch."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
