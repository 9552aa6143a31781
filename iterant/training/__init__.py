"""Training: recipes, objectives, the loop, checkpoints, several processes.

recipe.py       a recipe: everything that decides a run; the named ones
run.py          train(): start and resume a run
loop.py         a run from its first step to its last, with validation; why it ends early
logging.py      where it reports its progress
trainer.py      one optimizer step; optim.py: optimizers, learning rate, loss scale
objectives.py   the losses: criterion, progressive (Algorithm 1), replay pool …; the unroll
cuda_graphs.py  the unroll on a GPU
data.py         the training set
distributed.py  several processes by torchrun

The command line reads recipes without torch: `train` imports it on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iterant.training.recipe import RECIPES, Recipe, recipe

if TYPE_CHECKING:
    from iterant.training.run import train as train

__all__ = ["RECIPES", "Recipe", "recipe", "train"]


def __getattr__(name: str) -> object:
    """Load `train`, which needs torch, on first use."""
    if name != "train":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from iterant.training.run import train

    globals()[name] = train
    return train
