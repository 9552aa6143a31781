"""Local rules with random weights, and what they hold after so many plain iterations."""

from __future__ import annotations

import torch
from torch import Tensor

from iterant.engine import last, think
from iterant.nets import LocalRule, build


def rule(**changes: object) -> LocalRule:
    """A rule for mazes in float64, unless it is changed."""
    config = {"dims": 2, "channels": 3, "stem": 2, "masked": True, "readout": "argmax-open"}
    net = build("local-rule", {**config, **changes}, seed=4)
    assert isinstance(net, LocalRule)
    return net.double()


def plain(net: LocalRule, inputs: Tensor, steps: int) -> Tensor:
    """The features after so many iterations of all squares."""
    with torch.no_grad():
        return last(think(net, inputs, steps=steps)).features
