"""A rule with messages, computed without its zeros: for graphs that run elsewhere.

    >>> light = Grouped(net)                 # the same features, for a tenth of the multiplications

Written out, most weights of a rule with messages are zero. Here every side has a convolution of its
own, all four in one with groups, over the sum of what the other sides told.

Shapes: B batch, H hidden, W width, *Q space in squares.
"""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import NetError
from iterant.nets.local_rule import LocalRule, MessageWeights, sum_over_other_sides
from iterant.nets.protocol import Net


class Grouped(nn.Module):
    """A local rule with messages and sides that are alike."""

    depth: int | None = None

    def __init__(self, net: LocalRule) -> None:
        """Take the weights of that rule."""
        super().__init__()
        if not can_group(net):
            raise NetError("only a rule with messages and sides alike can be computed in groups")
        config = net.config
        self.config, self.readout, self.plain = config, net.readout, net.dense_weights()
        self.sides = 2 * config.dims
        layers = MessageWeights.of(net)
        self.state, self.hidden = layers.state, layers.hidden

        def kernel(weights: Tensor, sides: int = 1) -> Tensor:
            return weights.repeat(sides, 1).view(-1, weights.shape[1], *[1] * config.dims)

        keep = {
            "tells": kernel(layers.message_in, self.sides), "keeps": kernel(layers.own_in),
            "told": kernel(layers.message_out, self.sides), "kept": kernel(layers.own_out),
            "bias": torch.cat([layers.own_bias, layers.message_bias.repeat(self.sides)]),
        }  # fmt: skip
        for name, weights in keep.items():
            self.register_buffer(name, weights.detach().clone())

    tells: Tensor
    keeps: Tensor
    told: Tensor
    kept: Tensor
    bias: Tensor

    def read(self, inputs: Tensor) -> Tensor:
        """What the rule itself reads."""
        return self.plain.read(inputs)

    def start(self, inputs: Tensor) -> Tensor:
        """What the rule itself begins with."""
        return self.plain.start(inputs)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """One iteration."""
        if memory is None:
            raise NetError("a local rule recalls the problem at every iteration")
        heard = self._heard(features * memory[:, -1:] if self.config.masked else features)
        others = sum_over_other_sides(heard)
        conv = functional.conv2d if self.config.dims == 2 else functional.conv1d
        all_told = others[0] + heard[0]
        own, end = self.hidden.own, self.config.hidden
        inner = conv(torch.cat(others, dim=1), self.tells, groups=self.sides)
        messages = conv(torch.relu(inner + memory[:, own:end]), self.told,
                        self.bias[self.state.own :], groups=self.sides)  # fmt: skip
        mine = conv(all_told, self.keeps) + memory[:, :own]
        mine = conv(torch.relu(mine), self.kept, self.bias[: self.state.own])
        return torch.tanh(torch.cat([mine, messages], dim=1)) * memory[:, -1:]

    def answer(self, features: Tensor) -> Tensor:
        """What the rule itself answers."""
        return self.plain.answer(features)

    def _heard(self, features: Tensor) -> list[Tensor]:
        """What the neighbour on every side told, (B, each, *Q)."""
        padded = functional.pad(features, [1, 1] * self.config.dims)
        middle = [slice(None), slice(None), *[slice(1, -1)] * self.config.dims]
        found = []
        for side in range(self.sides):
            place = list(middle)
            place[2 + side // 2] = slice(None, -2) if side % 2 == 0 else slice(2, None)
            said = self.state.of_side(side ^ 1)
            place[1] = slice(said.start, said.stop)
            found.append(padded[tuple(place)])
        return found


def can_group(net: object) -> TypeGuard[LocalRule]:
    """Whether this network can be computed in groups: messages, and equal sides."""
    return type(net) is LocalRule and net.config.messages and net.config.isotropic


def for_graphs(net: Net) -> Net:
    """The network in the form in which a graph that runs elsewhere should hold it.

    A local rule without weights that are shared between its sides, and where it can be computed in
    groups, without zeros; any other network itself.
    """
    if can_group(net):
        return Grouped(net)
    return net.dense_weights() if type(net) is LocalRule else net
