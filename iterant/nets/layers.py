"""The layers of the paper's networks, in one dimension or two.

    >>> conv(2, 3, 128)
    Conv2d(3, 128, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)

Every convolution has a kernel of 3 a side, keeps the size of its input and has no bias.
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
    """A convolution with a kernel of 3 a side, without bias, that keeps the size."""
    return _CONV[dims](inputs, outputs, kernel_size=3, padding=1, bias=False)


class RecallConv(nn.Module):
    """The convolution of the concatenation [features, problem].

    It equals the sum of two convolutions with parts of the kernel. That of the problem is the same
    at every iteration, so it is computed once (`recalled`). The kernel is stored whole.
    """

    def __init__(self, dims: int, width: int, channels: int) -> None:
        """A kernel for ``width`` features and ``channels`` of the problem."""
        super().__init__()
        self.dims, self.width = dims, width
        self.weight = nn.Parameter(torch.empty(width, width + channels, *[3] * dims))
        # The initialisation of nn.ConvNd.
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    def recalled(self, inputs: Tensor) -> Tensor:
        """The part of the problem, (B, C, *S) to (B, W, *S)."""
        return _CONVOLVE[self.dims](inputs, self.weight[:, self.width :], padding=1)

    def forward(self, features: Tensor, recalled: Tensor) -> Tensor:
        """The convolution of features (B, W, *S), plus the part of the problem."""
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
    """The residual blocks of one iteration."""
    return nn.Sequential(
        *(ResidualBlock(dims, width, group_norm=group_norm) for _ in range(blocks))
    )


def head(dims: int, width: int, inner: tuple[int, ...], classes: int) -> nn.Sequential:
    """Features to logits: convolutions of decreasing width with ReLUs between them."""
    sizes = (width, *inner, classes)
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [conv(dims, before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
