"""How networks learn: recipes, objectives, the loop, checkpoints, processes.

moments.py     chance as a function of seed and update
hands.py       advance and learn: the two verbs of every objective
objectives.py  the paper's progressive loss, and what it is compared with
pool.py        the replay pool
captured.py    the verbs as CUDA graphs
recipe.py      what decides a run; recipes.py: the paper's and the quick ones
parts.py       from a recipe's words to networks, optimisers and rates
learner.py     one update after another
problems.py    the training set; watching.py: validation and monitoring
loop.py        a run from start to end; start.py: starting and resuming one
seeds.py       several seeds at once; plan.py: what a recipe comes to
crew.py        several processes; stopping.py: clock, signals, NaN
progress.py    what a run tells; events.py: to TensorBoard

Recipes are light; `train` loads torch when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iterant.training.recipe import Recipe
from iterant.training.recipes import RECIPES, recipe

if TYPE_CHECKING:
    from iterant.training.multi_seed import train_seeds as train_seeds
    from iterant.training.run import train as train

__all__ = ["RECIPES", "Recipe", "recipe", "train", "train_seeds"]


def __getattr__(name: str) -> object:
    """Load what needs torch on first use: the command line reads recipes without it."""
    import importlib

    where = {"train": "run", "train_seeds": "multi_seed"}
    if name not in where:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{where[name]}"), name)
    globals()[name] = value
    return value
