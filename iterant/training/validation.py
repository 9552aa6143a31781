"""Validation, which chooses the best checkpoint, and monitoring on larger problems.

In-distribution accuracy says nothing about extrapolation, so a run also measures accuracy and the
change of features on somewhat larger problems at several times the iterations. That is monitoring:
it is recorded, and chooses a checkpoint only where a recipe says so.
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
    """Evaluates a network in training."""

    task: Task
    recipe: Recipe
    held_out: Batch
    larger: dict[str, Batch] = field(default_factory=dict)

    def validate(self, net: Net) -> Figures:
        """Accuracy on held-out problems after m iterations."""
        if len(self.held_out) == 0:
            return {}
        (accuracy,), _ = self._accuracy(net, self.held_out, self.recipe.iterations)
        return {"validation": accuracy}

    def monitor(self, net: Net) -> Figures:
        """Accuracy and change of features in longer runs and on larger problems.

        Accuracy after 2 m iterations on some held-out problems, after 2 m and 4 m on larger ones,
        and whether features converge there. Of a network of fixed depth: accuracy on larger ones.
        """
        m, figures = self.recipe.iterations, {}
        if len(self.held_out) and depth_of(net) is None:
            (twice,), _ = self._accuracy(net, self.held_out[:_TWICE], 2 * m)
            figures["validation at 2m"] = twice
        for size in self.task.spec.watch_sizes:
            name, batch = self._larger(size)
            if batch is None:
                continue
            if depth_of(net) is not None:  # it has no further iterations
                figures[f"{name} at m"] = self._accuracy(net, batch, m)[0][0]
                continue
            accuracies, change = self._accuracy(net, batch, 2 * m, 4 * m)
            figures[f"{name} at 2m"] = accuracies[0]
            figures[f"{name} at 4m"] = accuracies[-1]
            figures[f"{name} change"] = change
        return figures

    def _accuracy(self, net: Net, batch: Batch, *marks: int) -> tuple[list[float], float]:
        """Accuracy after each number of iterations, and the features' last relative change."""
        curve = evaluate_batch(net, self.task, batch, steps=marks[-1], at=marks, cut=True)
        return curve.accuracy.tolist(), curve.change

    def _larger(self, size: Size) -> tuple[str, Batch | None]:
        """Larger problems, sampled once; None where the data set is too small for them."""
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
    """Strictly better validation accuracy, so that the first of equals is the best checkpoint.

    This is the authors' rule.
    """
    accuracy = fresh.get("validation")
    if accuracy is None or accuracy <= best.get("validation", -1.0):
        return None
    return {"validation": accuracy}


def by_watching(fresh: Figures, best: Mapping[str, Any]) -> Figures | None:
    """Mean accuracy on the larger problems, the later checkpoint on a tie.

    Their size has then been validated on, and must be reported so.
    """
    late = [value for name, value in fresh.items() if name.endswith((" at 4m", " at m"))]
    if not late or (watched := sum(late) / len(late)) < best.get("watched", -1.0):
        return None
    validated = {"validation": fresh["validation"]} if "validation" in fresh else {}
    return {"watched": watched, **validated}


def finite(net: torch.nn.Module) -> bool:
    """Whether every parameter is finite."""
    return all(bool(torch.isfinite(weight).all()) for weight in net.parameters())
