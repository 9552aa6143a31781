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
    crew.py        several processes; stopping.py: clock, signals, NaN
    progress.py    what a run tells
"""

from iterant.training.recipe import Recipe
from iterant.training.recipes import RECIPES, recipe
from iterant.training.start import train

__all__ = ["RECIPES", "Recipe", "recipe", "train"]
