"""What is asked: generate, encode, judge and describe problems; knows no network.

    >>> from iterant.tasks import Batch, PlainTask, TaskSpec, dataset
    >>> dataset(iterant.task("mazes"), 1000, size=9)[0]      # for a DataLoader

protocol.py        what a task offers; own.py: one of your own from two things; trying.py: tried
prefix_sums.py     bits and their running parity
mazes.py           mazes and the way through
chess.py           positions and the move to find
sets.py            problems as PyTorch's own data sets
easy_to_hard.py    the files of the original benchmark, read and written
chance.py          draws that are a function of seed and place

Every other module belongs to one of these. Names are loaded when first used, and torch with them.
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

_WHERE = {
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

__all__ = [
    "Batch",
    "Description",
    "PlainTask",
    "Size",
    "Task",
    "TaskSpec",
    "dataset",
    "read_easy_to_hard",
    "save_easy_to_hard",
]


def __getattr__(name: str) -> object:
    """Load what needs torch on first use: the command line looks at this room without it."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value
