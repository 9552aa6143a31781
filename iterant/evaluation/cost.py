"""What thinking costs in floating-point operations, counted once on a single problem.

>>> operations(net, batch.inputs[:1]).step        # of one iteration

Products and sums of convolutions and matrix products count, each as one; what is done number by
number (ReLU, additions) does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from iterant.engine import think
from iterant.halting import Rule
from iterant.nets.protocol import Net

Made = TypeVar("Made")


@dataclass(frozen=True)
class Operations:
    """Floating-point operations of each part, for one problem."""

    begin: int
    """Reading the problem and making the first features"""
    step: int
    """One iteration"""
    answer: int
    """Reading out the answer"""

    def of(self, iterations: Tensor, looks: bool = False) -> Tensor:
        """(…) float64: so many iterations and the answer; ``looks``: after each of them."""
        answers = iterations.double() if looks else torch.ones_like(iterations).double()
        return self.begin + iterations.double() * self.step + answers * self.answer


@torch.no_grad()
def operations(net: Net, inputs: Tensor) -> Operations:
    """Count the parts of a network on one problem, (1, C, *S) as the network takes it.

    An iteration is counted once, at the first: those of feed-forward networks are all alike.
    """
    memory, read = _counted(lambda: net.read(inputs))
    features, start = _counted(lambda: net.start(inputs))
    features, step = _counted(lambda: net.step(features, memory, 0))
    _, answer = _counted(lambda: net.answer(features))
    return Operations(read + start, step, answer)


@torch.no_grad()
def looks(rule: Rule, net: Net, inputs: Tensor) -> bool:
    """Whether the rule has the answer read out at every iteration, found on one problem."""
    thought = next(iter(think(net, inputs, steps=1)))
    rule.watch().see(thought)
    return "logits" in vars(thought)


def _counted(part: Callable[[], Made]) -> tuple[Made, int]:
    with FlopCounterMode(display=False) as counter:
        made = part()
    return made, int(counter.get_total_flops())
