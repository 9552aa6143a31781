"""Recovery time against the index of the flipped bit: the paper's picture for prefix sums.

    >>> found = by_index(recovery, length=48)
    >>> found.mean_by_index[0], found.recovered_by_index[0]

Shapes: N strings, L bits; sample n * L + i is string n with bit i flipped.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from iterant.analysis.recovery import Recovery
from iterant.draw.lines import Plot, Trace


@dataclass(frozen=True)
class Flips(Recovery):
    """What became of every flipped string, and how that depends on where it was flipped."""

    length: int = 1
    """L"""

    @property
    def mean_by_index(self) -> Tensor:
        """(L,) float64: mean iterations to solution of those recovered; NaN where none is."""
        since = self.since.view(-1, self.length).double()
        return torch.where(since > 0, since, torch.nan).nanmean(dim=0)

    @property
    def recovered_by_index(self) -> Tensor:
        """(L,) float64: the share recovered."""
        return (self.since.view(-1, self.length) > 0).double().mean(dim=0)

    def figures(self) -> dict[str, Any]:
        """Everything, as JSON holds it."""
        return {
            **super().figures(),
            "by index": {
                "mean iterations to solution": self.mean_by_index.tolist(),
                "recovered": self.recovered_by_index.tolist(),
            },
        }

    def plots(self) -> list[tuple[Plot, Trace]]:
        """Recovery time against index, then accuracy by iteration."""
        plot = Plot(
            f"{self.what} recovery time",
            x_label="index of the flipped bit",
            y_label="mean iterations to solution",
            regime_axis="",
        )
        trace = Trace(list(range(self.length)), self.mean_by_index.tolist())
        return [(plot, trace), *super().plots()]


def by_index(recovery: Recovery, *, length: int) -> Flips:
    """The same recovery, looked at by index."""
    known = {field.name: getattr(recovery, field.name) for field in fields(Recovery)}
    return Flips(**known, length=length)
