"""Floating-point operations of a network, counted once on a single problem.

>>> operations(net, batch.inputs[:1]).step        # of one iteration

Multiplications and additions of convolutions and matrix products count, one each; elementwise
operations (ReLU, sums) do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from iterant.engine import think
from iterant.halting import Rule
from iterant.nets.protocol import Net


@dataclass(frozen=True)
class Operations:
    """Floating-point operations of each part, for one problem."""

    begin: int
    """Reading the problem and computing the first features"""
    step: int
    """One iteration"""
    answer: int
    """Decoding the answer"""

    def of(self, iterations: Tensor, looks: bool = False) -> Tensor:
        """(…) float64: operations of so many iterations; ``looks``: the answer decoded at each."""
        answers = iterations.double() if looks else torch.ones_like(iterations).double()
        return self.begin + iterations.double() * self.step + answers * self.answer


@torch.no_grad()
def operations(net: Net, inputs: Tensor) -> Operations:
    """Count the parts of a network on one problem (1, C, *S).

    Only the first iteration is counted: those of feed-forward networks cost the same.
    """
    with FlopCounterMode(display=False) as counter:
        memory, features = net.read(inputs), net.start(inputs)
        begin = int(counter.get_total_flops())
        features = net.step(features, memory, 0)
        step = int(counter.get_total_flops()) - begin
        net.answer(features)
        answer = int(counter.get_total_flops()) - begin - step
    return Operations(begin, step, answer)


@torch.no_grad()
def reads_every_answer(rule: Rule, net: Net, inputs: Tensor) -> bool:
    """Whether the rule decodes the answer at every iteration, tried on one problem."""
    thought = next(iter(think(net, inputs, steps=1)))
    rule.watch().see(thought)
    return "logits" in vars(thought)
