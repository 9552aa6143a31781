"""Logical extrapolation: learn an algorithm on easy problems, solve far harder ones.

    >>> import iterant
    >>> task, net = iterant.task("mazes"), iterant.load("mazes")
    >>> batch = task.sample(3, size=13, seed=1)          # larger than any that it was trained on
    >>> answer = iterant.solve(net, batch.inputs)        # iterates until nothing changes
    >>> task.solved(answer.prediction, batch)
    tensor([True, True, True])

``think`` yields every iteration, ``evaluate`` gives the accuracy after each, ``train`` trains a
network, ``analyze`` intervenes in it. Names are loaded on first use: ``iterant --help`` does not
import torch. On a busy machine, importing iterant before torch makes training much faster
(`iterant.threads`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iterant import errors as errors
    from iterant.analysis.studies import analyze as analyze
    from iterant.engine import last as last
    from iterant.engine import think as think
    from iterant.errors import IterantError as IterantError
    from iterant.evaluation import evaluate as evaluate
    from iterant.solving import solve as solve
    from iterant.tasks.protocol import task as task
    from iterant.training.run import train as train
    from iterant.zoo.loading import load as load

    __version__: str

# Where each public name lives: the same as above; a test compares the two.
_WHERE = {
    "IterantError": "iterant.errors",
    "analyze": "iterant.analysis.studies",
    "errors": "iterant.errors",
    "evaluate": "iterant.evaluation",
    "last": "iterant.engine",
    "load": "iterant.zoo.loading",
    "solve": "iterant.solving",
    "task": "iterant.tasks.protocol",
    "think": "iterant.engine",
    "train": "iterant.training.run",
}

__all__ = ["__version__", *_WHERE]

# Before any module of ours imports torch.
importlib.import_module("iterant.threads").choose_waiting()


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            value: object = version("iterant")
        except PackageNotFoundError:  # a copy of the source that was never installed
            value = "0+source"
    elif name in _WHERE:
        module = importlib.import_module(_WHERE[name])
        value = module if module.__name__ == f"iterant.{name}" else getattr(module, name)
    else:
        raise AttributeError(f"module 'iterant' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
