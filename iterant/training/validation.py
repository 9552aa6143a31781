"""How a run is doing: validation, which chooses the best weights, and a watch on larger problems.

In-distribution accuracy says nothing about extrapolation, so a run also looks at somewhat larger
problems at several times the iterations, with labels (accuracy) and without (whether features
settle). That is monitoring: it is recorded, and chooses a checkpoint only where a recipe says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from iterant.errors import TaskError
from iterant.evaluation import evaluate_batch
from iterant.formatting import size_text
from iterant.nets.protocol import Net, depth_of
from iterant.tasks.protocol import Batch, Size, Task
from iterant.training.recipe import Recipe

_TWICE = 1000
"""How many validation problems are run for twice the iterations, at most."""

Figures = dict[str, float]


@dataclass
class Validator:
    """Judges a network in training."""

    task: Task
    recipe: Recipe
    held_out: Batch
    larger: dict[str, Batch] = field(default_factory=dict)

    def validate(self, net: Net) -> Figures:
        """Accuracy on held-out problems after m iterations."""
        if len(self.held_out) == 0:
            return {}
        (accuracy,), _ = self._judged(net, self.held_out, self.recipe.iterations)
        return {"validation": accuracy}

    def watch(self, net: Net) -> Figures:
        """What is only monitored, as it costs more than validation: longer runs, larger problems.

        Accuracy after 2 m iterations on some held-out problems, after 2 m and 4 m on larger ones,
        and whether features converge there. Of a network of fixed depth: accuracy on larger ones.
        """
        m, figures = self.recipe.iterations, {}
        if len(self.held_out) and depth_of(net) is None:
            (twice,), _ = self._judged(net, self.held_out[:_TWICE], 2 * m)
            figures["validation at 2m"] = twice
        for size in self.task.spec.watch_sizes:
            name, batch = self._larger(size)
            if batch is None:
                continue
            if depth_of(net) is not None:  # it cannot think longer, nor come to rest
                figures[f"{name} at m"] = self._judged(net, batch, m)[0][0]
                continue
            accuracies, change = self._judged(net, batch, 2 * m, 4 * m)
            figures[f"{name} at 2m"] = accuracies[0]
            figures[f"{name} at 4m"] = accuracies[-1]
            figures[f"{name} change"] = change
        return figures

    def _judged(self, net: Net, batch: Batch, *marks: int) -> tuple[list[float], float]:
        """Accuracy after so many iterations, and how much the last one changed the features."""
        curve = evaluate_batch(net, self.task, batch, steps=marks[-1], at=marks, cut=True)
        return curve.accuracy.tolist(), curve.change

    def _larger(self, size: Size) -> tuple[str, Batch | None]:
        """Problems to watch, made once; a set too small for them is not watched."""
        name = size_text(size)
        if name not in self.larger:
            try:
                self.larger[name] = self.task.sample(
                    self.recipe.watch_count, size=size, seed=self.recipe.data_seed + 1
                )
            except TaskError:
                return name, None
        return name, self.larger[name]


def by_validation(fresh: Figures, best: Mapping[str, Any]) -> Figures | None:
    """The figure of better weights: those that validate best, the earlier ones on a tie.

    The earlier ones, as the authors do: training on past the fit lets features grow.
    """
    accuracy = fresh.get("validation")
    if accuracy is None or accuracy <= best.get("validation", -1.0):
        return None
    return {"validation": accuracy}


def by_watching(fresh: Figures, best: Mapping[str, Any]) -> Figures | None:
    """The figures of better weights: those best on larger problems, the later ones on a tie.

    The later ones, for this is for recipes that let the rate fall and hold features back. The
    larger problems are then no test any more: their size must be reported as validated on.
    """
    late = [value for name, value in fresh.items() if name.endswith((" at 4m", " at m"))]
    if not late or (watched := sum(late) / len(late)) < best.get("watched", -1.0):
        return None
    validated = {"validation": fresh["validation"]} if "validation" in fresh else {}
    return {"watched": watched, **validated}


def finite(net: torch.nn.Module) -> bool:
    """Whether every parameter is a number."""
    return all(bool(torch.isfinite(weight).all()) for weight in net.parameters())
