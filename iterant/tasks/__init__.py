"""Tasks: generate, encode, check and describe problems. Tasks do not depend on networks.

    >>> from iterant.tasks import Batch, PlainTask, TaskSpec, dataset
    >>> dataset(iterant.task("mazes"), 1000, size=9)[0]      # for a DataLoader

protocol.py        what a task is, and the methods that it may also have
user.py            user-defined tasks: `PlainTask`, and the checks of any task
inputs.py          problems from text, files, folders and pictures
datasets.py        problems as a PyTorch data set; the files of the original benchmark
prefix_sums.py     bits and their running parity
mazes/             mazes and the path through them
chess/             positions and the move to find
"""

from iterant.tasks.datasets import dataset, read_easy_to_hard, save_easy_to_hard
from iterant.tasks.protocol import Batch, Description, Size, Task, TaskSpec
from iterant.tasks.user import PlainTask

__all__ = [
    "Batch", "Description", "PlainTask", "Size", "Task", "TaskSpec", "dataset", "read_easy_to_hard",
    "save_easy_to_hard",
]  # fmt: skip
