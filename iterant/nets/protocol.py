"""What a network is: four methods that the engine calls, and three facts it may state.

    >>> memory = net.read(inputs)          # once a problem
    >>> features = net.start(inputs)
    >>> features = net.step(features, memory, 0)
    >>> logits = net.answer(features)      # only when somebody asks

Shapes: B batch, C channels, W width, K classes, *S space.

A user's own ``nn.Module`` takes part by offering the four methods. Networks know no task, but
carry the readout they were trained for.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from iterant.nets.readout import Argmax, Readout


@runtime_checkable
class Net(Protocol):
    """What the engine asks of a network."""

    def read(self, inputs: Tensor) -> Tensor | None:
        """What every iteration recalls of (B, C, *S) inputs, batch first; None: nothing."""

    def start(self, inputs: Tensor) -> Tensor:
        """The features before the first iteration, (B, W, *S)."""

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """The features after one more iteration; ``index`` counts those already done."""

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""


def readout_of(net: Net) -> Readout:
    """How the network's logits become an answer; plain argmax where it does not say.

    >>> type(readout_of(iterant.load("mazes"))).__name__
    'ArgmaxOpen'
    """
    readout: Any = getattr(net, "readout", None)
    return readout if isinstance(readout, Readout) else Argmax()


def depth_of(net: Net) -> int | None:
    """How many iterations the network has; None where it can go on for ever.

    >>> depth_of(iterant.load("mazes")) is None
    True
    """
    depth: Any = getattr(net, "depth", None)
    return depth if isinstance(depth, int) else None


def moved_of(net: Net) -> Tensor | None:
    """(B,): the largest change of a feature in the latest iteration, where the network knows it.

    Only networks whose features lie between -1 and 1 say so; others are compared. NaN or
    infinite where a feature is. It may lie on the CPU where the features lie on a GPU.
    """
    moved: Any = getattr(net, "moved", None)
    return moved if isinstance(moved, Tensor) else None


def keep_samples(net: Net, which: Tensor, inputs: Tensor, features: Tensor) -> None:
    """Tell a network that keeps something of every sample which ones stay, (B,) bool.

    ``inputs`` and ``features`` are the rows that stay of the inputs it read last and of the
    features it returned last: the tensors that the next iteration will be called with.
    """
    keep: Any = getattr(net, "keep", None)
    if callable(keep):
        keep(which, inputs, features)
