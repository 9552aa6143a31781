"""Beginning a new run where another one stands.

    >>> run = train("chess", recipe="best", start="runs/c0", out="runs/c0-end", epochs=2, hold=0.0)

A run whose rate is held can be gone on with for as long as there is time; its weights are at their
best only after the rate has fallen. So the fall is a run of its own, begun at the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from iterant.errors import RunError
from iterant.runs import RunFolder
from iterant.training.learner import Learner
from iterant.training.pool import ReplayPool


def take_over(learner: Learner, path: Path) -> None:
    """Give a learner the last weights, moments, average and pool of a run; it begins at update 0.

    A pool of another size than the learner's is left out, and begins anew; so does an average that
    the run did not keep.
    """
    folder = RunFolder.open(path)
    if not folder.has("last"):
        raise RunError(f"{path} has no checkpoint yet; train it first, or begin without start")
    theirs, own = folder.config.get("recipe", {}).get("optimizer"), learner.recipe.optimizer
    if theirs != own:
        raise RunError(
            f"{path} was trained by {theirs}, and its moments mean nothing to {own}; "
            f"--optimizer {theirs}"
        )
    tensors, _ = folder.load("last")
    slots = learner.objective.slots if isinstance(learner.objective, ReplayPool) else 0
    if "pool.filled" in tensors and len(tensors["pool.filled"]) != slots:
        tensors = {name: held for name, held in tensors.items() if not name.startswith("pool.")}
    if not any(name.startswith("average.") for name in tensors):
        tensors = average_anew(tensors)
    try:
        learner.restore(tensors, 0)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        said = str(error).strip().splitlines()
        # torch announces what is wrong in a line of its own.
        first = said[1].strip() if said[0].endswith(":") and said[1:] else said[0]
        raise RunError(
            f"the last checkpoint of {path} does not fit this recipe ({first}); a branch needs "
            "the network of the run that it begins with"
        ) from error


def average_anew(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A checkpoint whose average begins at its weights."""
    begun = {f"average.{name.removeprefix('net.')}": held for name, held in tensors.items()
             if name.startswith("net.")}  # fmt: skip
    return {**tensors, **begun}
