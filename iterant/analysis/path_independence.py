"""Path independence: whether iterating ends at the same features from every start.

    >>> paths = independence(net, task, batch, steps=300, seed=0)
    >>> paths.cosine["zeros"].mean(), paths.relation

Each problem starts from the network's own features, from zeros, from Gaussian noise and from the
initial features of another problem. The final features are compared with those from the
network's own start by their cosine.

Shapes: N problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.interventions import (
    Tick,
    gaussian,
    is_correct,
    no_tick,
    parts,
    swapped,
)
from iterant.draw.plots import Plot, Trace
from iterant.engine import State, begin, last, think
from iterant.errors import UsageError
from iterant.evaluation import is_finite, like
from iterant.nets.fast import fused
from iterant.nets.protocol import Net
from iterant.tasks.protocol import Batch, Task

STARTS = ("zeros", "noise", "another problem")
"""The starts besides the network's own."""


@dataclass(frozen=True)
class Independence:
    """How well the final features agree, by start."""

    cosine: Mapping[str, Tensor]
    """(N,) float64: cosine to the features from the own start; NaN for non-finite features"""
    agreed: Mapping[str, Tensor]
    """(N,) bool: the same decoded answer as from the own start, and finite features"""
    right: Mapping[str, Tensor]
    """(N,) bool: the correct answer; "own" is the network's own start"""

    @property
    def worst(self) -> Tensor:
        """(N,) float64: the smallest cosine over all starts; NaN if any is."""
        return torch.stack(list(self.cosine.values())).amin(dim=0)

    @property
    def broken(self) -> int:
        """The number of problems with NaN or infinite features, which are left out of means."""
        return int(self.worst.isnan().sum())

    @property
    def relation(self) -> dict[str, float]:
        """The worst cosine of solved and unsolved problems, and its correlation with solving.

        NaN if there is nothing to compare: all solved, none solved, or no variance.
        """
        finite = ~self.worst.isnan()
        worst, right = self.worst[finite], self.right["own"][finite]
        both = torch.stack([worst, right.double()])
        spread = len(worst) > 1 and bool((both.std(dim=1) > 1e-9).all())
        return {
            "cosine of solved": _mean(worst[right]),
            "cosine of unsolved": _mean(worst[~right]),
            "correlation": float(torch.corrcoef(both)[0, 1]) if spread else float("nan"),
        }

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
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
        """The main numbers as cells of a table."""
        same = torch.stack(list(self.agreed.values())).all(dim=0)
        return {
            **{f"cosine from {s}": _number(_mean(self.cosine[s])) for s in self.cosine},
            "same answer from all": f"{100 * _mean(same):.1f} %",
            "solved": f"{100 * _mean(self.right['own']):.1f} %",
            **{name: _number(value) for name, value in self.relation.items()},
            "NaN": str(self.broken),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """The worst cosine of every problem, sorted."""
        ordered = self.worst[~self.worst.isnan()].sort().values
        shares = [100 * (place + 1) / max(1, len(ordered)) for place in range(len(ordered))]
        plot = Plot(
            "path independence",
            x_label="problems, worst first (%)",
            y_label="cosine of the ends, from the worst start",
            shade=False,
        )
        return [(plot, Trace(shares, ordered.tolist()))]


@torch.no_grad()
def independence(
    net: Net, task: Task, batch: Batch, *, steps: int, seed: int = 0, tick: Tick = no_tick
) -> Independence:
    """Iterate ``steps`` times from every start and compare the final features."""
    if len(batch) < 2:
        raise UsageError(
            "path independence starts problems from one another's features and needs at least 2, "
            f"got {len(batch)} (--count 2)"
        )
    cosine: dict[str, list[Tensor]] = {name: [] for name in STARTS}
    agreed: dict[str, list[Tensor]] = {name: [] for name in STARTS}
    right: dict[str, list[Tensor]] = {name: [] for name in ("own", *STARTS)}
    fast, batches = fused(net), list(parts(batch, least=2))
    total = len(batches) * (1 + len(STARTS))
    for place, part in enumerate(batches):
        x = like(net, part.inputs)
        start = begin(fast, x).features
        starts = {
            "zeros": torch.zeros_like(start),
            "noise": gaussian(start, seed, f"start {place}"),
            "another problem": start[swapped(len(part), seed, f"start {place}").to(start.device)],
        }
        own = last(think(fast, x, steps=steps))
        right["own"].append(is_correct(task, own, part))
        tick(place * (1 + len(STARTS)) + 1, total)
        for number, (name, features) in enumerate(starts.items()):
            end = last(think(fast, x, steps=steps, state=State(features, 0)))
            angle = cosines(own.features, end.features)
            same = (end.prediction == own.prediction).flatten(1).all(dim=1) & ~angle.isnan()
            cosine[name].append(angle.cpu())
            agreed[name].append(same.cpu())
            right[name].append(is_correct(task, end, part))
            tick(place * (1 + len(STARTS)) + number + 2, total)

    def joined(columns: dict[str, list[Tensor]]) -> dict[str, Tensor]:
        return {name: torch.cat(column) for name, column in columns.items()}

    return Independence(joined(cosine), joined(agreed), joined(right))


def cosines(one: Tensor, other: Tensor) -> Tensor:
    """(N,) float64: cosine per sample; 1 for two zero vectors, NaN for non-finite features."""
    a, b = one.flatten(1).double(), other.flatten(1).double()
    norm_a, norm_b = (torch.linalg.vector_norm(side, dim=1, keepdim=True) for side in (a, b))
    # Normalised first, so that large features do not overflow in the product.
    unit_a, unit_b = a / norm_a.clamp_min(1e-300), b / norm_b.clamp_min(1e-300)
    cosine: Tensor = (unit_a * unit_b).sum(dim=1).clamp(-1, 1)
    cosine[((norm_a == 0) & (norm_b == 0)).squeeze(1)] = 1.0
    return cosine.masked_fill(~(is_finite(one) & is_finite(other)), float("nan"))


def _mean(values: Tensor) -> float:
    """The mean without NaN; NaN if nothing is left."""
    values = values.double()
    return float(values[~values.isnan()].mean())


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"
