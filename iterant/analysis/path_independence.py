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
    check_two,
    gaussian,
    no_tick,
    parts,
    swapped,
    text,
)
from iterant.draw.plots import Plot, Trace
from iterant.engine import State, begin, last, think
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
        varies = len(worst) > 1 and bool((both.std(dim=1) > 1e-9).all())
        return {
            "cosine of solved": _mean(worst[right]),
            "cosine of unsolved": _mean(worst[~right]),
            "correlation": float(torch.corrcoef(both)[0, 1]) if varies else float("nan"),
        }

    def figures(self) -> dict[str, Any]:
        """All numbers, as JSON."""
        return {
            "problems": len(self.worst),
            "broken": self.broken,
            "accuracy from own start": _mean(self.right["own"]),
            "starts": {
                start: {
                    "mean cosine": _mean(cosine),
                    "same answer": _mean(self.agreed[start]),
                    "accuracy": _mean(self.right[start]),
                    "cosine": cosine.tolist(),
                }
                for start, cosine in self.cosine.items()
            },
            "relation to accuracy": self.relation,
        }

    def headline(self) -> dict[str, str]:
        """The main numbers as cells of a table."""
        same = torch.stack(list(self.agreed.values())).all(dim=0)
        return {
            **{f"cosine from {s}": text(_mean(c), ".3f") for s, c in self.cosine.items()},
            "same answer from all": f"{100 * _mean(same):.1f} %",
            "solved": f"{100 * _mean(self.right['own']):.1f} %",
            **{name: text(value, ".3f") for name, value in self.relation.items()},
            "NaN": str(self.broken),
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """The worst cosine of every problem, sorted."""
        ordered = self.worst[~self.worst.isnan()].sort().values.tolist()
        shares = [100 * place / len(ordered) for place in range(1, len(ordered) + 1)]
        plot = Plot("path independence", "problems, worst first (%)",
                    "cosine of the ends, from the worst start", shade=False)  # fmt: skip
        return [(plot, Trace(shares, ordered))]


@torch.no_grad()
def independence(
    net: Net, task: Task, batch: Batch, *, steps: int, seed: int = 0, tick: Tick = no_tick
) -> Independence:
    """Iterate ``steps`` times from every start and compare the final features."""
    check_two(batch)
    columns: dict[str, dict[str, list[Tensor]]] = {"cosine": {}, "agreed": {}, "right": {}}
    fast, batches = fused(net), list(parts(batch, least=2))
    done, total = 0, len(batches) * (1 + len(STARTS))
    for place, part in enumerate(batches):
        x = like(net, part.inputs)
        start = begin(fast, x).features
        other = swapped(len(part), seed, f"start {place}").to(start.device)
        starts = {
            "own": start,
            "zeros": torch.zeros_like(start),
            "noise": gaussian(start, seed, f"start {place}"),
            "another problem": start[other],
        }
        own = None
        for name, features in starts.items():
            end = last(think(fast, x, steps=steps, state=State(features, 0)))
            solved = task.solved(end.prediction.cpu(), part) & is_finite(end.features).cpu()
            columns["right"].setdefault(name, []).append(solved)
            if own is None:
                own = end
            else:
                cosine = cosines(own.features, end.features)
                same = (end.prediction == own.prediction).flatten(1).all(dim=1) & ~cosine.isnan()
                columns["cosine"].setdefault(name, []).append(cosine.cpu())
                columns["agreed"].setdefault(name, []).append(same.cpu())
            done += 1
            tick(done, total)
    return Independence(**{
        field: {name: torch.cat(column) for name, column in by_start.items()}
        for field, by_start in columns.items()
    })  # fmt: skip


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
    return float(values.double().nanmean())
