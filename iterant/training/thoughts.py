"""Thinking as training does it: a stretch of iterations at a time where a network can.

>>> for thought in thoughts(net, inputs, steps=8, state=state):
...     loss = loss + criterion(net, thought.logits, inputs, targets)
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from iterant.engine import State, Thought, think
from iterant.nets.protocol import Net
from iterant.nets.strings import FusedStrings


def thoughts(
    net: Net, inputs: Tensor, *, steps: int, state: State | None = None
) -> Iterable[Thought]:
    """As `iterant.engine.think`; without gradients some networks give the last thought only."""
    if not isinstance(net, FusedStrings) or steps < 1:
        return think(net, inputs, steps=steps, state=state)
    net.check(inputs)
    first = state or State(net.start(inputs))
    made = net.stretch(first.features, net.read(inputs), steps, first.step)
    before = first.step + (steps if not torch.is_grad_enabled() else 1)
    return [Thought(net, State(phi, before + i), inputs) for i, phi in enumerate(made)]
