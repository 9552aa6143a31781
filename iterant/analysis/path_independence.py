"""Path independence: whether thinking ends at the same place wherever it began.

    >>> found = independence(net, task, batch, steps=300, seed=0)
    >>> found.cosine["zeros"].mean(), found.relation

Each problem is thought about from the network's own start, from zeros, from Gaussian noise and
from the start of another problem; the features in the end are compared with those that came from
its own start, by their cosine.

Shapes: N problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.recovery import Tick, gaussian, no_tick, others, parts
from iterant.draw.plots import Plot, Trace
from iterant.engine import State, Thought, begin, last, think
from iterant.errors import UsageError
from iterant.evaluation.evaluator import is_finite, like
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Task

STARTS = ("zeros", "noise", "another problem")
"""Where thinking begins besides the network's own start."""


@dataclass(frozen=True)
class Independence:
    """How well the ends agree, a row a problem, by where thinking began."""

    cosine: Mapping[str, Tensor]
    """(N,) float64: cosine to the features from the own start; NaN where features are broken"""
    agreed: Mapping[str, Tensor]
    """(N,) bool: the same decoded answer as from the own start; broken features agree in none"""
    right: Mapping[str, Tensor]
    """(N,) bool: the right answer; under "own" that from the network's own start"""

    @property
    def worst(self) -> Tensor:
        """(N,) float64: the least cosine over all starts; NaN where any is."""
        return torch.stack(list(self.cosine.values())).amin(dim=0)

    @property
    def broken(self) -> int:
        """Problems for which some features were NaN or infinite; they are in no mean."""
        return int(self.worst.isnan().sum())

    @property
    def relation(self) -> dict[str, float]:
        """The worst cosine of solved and unsolved problems, and its correlation with solving.

        NaN where there is nothing to compare: all solved, none solved, or no spread.
        """
        sound = ~self.worst.isnan()
        worst, right = self.worst[sound], self.right["own"][sound]
        both = torch.stack([worst, right.double()])
        spread = len(worst) > 1 and bool((both.std(dim=1) > 1e-9).all())
        return {
            "cosine of solved": _mean(worst[right]),
            "cosine of unsolved": _mean(worst[~right]),
            "correlation": float(torch.corrcoef(both)[0, 1]) if spread else float("nan"),
        }

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return {
            "problems": len(self.worst),
            "broken": self.broken,
            "accuracy from own start": _mean(self.right["own"]),
            "starts": {
                start: {
                    "mean cosine": _mean(self.cosine[start]),
                    "same answer": _mean(self.agreed[start]),
                    "accuracy": _mean(self.right[start]),
                    "cosine": self.cosine[start].tolist(),
                }
                for start in self.cosine
            },
            "relation to accuracy": self.relation,
        }

    def headline(self) -> dict[str, str]:
        """The same in a few words, a cell each."""
        said = {f"cosine from {start}": _shown(_mean(self.cosine[start])) for start in self.cosine}
        same = torch.stack(list(self.agreed.values())).all(dim=0)
        return {
            **said,
            "same answer from all": f"{100 * _mean(same):.1f} %",
            "solved": f"{100 * _mean(self.right['own']):.1f} %",
            **{name: _shown(value) for name, value in self.relation.items()},
            "NaN": str(self.broken),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """The worst cosine of every problem, in order."""
        ordered = self.worst[~self.worst.isnan()].sort().values
        shares = [100 * (place + 1) / max(1, len(ordered)) for place in range(len(ordered))]
        plot = Plot(
            "path independence",
            x_label="problems, worst first (%)",
            y_label="cosine of the ends, from the worst start",
            regime_axis="",
        )
        return [(plot, Trace(shares, ordered.tolist()))]


@torch.no_grad()
def independence(
    net: Net, task: Task, batch: Batch, *, steps: int, seed: int = 0, tick: Tick = no_tick
) -> Independence:
    """Think ``steps`` iterations from every start, and compare where that led."""
    if len(batch) < 2:
        raise UsageError(
            "path independence starts problems from one another's features and needs at least 2, "
            f"got {len(batch)} (--count 2)"
        )
    found: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {name: [] for name in STARTS}
    own_right = []
    pieces, fast = list(parts(batch, least=2)), fused(net)
    total = len(pieces) * (1 + len(STARTS))
    for place, part in enumerate(pieces):
        given = like(net, part.inputs)
        start = begin(fast, given).features
        starts = {
            "zeros": torch.zeros_like(start),
            "noise": gaussian(start, seed, f"start {place}"),
            "another problem": start[others(len(part), seed, f"start {place}").to(start.device)],
        }
        own = last(think(fast, given, steps=steps))
        own_right.append(_right(task, own, part))
        tick(place * (1 + len(STARTS)) + 1, total)
        for number, (name, features) in enumerate(starts.items()):
            end = last(think(fast, given, steps=steps, state=State(features, 0)))
            cosine = cosines(own.features, end.features)
            same = (end.prediction == own.prediction).flatten(1).all(dim=1) & ~cosine.isnan()
            found[name].append((cosine.cpu(), same.cpu(), _right(task, end, part)))
            tick(place * (1 + len(STARTS)) + number + 2, total)
    joined = {
        name: [torch.cat(columns) for columns in zip(*rows, strict=True)]
        for name, rows in found.items()
    }
    right = {name: columns[2] for name, columns in joined.items()}
    return Independence(
        cosine={name: columns[0] for name, columns in joined.items()},
        agreed={name: columns[1] for name, columns in joined.items()},
        right={"own": torch.cat(own_right), **right},
    )


def cosines(one: Tensor, other: Tensor) -> Tensor:
    """(B,) float64: cosine a sample; two that are all zero agree, NaN where any is broken."""
    a, b = one.flatten(1).double(), other.flatten(1).double()
    lengths = torch.stack([torch.linalg.vector_norm(side, dim=1) for side in (a, b)])
    # Divided first, so that large features do not overflow in the product.
    unit_a, unit_b = (a / _at_least(lengths[0]), b / _at_least(lengths[1]))
    cosine = (unit_a * unit_b).sum(dim=1).clamp(-1, 1)
    cosine[(lengths == 0).all(dim=0)] = 1.0
    return cosine.masked_fill(~(is_finite(one) & is_finite(other)), float("nan"))


def _at_least(lengths: Tensor) -> Tensor:
    """(B, 1): lengths to divide by."""
    return lengths.clamp_min(1e-300).unsqueeze(1)


def _right(task: Task, thought: Thought, part: Batch) -> Tensor:
    return task.solved(thought.prediction.cpu(), part) & is_finite(thought.features).cpu()


def _mean(values: Tensor) -> float:
    """The mean of those that are numbers."""
    sound = values.double()[~values.double().isnan()]
    return float(sound.mean()) if len(sound) else float("nan")


def _shown(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"
