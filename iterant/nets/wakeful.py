"""A local rule that thinks only where something changes, as any other network does for the engine.

    >>> answer = solve(quickest(net, batch.inputs), batch.inputs)

It thinks about one problem, from the start on and without being meddled with: what is done to its
features between two iterations would go unnoticed, so that is refused.

Shapes: W width, *Q space in squares, *S in pixels.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from iterant.errors import NetError
from iterant.nets.active import TOLERANCE, Active
from iterant.nets.local_rule import LocalRule
from iterant.nets.protocol import Net


class Wakeful:
    """The same answers as the rule itself, up to the tolerance, for a fraction of the work."""

    depth: int | None = None

    def __init__(self, net: LocalRule, tolerance: float = TOLERANCE) -> None:
        """The rule, and the change that wakes nobody."""
        self.net, self.readout, self.tolerance = net, net.readout, tolerance
        self._thinking: Active | None = None
        self._handed: Tensor | None = None

    def check(self, inputs: Tensor) -> None:
        """Raise NetError where the inputs cannot be read by this network."""
        self.net.check(inputs)
        if len(inputs) != 1:
            raise NetError(f"one problem at a time is thought about here, got {len(inputs)}")

    def read(self, inputs: Tensor) -> Tensor | None:
        """Nothing more: the problem was read at the start."""
        return None

    def start(self, inputs: Tensor) -> Tensor:
        """Begin anew; the features are those of the rule, (1, W, *Q)."""
        self._thinking = Active(self.net, inputs, self.tolerance)
        self._handed = self.net.start(inputs)
        return self._handed

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration of the squares that are awake."""
        if self._thinking is None or features is not self._handed:
            raise NetError("the features are not those that were given out; use the rule itself")
        self._thinking.go_on(1)
        self._handed = self._thinking.features
        return self._handed

    def answer(self, features: Tensor) -> Tensor:
        """Logits (1, classes, *S)."""
        return self.net.answer(features)


def quickest(net: Net, inputs: Tensor) -> Net:
    """The network itself, or what computes the same about these inputs with less work."""
    rule: Any = net
    alone_on_a_cpu = len(inputs) == 1 and inputs.device.type == "cpu"
    if type(rule) is LocalRule and rule.config.masked and alone_on_a_cpu:
        return Wakeful(rule)
    return net
