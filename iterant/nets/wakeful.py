"""A local rule that thinks only where something changes, as any other network does for the engine.

    >>> answer = solve(quickest(net, batch.inputs), batch.inputs)

It thinks about one problem, from the start on and without being meddled with: what is done to its
features between two iterations would go unnoticed, so that is refused.

Its features are those of the open squares alone, which is a small part of what the whole image
takes to copy and compare at every iteration.

Shapes: W width, N open squares, *S space in pixels.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from iterant.errors import NetError
from iterant.nets.active import TOLERANCE, Active
from iterant.nets.local_rule import LocalRule
from iterant.nets.protocol import Net
from iterant.nets.telling import attentive


class Wakeful:
    """The same answers as the rule itself, up to the tolerance, for a fraction of the work."""

    depth: int | None = None

    def __init__(
        self, net: LocalRule, tolerance: float = TOLERANCE, *, lasting: bool = True
    ) -> None:
        """The rule, and the change that wakes nobody.

        Unless they are ``lasting``, the features of an iteration are written over by the next:
        copying all squares takes longer than thinking about those that are awake.
        """
        self.net, self.readout, self.tolerance = net, net.readout, tolerance
        self.lasting = lasting
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
        """Begin anew, (1, N, W): every square holds nothing."""
        self._thinking = attentive(self.net, inputs, self.tolerance)
        return self._hand_out(self._thinking)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration of the squares that are awake."""
        if self._thinking is None or features is not self._handed:
            raise NetError("the features are not those that were given out; use the rule itself")
        self._thinking.go_on(1)
        return self._hand_out(self._thinking)

    @property
    def moved(self) -> float | None:
        """The largest change of a number in the last iteration, known without comparing."""
        return None if self._thinking is None else self._thinking.moved

    def _hand_out(self, thinking: Active) -> Tensor:
        held = thinking.held[None]
        self._handed = held.clone() if self.lasting else held
        return self._handed

    def answer(self, features: Tensor) -> Tensor:
        """Logits (1, classes, *S) of features that were given out since the last start."""
        if self._thinking is None:
            raise NetError("nothing was thought about yet; start with a problem")
        if not self.lasting and features is not self._handed:
            raise NetError("the features of an earlier iteration are written over; ask in time")
        return self.net.answer(self._thinking.spread(features[0]))


def quickest(net: Net, inputs: Tensor) -> Net:
    """The network itself, or what computes the same about these inputs with less work."""
    rule: Any = net
    alone_on_a_cpu = len(inputs) == 1 and inputs.device.type == "cpu"
    if type(rule) is LocalRule and rule.config.masked and alone_on_a_cpu:
        return Wakeful(rule, lasting=False)
    return net
