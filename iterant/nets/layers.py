"""The pieces that the paper's networks are made of; one dimension or two is a number.

    >>> conv(2, 3, 128)
    Conv2d(3, 128, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)

Every convolution is three wide, keeps the size of its input and has no bias.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from iterant.errors import NetError

_CONV: dict[int, type[nn.Conv1d] | type[nn.Conv2d]] = {1: nn.Conv1d, 2: nn.Conv2d}
_CONVOLVE = {1: functional.conv1d, 2: functional.conv2d}


def conv(dims: int, inputs: int, outputs: int) -> nn.Conv1d | nn.Conv2d:
    """A three-wide convolution without bias that keeps the size."""
    return _CONV[dims](inputs, outputs, kernel_size=3, padding=1, bias=False)


class RecallConv(nn.Module):
    """The convolution of features and problem together, its two parts computed apart.

    Convolving the concatenation [features, inputs] equals convolving each with its part of the
    kernel and adding; the part of the problem is the same at every iteration, so it is computed
    once (`recalled`). The kernel is stored whole, as the concatenation would have it.
    """

    def __init__(self, dims: int, width: int, channels: int) -> None:
        """A kernel for ``width`` features and ``channels`` of the problem."""
        super().__init__()
        self.dims, self.width = dims, width
        self.weight = nn.Parameter(torch.empty(width, width + channels, *[3] * dims))
        # What nn.ConvNd draws for a kernel of this shape.
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    def recalled(self, inputs: Tensor) -> Tensor:
        """The part of the problem: once a problem."""
        return _CONVOLVE[self.dims](inputs, self.weight[:, self.width :], padding=1)

    def forward(self, features: Tensor, recalled: Tensor) -> Tensor:
        """The whole convolution, from the features and the problem's part."""
        return _CONVOLVE[self.dims](features, self.weight[:, : self.width], padding=1) + recalled


class ResidualBlock(nn.Module):
    """Two convolutions with a skip: relu(x + conv(relu(conv(x)))), group norm optional."""

    def __init__(self, dims: int, width: int, *, group_norm: bool) -> None:
        """A block of that width; ``group_norm``: four groups without scale and shift."""
        super().__init__()
        if group_norm and width % 4:
            raise NetError(
                f"group norm has 4 groups, so the width must be a multiple of 4: {width}"
            )
        self.conv1 = conv(dims, width, width)
        self.conv2 = conv(dims, width, width)
        self.norm = nn.GroupNorm(4, width, affine=False) if group_norm else nn.Identity()

    def forward(self, features: Tensor) -> Tensor:
        """(B, W, *S) to the same shape."""
        inner = torch.relu(self.norm(self.conv1(features)))
        return torch.relu(features + self.norm(self.conv2(inner)))


def residual_blocks(dims: int, width: int, blocks: int, *, group_norm: bool) -> nn.Sequential:
    """The block of an iteration: ``blocks`` residual blocks of two convolutions each."""
    made = [ResidualBlock(dims, width, group_norm=group_norm) for _ in range(blocks)]
    return nn.Sequential(*made)


def head(dims: int, width: int, inner: tuple[int, ...], classes: int) -> nn.Sequential:
    """Features to logits: convolutions of decreasing width with ReLUs between them."""
    sizes = (width, *inner, classes)
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [conv(dims, before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
