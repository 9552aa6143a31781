"""How a run is doing: validation, which chooses the best weights, and a watch on larger problems.

In-distribution accuracy says nothing about extrapolation, so a run also looks at somewhat larger
problems at several times the iterations, with labels (accuracy) and without (whether features
settle). That is monitoring: it is recorded, and never chooses a checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from iterant.evaluation import judge
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Size, Task
from iterant.training.recipe import Recipe

_TWICE = 1000
"""How many validation problems are thought about for twice the iterations."""

Figures = dict[str, float]


@dataclass
class Watcher:
    """Judges a network in training."""

    task: Task
    recipe: Recipe
    held_out: Batch
    larger: dict[str, Batch] = field(default_factory=dict)

    def validate(self, net: Net) -> Figures:
        """Accuracy on held-out problems after m iterations, and after 2 m on some of them."""
        if len(self.held_out) == 0:
            return {}
        m = self.recipe.iterations
        at_m = judge(net, self.task, self.held_out, steps=m, at=[m], cut=True)
        figures = {"validation": float(at_m.accuracy[-1])}
        some = self.held_out[:_TWICE]
        twice = judge(net, self.task, some, steps=2 * m, at=[2 * m], cut=True)
        figures["validation at 2m"] = float(twice.accuracy[-1])
        return figures

    def watch(self, net: Net) -> Figures:
        """Accuracy after 2 m and 4 m iterations on larger problems, and whether features rest."""
        m, figures = self.recipe.iterations, {}
        for size in self.task.spec.watch_sizes:
            name, batch = self._larger(size)
            if batch is None:
                continue
            curve = judge(net, self.task, batch, steps=4 * m, at=[2 * m, 4 * m], cut=True)
            figures[f"{name} at 2m"] = float(curve.accuracy[0])
            figures[f"{name} at 4m"] = float(curve.accuracy[-1])
            figures[f"{name} change"] = curve.change
        return figures

    def _larger(self, size: Size) -> tuple[str, Batch | None]:
        """Problems to watch, made once; a set too small for them is not watched."""
        name = f"{size[0]}:{size[1]}" if isinstance(size, tuple) else str(size)
        if name not in self.larger:
            try:
                self.larger[name] = self.task.sample(
                    self.recipe.watch_count, size=size, seed=self.recipe.data_seed + 1
                )
            except ValueError:
                return name, None
        return name, self.larger[name]


def finite(net: torch.nn.Module) -> bool:
    """Whether every parameter is a number."""
    return all(bool(torch.isfinite(weight).all()) for weight in net.parameters())
